// The jobs: found, filtered, and acted on together.
import { keepPreviousData, useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useState } from 'react';
import { useSearchParams } from 'wouter';
import { call } from '../api/call';
import { useTidings } from '../api/live';
import { laid } from '../api/runs';
import type { Job, RunSummaryPage } from '../api/schema';
import { useMay } from '../api/session';
import { Outcomes } from '../charts/spark';
import { useSpoken, useT } from '../i18n';
import { useNamespace } from '../namespace';
import { Button, Command, Confirm, Empty, Fault, Labels, LinkButton, Loading, PageHead } from '../ui/parts';
import { useNarrow } from '../ui/narrow';
import { Rows, type Column } from '../ui/rows';
import { useSettled } from '../ui/settled';
import { Away } from '../ui/time';
import { useToasts } from '../ui/toast';
import { Link } from '../ui/link';

const PAGE = 1000;
const BARS = 12;
/** What a phone has no room for; it is on the page of the job. */
const WIDE = ['schedule', 'labels'];

export function JobsPage() {
  const t = useT();
  const may = useMay();
  const [namespace] = useNamespace();
  const [search, setSearch] = useSearchParams();
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [text, status, label] = [search.get('q') ?? '', search.get('status') ?? '', search.get('label') ?? ''];
  const change = (name: string, value: string) =>
    setSearch(
      (before) => {
        const next = new URLSearchParams(before);
        if (value) next.set(name, value);
        else next.delete(name);
        return next;
      },
      { replace: true },
    );
  const wanted = useSettled(text.trim());
  const list = useInfiniteQuery({
    queryKey: ['jobs', 'list', namespace, status, label, wanted],
    queryFn: ({ pageParam }) =>
      call('listJobs', {
        query: { namespace: namespace || undefined, paused: status ? status === 'paused' : undefined, label: label ? [label] : undefined, search: wanted || undefined, limit: PAGE, cursor: pageParam },
      }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
    staleTime: 15_000,
    // What was found before stands until what is looked for now is found.
    placeholderData: keepPreviousData,
  });
  const jobs = useMemo(() => (list.data?.pages ?? []).flatMap((page) => page.items), [list.data]);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = list;
  const more = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  // A page may be empty while there are more: the server looks at so many jobs a call.
  useEffect(() => {
    if (jobs.length === 0) more();
  }, [jobs.length, more]);
  const labels = useMemo(() => [...new Set(jobs.flatMap((job) => Object.entries(job.spec.labels ?? {}).map(([key, value]) => `${key}=${value}`)))].sort().slice(0, 200), [jobs]);
  const marked = jobs.filter((job) => chosen.has(job.id));
  const narrow = useNarrow();
  const columns = useColumns(chosen, setChosen, jobs).filter((column) => !narrow || !WIDE.includes(column.key));
  const isEmpty = list.isSuccess && jobs.length === 0 && !list.hasNextPage && !status && !label && !text && !wanted;
  return (
    <div className="page page-fixed">
      <PageHead title={t.jobs.title}>
        {may('PutJob') && (
          <LinkButton to="/jobs/new" kind="main">
            {t.jobs.new}
          </LinkButton>
        )}
      </PageHead>
      {!isEmpty && (
        <div className="row">
          <div className="search">
            <input className="input" type="search" placeholder={t.jobs.search} aria-label={t.jobs.search} value={text} onChange={(event) => change('q', event.target.value)} />
          </div>
          <select className="select" aria-label={t.jobs.status} value={status} onChange={(event) => change('status', event.target.value)}>
            <option value="">
              {t.jobs.status}: {t.all}
            </option>
            <option value="active">{t.jobs.active}</option>
            <option value="paused">{t.jobs.paused}</option>
          </select>
          {(labels.length > 0 || label) && (
            <select className="select" aria-label={t.jobs.label} value={label} onChange={(event) => change('label', event.target.value)}>
              <option value="">
                {t.jobs.label}: {t.all}
              </option>
              {(labels.includes(label) || !label ? labels : [label, ...labels]).map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          )}
        </div>
      )}
      {list.isPending ? (
        <Loading />
      ) : list.isError && jobs.length === 0 ? (
        <Fault error={list.error} retry={() => void list.refetch()} />
      ) : isEmpty ? (
        <FirstJob />
      ) : jobs.length === 0 ? (
        <Nothing looks={list.hasNextPage} />
      ) : (
        <Rows rows={jobs} columns={columns} label={t.jobs.title} onEnd={more} minWidth={narrow ? '0' : '56rem'} selected={(job) => chosen.has(job.id)} />
      )}
      {marked.length > 0 && <Bulk jobs={marked} onClear={() => setChosen(new Set())} />}
    </div>
  );
}

/** No job fits, or none yet of those that were looked at. */
function Nothing({ looks }: { looks: boolean }) {
  const t = useT();
  if (looks) return <Loading />;
  return (
    <Empty title={t.jobs.noneTitle}>
      <p>{t.jobs.noneText}</p>
    </Empty>
  );
}

function FirstJob() {
  const t = useT();
  const may = useMay();
  return (
    <Empty title={t.jobs.emptyTitle}>
      <p>{t.jobs.emptyText}</p>
      <Command text="drumtower job create hello --every 10s -- echo hello" />
      {may('PutJob') && (
        <LinkButton to="/jobs/new" kind="main">
          {t.overview.newJob}
        </LinkButton>
      )}
    </Empty>
  );
}

function useColumns(chosen: ReadonlySet<string>, setChosen: (chosen: ReadonlySet<string>) => void, jobs: Job[]): Column<Job>[] {
  const t = useT();
  const may = useMay();
  const spoken = useSpoken();
  const toggle = (id: string) => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    setChosen(next);
  };
  const everyOne = jobs.length > 0 && jobs.every((job) => chosen.has(job.id));
  const columns: Column<Job>[] = [
    {
      key: 'name',
      title: t.jobs.name,
      width: 'minmax(6rem, 2fr)',
      cell: (job) => (
        <span className="row cut">
          <Link href={`/jobs/${job.namespace}/${job.name}`} className="cut name" title={job.spec.description}>
            {job.name}
          </Link>
          {job.paused && (
            <span className="tag" data-tone="warning" title={t.jobs.pausedBy(job.paused.actor)}>
              {t.jobs.paused}
            </span>
          )}
          {job.breaker && job.breaker.state !== 'closed' && (
            <span className="tag" data-tone="failed" title={t.job.breakerOpen}>
              ⚡
            </span>
          )}
        </span>
      ),
    },
    { key: 'schedule', title: t.jobs.schedule, width: 'minmax(10rem, 2fr)', cell: (job) => <span className="cut quiet">{spoken(job.words, job.words_zh)}</span> },
    { key: 'labels', title: t.job.labels, width: 'minmax(7rem, 1.4fr)', cell: (job) => <div className="cut"><Labels labels={job.spec.labels} /></div> },
    { key: 'outcomes', title: t.jobs.outcomes, width: '5.75rem', cell: (job) => <LastRuns key={job.id} job={job} /> },
    { key: 'next', title: t.jobs.next, width: '5.5rem', number: true, cell: (job) => (job.paused ? <span className="quiet">–</span> : <Away at={job.next_due} due />) },
  ];
  if (!may('PauseJobs')) return columns;
  const choice: Column<Job> = {
    key: 'choose',
    width: '1.4rem',
    title: <input type="checkbox" aria-label={t.jobs.chooseAll} checked={everyOne} onChange={() => setChosen(everyOne ? new Set() : new Set(jobs.map((job) => job.id)))} />,
    cell: (job) => <input type="checkbox" aria-label={t.jobs.choose(job.name)} checked={chosen.has(job.id)} onChange={() => toggle(job.id)} />,
  };
  return [choice, ...columns];
}

/** Read once when the row comes into sight; what is told of its runs is added. */
function LastRuns({ job }: { job: Job }) {
  const client = useQueryClient();
  const key = ['last', job.id];
  const runs = useQuery({ queryKey: key, queryFn: () => call('listRuns', { query: { job_id: job.id, limit: BARS } }), staleTime: 60_000 });
  useTidings((tidings) => {
    const own = tidings.runs.filter((run) => run.job_id === job.id);
    if (tidings.crowded) void client.invalidateQueries({ queryKey: key, refetchType: 'none' });
    if (own.length === 0) return;
    client.setQueryData<RunSummaryPage>(key, (page) => {
      if (!page) return page;
      let items = page.items.map((run) => laid(run, own.find((one) => one.id === run.id)));
      for (const run of own) {
        const known = items.some((one) => one.id === run.id);
        if (!known && run.id > (items[0]?.id ?? '')) items = [{ ...items[0], ...run } as RunSummaryPage['items'][number], ...items];
      }
      return { ...page, items: items.slice(0, BARS) };
    });
  });
  if (!runs.data || runs.data.items.length === 0) return <span className="quiet">–</span>;
  return <Outcomes runs={runs.data.items} />;
}

type Deed = 'pause' | 'resume' | 'trigger' | 'remove';

/** One call for each namespace among those chosen. */
async function doAll(deed: Deed, jobs: Job[]): Promise<{ changed: number; failed: number }> {
  const spaces = Map.groupBy(jobs, (job) => job.namespace);
  let [changed, failed] = [0, 0];
  for (const [namespace, own] of spaces) {
    for (let from = 0; from < own.length; from += 1000) {
      const names = own.slice(from, from + 1000).map((job) => job.name);
      if (deed === 'trigger') {
        const answer = await call('triggerBatch', { body: { runs: names.map((job) => ({ job, namespace })) } });
        const made = answer.runs.filter((one) => 'id' in one).length;
        changed += made;
        failed += answer.runs.length - made;
      } else {
        const operation = deed === 'pause' ? 'pauseJobs' : deed === 'resume' ? 'resumeJobs' : 'deleteJobs';
        const answer = await call(operation, { path: { namespace }, body: { names } });
        changed += answer.changed;
        failed += answer.items.filter((item) => item.result === 'failed').length;
      }
    }
  }
  return { changed, failed };
}

function Bulk({ jobs, onClear }: { jobs: Job[]; onClear: () => void }) {
  const t = useT();
  const client = useQueryClient();
  const { say, complain } = useToasts();
  const [asks, setAsks] = useState(false);
  const go = async (deed: Deed) => {
    try {
      const { changed, failed } = await doAll(deed, jobs);
      say(`${t.jobs[deed]}: ${t.jobs.done(changed, jobs.length)}`, failed > 0 ? t.jobs.failed(failed) : '');
      onClear();
    } catch (error) {
      complain(error);
    }
    await client.invalidateQueries({ queryKey: ['jobs'] });
  };
  return (
    <div className="bar-fixed" role="toolbar" aria-label={t.jobs.chosen(jobs.length)}>
      <strong>{t.jobs.chosen(jobs.length)}</strong>
      <span className="grow" />
      <Button onClick={() => void go('pause')}>{t.jobs.pause}</Button>
      <Button onClick={() => void go('resume')}>{t.jobs.resume}</Button>
      <Button onClick={() => void go('trigger')}>{t.jobs.trigger}</Button>
      <Button kind="danger" onClick={() => setAsks(true)}>
        {t.jobs.remove}
      </Button>
      <Button kind="plain" onClick={onClear}>
        {t.jobs.clear}
      </Button>
      {asks && <Confirm danger title={t.jobs.remove} text={t.jobs.removeText(jobs.length)} act={() => go('remove')} onClose={() => setAsks(false)} />}
    </div>
  );
}
