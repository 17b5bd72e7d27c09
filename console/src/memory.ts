// What the browser remembers of a person's choices. Nothing secret, and nothing that the server needs.
type Key = 'theme' | 'language' | 'namespace';

export function remembered(key: Key): string | null {
  try {
    return localStorage.getItem(`drumtower.${key}`);
  } catch {
    return null;
  }
}

export function remember(key: Key, value: string): void {
  try {
    localStorage.setItem(`drumtower.${key}`, value);
  } catch {
    // A browser that keeps nothing forgets the choice, no more.
  }
}
