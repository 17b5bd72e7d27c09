// What happens often, taken less often.
import { useEffect, useRef, useState } from 'react';

const PAUSE_MS = 200;

/** A value that changes while someone types, as it is when they pause. */
export function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

/** Does it soon after each call, and never twice within `ms`. */
export function useAtMostEach(ms: number, act: () => void): () => void {
  const latest = useRef(act);
  latest.current = act;
  const done = useRef(0);
  const waiting = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(
    () => () => {
      clearTimeout(waiting.current);
      // Else whoever comes back waits for what was cleared.
      waiting.current = undefined;
    },
    [],
  );
  return () => {
    waiting.current ??= setTimeout(
      () => {
        waiting.current = undefined;
        done.current = Date.now();
        latest.current();
      },
      Math.max(0, ms - (Date.now() - done.current)),
    );
  };
}
