// Keys that work everywhere but in a field: `/` and Ctrl-K search, `g` and a letter goes somewhere.
import { useEffect, useRef } from 'react';

export const GOES: Record<string, string> = { o: '/', j: '/jobs', r: '/runs', d: '/letters', b: '/backfills', w: '/workers', q: '/queues', s: '/cluster', c: '/calendars', l: '/locks', t: '/tokens', n: '/notifications', a: '/audit' };
const PAIR_WITHIN_MS = 1200;

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName));
}

export function useKeys({ palette, go }: { palette: () => void; go: (to: string) => void }): void {
  // Kept over renders: one may fall between the two keys of a pair.
  const latest = useRef({ palette, go });
  latest.current = { palette, go };
  useEffect(() => {
    let gAt = -Infinity;
    const press = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key === 'k') {
        event.preventDefault();
        latest.current.palette();
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (event.key === '/') {
        event.preventDefault();
        latest.current.palette();
      } else if (event.key === 'g') {
        gAt = event.timeStamp;
      } else if (event.timeStamp - gAt < PAIR_WITHIN_MS) {
        const to = GOES[event.key];
        if (to) latest.current.go(to);
        gAt = -Infinity;
      }
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
}
