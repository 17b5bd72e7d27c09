// The list of runs as a page holds it: pages behind a cursor, and in front of them what was made since.
//
// Rows that were read stay; a change that is told is laid over its row. When more was made than the head holds, the list
// begins anew if its top is in sight, and says so if not.
import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useState } from 'react';
import { useAtMostEach } from '../ui/settled';
import { call } from './call';
import { useTidings, type RunChange } from './live';
import type { RunState, RunSummary, RunSummaryPage } from './schema';

export interface RunFilter {
  namespace?: string;
  job?: string;
  state?: RunState[];
  origin?: 'schedule' | 'api' | 'backfill' | 'after';
  backfill?: string;
  since?: string;
  until?: string;
}

/** The first page comes soon, the others hold what the server gives at once. */
const FIRST = 200;
const PAGE = 1000;
const HEAD = 100;
const OVERLAY = 2000;
const LOOK_AGAIN_MS = 1000;

type Overlay = Map<string, RunChange>;

/** What a row shows. */
export type RunRow = Pick<RunSummary, 'id' | 'namespace' | 'job' | 'state' | 'created' | 'due' | 'started' | 'finished' | 'worker' | 'attempt' | 'duration_ms' | 'exit_code' | 'error'>;

/** Of a hundred thousand rows only what is shown is kept: the rest would be looked through whenever memory is cleared up. */
function slim({ items, next }: RunSummaryPage): { items: RunRow[]; next: string | null } {
  const rows = items.map(({ id, namespace, job, state, created, due, started, finished, worker, attempt, duration_ms, exit_code, error }) => ({ id, namespace, job, state, created, due, started, finished, worker, attempt, duration_ms, exit_code, error }));
  return { items: rows, next: next ?? null };
}

export function useRunList(filter: RunFilter, atTop: boolean) {
  const client = useQueryClient();
  const key = useMemo(() => ['runs', filter], [filter]);
  const list = useInfiniteQuery({
    queryKey: [...key, 'list'],
    queryFn: async ({ pageParam }) => slim(await call('listRuns', { query: { ...filter, limit: pageParam ? PAGE : FIRST, cursor: pageParam } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
    staleTime: Infinity,
    refetchOnWindowFocus: false,
    // Looking for what is the same in a hundred thousand rows takes longer than drawing those in sight.
    structuralSharing: false,
  });
  const head = useQuery({
    queryKey: [...key, 'head'],
    queryFn: async () => slim(await call('listRuns', { query: { ...filter, limit: HEAD } })),
    enabled: list.isSuccess,
  });

  const [overlay, setOverlay] = useState<Overlay>(() => new Map());
  const look = useAtMostEach(LOOK_AGAIN_MS, () => void head.refetch());
  useTidings((tidings) => {
    if (tidings.runs.length > 0) {
      setOverlay((before) => {
        const next: Overlay = before.size > OVERLAY ? new Map() : new Map(before);
        for (const run of tidings.runs) next.set(run.id, run);
        return next;
      });
    }
    const isNew = tidings.crowded || tidings.runs.some((run) => run.made || filter.state?.length);
    if (isNew) look();
  });

  const first = list.data?.pages[0]?.items[0]?.id ?? '';
  const newer = useMemo(() => (head.data?.items ?? []).filter((run) => run.id > first), [head.data, first]);
  // As many new ones as the head holds: there may be more between it and the list.
  const gap = newer.length >= HEAD;
  // The head is a first page: the list goes on from its end.
  const restart = useCallback(() => {
    if (head.data) client.setQueryData([...key, 'list'], { pages: [head.data], pageParams: [undefined] });
  }, [client, key, head.data]);
  const stale = gap && !atTop;
  useEffect(() => {
    if (gap && atTop) restart();
  }, [gap, atTop, restart]);

  const rows = useMemo(() => {
    const all: RunRow[] = stale ? [] : [...newer];
    for (const page of list.data?.pages ?? []) for (const run of page.items) all.push(run);
    return all;
  }, [list.data, newer, stale]);
  const shown = useCallback((run: RunRow): RunRow => laid(run, overlay.get(run.id)), [overlay]);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = list;
  const more = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  return { rows, shown, more, stale, restart, list };
}

const ORDER: Record<RunState, number> = { PENDING: 0, SCHEDULED: 1, RUNNING: 2, COMPLETED: 3, FAILED: 3, CANCELLED: 3 };

/** What was told of a run, over what was read of it; the later attempt and state win. */
export function laid<R extends RunRow>(run: R, told: RunChange | undefined): R {
  if (!told) return run;
  const isOlder = told.attempt < run.attempt || (told.attempt === run.attempt && ORDER[told.state] < ORDER[run.state]);
  if (isOlder) return run;
  const { state, attempt, worker, started, finished, duration_ms, exit_code, error } = told;
  return { ...run, state, attempt, worker, started, finished, duration_ms, exit_code, error: error ?? run.error };
}
