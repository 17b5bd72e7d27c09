// Light or dark: as the system says, until someone chooses.
import { useSyncExternalStore } from 'react';
import { remember, remembered } from './memory';

export type Theme = 'light' | 'dark';

const system = matchMedia('(prefers-color-scheme: dark)');
const listeners = new Set<() => void>();

function current(): Theme {
  const chosen = remembered('theme');
  if (chosen === 'light' || chosen === 'dark') return chosen;
  return system.matches ? 'dark' : 'light';
}

function apply(): void {
  document.documentElement.dataset.theme = current();
  for (const tell of listeners) tell();
}

/** To be called before anything is painted. */
export function beginTheme(): void {
  apply();
  system.addEventListener('change', apply);
}

export function chooseTheme(theme: Theme): void {
  remember('theme', theme);
  apply();
}

export function useTheme(): Theme {
  const subscribe = (tell: () => void) => {
    listeners.add(tell);
    return () => void listeners.delete(tell);
  };
  return useSyncExternalStore(subscribe, current);
}
