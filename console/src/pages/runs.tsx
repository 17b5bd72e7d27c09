// All runs, however many: a table behind a cursor, its filters in the address.
import { useMemo, useState } from 'react';
import { useSearchParams } from 'wouter';
import { useRunList, type RunFilter, type RunRow } from '../api/runs';
import type { RunState } from '../api/schema';
import { useT } from '../i18n';
import { useNamespace } from '../namespace';
import { useNarrow } from '../ui/narrow';
import { Button, Empty, Fault, Loading, PageHead } from '../ui/parts';
import { Rows, type Column } from '../ui/rows';
import { RUN_STATES, RunStateLabel, StateMark } from '../ui/state';
import { When, duration } from '../ui/time';
import { Link } from '../ui/link';

const SPANS = { hour: 3_600_000, day: 86_400_000, week: 7 * 86_400_000 } as const;
type Span = keyof typeof SPANS;
const ORIGINS = ['schedule', 'api', 'backfill', 'after'] as const;

/** The filter that an address names. What it names wrongly is left out. */
function filterOf(search: URLSearchParams, namespace: string): RunFilter {
  const span = search.get('within') as Span | null;
  const origin = ORIGINS.find((one) => one === search.get('origin'));
  const states = search.getAll('state').filter((state): state is RunState => RUN_STATES.includes(state as RunState));
  // Rounded, so that the same address is the same list.
  const since = span && SPANS[span] ? new Date(Math.floor((Date.now() - SPANS[span]) / 60_000) * 60_000).toISOString() : undefined;
  return {
    namespace: search.get('namespace') ?? (namespace || undefined),
    job: search.get('job') || undefined,
    state: states.length > 0 ? states : undefined,
    origin,
    since,
  };
}

export function RunsPage() {
  const t = useT();
  const [search, setSearch] = useSearchParams();
  const [namespace] = useNamespace();
  const address = search.toString();
  const filter = useMemo(() => filterOf(new URLSearchParams(address), namespace), [address, namespace]);
  const change = (name: string, values: string[]) =>
    setSearch((before) => {
      const next = new URLSearchParams(before);
      next.delete(name);
      values.filter(Boolean).forEach((value) => next.append(name, value));
      return next;
    });
  const states = search.getAll('state');
  const toggle = (state: RunState) => change('state', states.includes(state) ? states.filter((one) => one !== state) : [...states, state]);
  return (
    <div className="page page-fixed">
      <PageHead title={t.runs.title} />
      <div className="row">
        <div className="chips" role="group" aria-label={t.runs.state}>
          {RUN_STATES.map((state) => (
            <button key={state} type="button" className="chip" data-state={state} aria-pressed={states.includes(state)} onClick={() => toggle(state)}>
              <StateMark state={state} />
              {t.state[state]}
            </button>
          ))}
        </div>
        <JobFilter value={search.get('job') ?? ''} onChange={(job) => change('job', [job])} />
        <select className="select" aria-label={t.runs.origin} value={search.get('origin') ?? ''} onChange={(event) => change('origin', [event.target.value])}>
          <option value="">
            {t.runs.origin}: {t.all}
          </option>
          {ORIGINS.map((origin) => (
            <option key={origin} value={origin}>
              {t.origin[origin]}
            </option>
          ))}
        </select>
        <select className="select" aria-label={t.runs.since} value={search.get('within') ?? ''} onChange={(event) => change('within', [event.target.value])}>
          <option value="">{t.runs.any}</option>
          <option value="hour">{t.runs.lastHour}</option>
          <option value="day">{t.runs.lastDay}</option>
          <option value="week">{t.runs.lastWeek}</option>
        </select>
        {address && (
          <Button kind="plain" size="small" onClick={() => setSearch(new URLSearchParams())}>
            {t.runs.clear}
          </Button>
        )}
      </div>
      <RunTable key={JSON.stringify(filter)} filter={filter} filtered={address !== ''} />
    </div>
  );
}

