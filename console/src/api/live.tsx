// What changes, as the server tells it: one stream for the whole console.
//
// Messages are gathered and handed on at most four times a second, so that a busy server costs the page nothing. After a
// break everything that is shown is read again.
import { useQueryClient } from '@tanstack/react-query';
import { createContext, useContext, useEffect, useMemo, useRef, useState, type ReactNode } from 'react';
import { useNamespace } from '../namespace';
import { address, call } from './call';
import type { RunState } from './schema';

export interface RunChange {
  id: string;
  namespace: string;
  job: string;
  job_id: string;
  state: RunState;
  made: boolean;
  created: string;
  due: string;
  at: string;
  attempt: number;
  worker: string | null;
  started: string | null;
  progress: { percent: number; message: string | null; at: string } | null;
  finished: string | null;
  duration_ms: number | null;
  exit_code: number | null;
  error: string | null;
}

/** What happened since the last time: single runs, or only that there were too many to tell. */
export interface Tidings {
  runs: RunChange[];
  crowded: boolean;
  kinds: Set<string>;
}

export type Connection = 'connecting' | 'live' | 'lost';

interface Live {
  connection: Connection;
  /** Since when nothing is heard, while nothing is. */
  lostAt: number | null;
  listen(hear: (tidings: Tidings) => void): () => void;
}

const LiveContext = createContext<Live | null>(null);
const GATHER_MS = 250;
const AGAIN_MS = 1500;
const KINDS = ['run', 'runs', 'unfired', 'job', 'worker', 'calendar', 'queue', 'backfill'] as const;
/** What a message of a kind makes stale. */
const READ_AGAIN: Partial<Record<(typeof KINDS)[number], string[]>> = { job: ['jobs', 'job'], worker: ['workers'], calendar: ['calendars'], queue: ['queues'], backfill: ['backfills'] };

export function LiveProvider({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const [namespace] = useNamespace();
  const [connection, setConnection] = useState<Connection>('connecting');
  const [lostAt, setLostAt] = useState<number | null>(null);
  const listeners = useRef(new Set<(tidings: Tidings) => void>());

  useEffect(() => {
    let source: EventSource | null = null;
    let again: ReturnType<typeof setTimeout> | undefined;
    let flush: ReturnType<typeof setTimeout> | undefined;
    let waiting: Tidings = { runs: [], crowded: false, kinds: new Set() };
    let broken = false;

    const hand = () => {
      flush = undefined;
      const tidings = waiting;
      waiting = { runs: [], crowded: false, kinds: new Set() };
      for (const hear of listeners.current) hear(tidings);
      for (const [kind, keys] of Object.entries(READ_AGAIN)) {
        if (tidings.kinds.has(kind)) for (const key of keys) void client.invalidateQueries({ queryKey: [key] });
      }
      for (const run of tidings.runs) void client.invalidateQueries({ queryKey: ['run', run.id] });
    };
    const hear = (kind: string, data: string) => {
      waiting.kinds.add(kind);
      if (kind === 'run') waiting.runs.push(JSON.parse(data) as RunChange);
      if (kind === 'runs') waiting.crowded = true;
      flush ??= setTimeout(hand, GATHER_MS);
    };
    const open = () => {
      source = new EventSource(address('followChanges', {}, { namespace: namespace || undefined, max_rate: 60 }));
      source.addEventListener('ready', () => {
        setConnection('live');
        setLostAt(null);
        if (broken) void client.invalidateQueries();
        broken = false;
      });
      source.addEventListener('resync', () => void client.invalidateQueries());
      for (const kind of KINDS) source.addEventListener(kind, (event) => hear(kind, (event as MessageEvent<string>).data));
      source.onerror = () => {
        // A refusal ends the stream for good, a break tries again by itself; both are begun anew here.
        source?.close();
        broken = true;
        setConnection('lost');
        setLostAt((at) => at ?? Date.now());
        again = setTimeout(() => {
          call('showSession', {}).catch(() => undefined);
          open();
        }, AGAIN_MS);
      };
    };
    open();
    return () => {
      source?.close();
      clearTimeout(again);
      clearTimeout(flush);
    };
  }, [client, namespace]);

  const live = useMemo<Live>(
    () => ({
      connection,
      lostAt,
      listen(hear) {
        listeners.current.add(hear);
        return () => listeners.current.delete(hear);
      },
    }),
    [connection, lostAt],
  );
  return <LiveContext.Provider value={live}>{children}</LiveContext.Provider>;
}

export function useLive(): Live {
  const live = useContext(LiveContext);
  if (!live) throw new Error('outside of the live stream');
  return live;
}

/** Calls `hear` with what changes, for as long as the component is there. */
export function useTidings(hear: (tidings: Tidings) => void): void {
  const { listen } = useLive();
  const latest = useRef(hear);
  latest.current = hear;
  useEffect(() => listen((tidings) => latest.current(tidings)), [listen]);
}
