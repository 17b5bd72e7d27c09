// Whether the page is as narrow as on a phone; the styles have the same bound.
import { useSyncExternalStore } from 'react';

const query = matchMedia('(max-width: 820px)');

function subscribe(tell: () => void): () => void {
  query.addEventListener('change', tell);
  return () => query.removeEventListener('change', tell);
}

export function useNarrow(): boolean {
  return useSyncExternalStore(subscribe, () => query.matches);
}