/** A name is asked for when it is complete: with Enter, or when the field is left. */
function JobFilter({ value, onChange }: { value: string; onChange: (job: string) => void }) {
  const t = useT();
  const [text, setText] = useState(value);
  return (
    <form
      className="short"
      onSubmit={(event) => {
        event.preventDefault();
        onChange(text.trim());
      }}
    >
      <input
        className="input"
        placeholder={t.runs.jobFilter}
        aria-label={t.runs.jobFilter}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onBlur={() => text.trim() !== value && onChange(text.trim())}
      />
    </form>
  );
}

export function RunTable({ filter, filtered, ofJob }: { filter: RunFilter; filtered: boolean; ofJob?: boolean }) {
  const t = useT();
  const [atTop, setAtTop] = useState(true);
  const { rows, shown, more, stale, restart, list } = useRunList(filter, atTop);
  const narrow = useNarrow();
  const columns = useColumns(shown, ofJob ?? false, narrow);
  if (list.isPending) return <Loading />;
  if (list.isError && rows.length === 0) return <Fault error={list.error} retry={() => void list.refetch()} />;
  if (rows.length === 0 && !list.hasNextPage) {
    return (
      <Empty title={filtered ? t.runs.noneTitle : t.runs.emptyTitle}>
        <p>{filtered ? t.runs.noneText : t.runs.emptyText}</p>
      </Empty>
    );
  }
  return (
    <>
      {stale && (
        <div>
          <Button size="small" onClick={restart}>
            {t.runs.newest}
          </Button>
        </div>
      )}
      <Rows
        rows={rows}
        columns={columns}
        label={t.runs.title}
        onEnd={more}
        onTop={setAtTop}
        minWidth={narrow ? '0' : '54rem'}
        foot={!list.hasNextPage && rows.length > 20 ? <p className="loading">{t.runs.end}</p> : undefined}
      />
      <p className="quiet">{t.runs.loaded(rows.length)}</p>
    </>
  );
}

function delayOf(run: RunRow): string {
  return run.started ? duration(Math.max(0, Date.parse(run.started) - Date.parse(run.due))) : '–';
}

function useColumns(shown: (run: RunRow) => RunRow, ofJob: boolean, narrow: boolean): Column<RunRow>[] {
  const t = useT();
  return useMemo(() => {
    const column = (key: string, title: string, width: string, cell: (run: RunRow) => React.ReactNode, number = false): Column<RunRow> => ({
      key,
      title,
      width,
      number,
      cell: (run) => cell(shown(run)),
    });
    const job = column('job', t.runs.job, 'minmax(9rem, 1.8fr)', (run) =>
      run.job ? (
        <Link href={`/jobs/${run.namespace}/${run.job}`} className="cut name">
          {run.job}
        </Link>
      ) : (
        <span className="quiet">{t.run.jobGone}</span>
      ),
    );
    const state = column('state', t.runs.state, '7rem', (run) => <RunStateLabel state={run.state} />);
    const took = column('duration', t.runs.duration, '5rem', (run) => duration(run.duration_ms), true);
    if (narrow) {
      // What a phone has room for; when it was made leads to the run.
      const made = column('created', t.runs.created, 'minmax(5rem, 1fr)', (run) => (
        <Link href={`/runs/${run.id}`} title={run.id}>
          <When at={run.created} />
        </Link>
      ));
      return ofJob ? [state, made, took] : [state, { ...job, width: 'minmax(4rem, 1.4fr)' }, made];
    }
    return [
      state,
      ...(ofJob ? [] : [job]),
      column('run', t.runs.run, '9rem', (run) => (
        <Link href={`/runs/${run.id}`} className="mono">
          {run.id}
        </Link>
      )),
      column('created', t.runs.created, '7.5rem', (run) => <When at={run.created} />),
      column('delay', t.runs.delay, '4.5rem', delayOf, true),
      took,
      column('worker', t.runs.worker, 'minmax(4rem, 0.8fr)', (run) => <span className="cut quiet">{run.worker ?? ''}</span>),
      column('cause', t.runs.cause, 'minmax(7rem, 1.8fr)', (run) => (
        <span className="cut quiet" title={run.error ?? undefined}>
          {run.error ?? (run.attempt > 1 ? t.runs.attempt(run.attempt) : '')}
        </span>
      )),
    ];
  }, [t, shown, ofJob, narrow]);
}
