// What goes on: figures and courses from roll-ups and from the server's memory, never from a scan of runs.
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { call } from '../api/call';
import { useTidings } from '../api/live';
import type { Letter, Overview, Rollups } from '../api/schema';
import { useMay } from '../api/session';
import { NextFires } from '../charts/fires';
import { Plot } from '../charts/plot';
import { useT, useWords } from '../i18n';
import { useNamespace } from '../namespace';
import { Command, Empty, Fault, Figure, LinkButton, Loading, PageHead, Panel } from '../ui/parts';
import { StateMark, WorkerStateLabel, workerTone } from '../ui/state';
import { When, count, duration } from '../ui/time';
import { Link } from '../ui/link';
import { useAtMostEach } from '../ui/settled';

/** However much fails, it is read once in so long. */
const LOOK_AGAIN_MS = 1000;

export function OverviewPage() {
  const t = useT();
  const [namespace] = useNamespace();
  const own = { namespace: namespace || undefined };
  const overview = useQuery({ queryKey: ['overview'], queryFn: () => call('showOverview', {}), refetchInterval: 2000 });
  const rollups = useQuery({ queryKey: ['rollups', namespace], queryFn: () => call('showRollups', { query: own }), refetchInterval: 5000 });
  const upcoming = useQuery({ queryKey: ['upcoming', namespace], queryFn: () => call('listUpcoming', { query: { ...own, limit: 60 } }), refetchInterval: 10_000 });
  const jobs = useQuery({ queryKey: ['jobs', 'any', namespace], queryFn: () => call('listJobs', { query: { ...own, limit: 1 } }) });
  const isNew = jobs.data?.items.length === 0 && !jobs.data.next;
  if (overview.isPending) return <Loading />;
  if (!overview.data) {
    return (
      <div className="page">
        <Fault error={overview.error} retry={() => void overview.refetch()} />
      </div>
    );
  }
  return (
    <div className="page">
      <PageHead title={t.overview.title} />
      {overview.data.workers_total === 0 && (
        <div className="notice" data-tone="warning">
          <strong>{t.overview.noWorkers}</strong>
          <span>{t.overview.noWorkersText}</span>
          <Command text="drumtower work" />
        </div>
      )}
      {isNew && <FirstJob />}
      <Figures overview={overview.data} rollups={rollups.data} />
      {rollups.data && (
        <div className="columns">
          <Panel title={t.overview.chart}>
            <Ends rollups={rollups.data} />
          </Panel>
          <Panel title={t.overview.delayChart}>
            <Delays rollups={rollups.data} />
          </Panel>
        </div>
      )}
      <Panel title={t.overview.next}>
        <NextFires upcoming={upcoming.data?.items ?? []} />
      </Panel>
      <div className="columns">
        <Failing overview={overview.data} />
        <Newest />
        <Fleet overview={overview.data} />
      </div>
    </div>
  );
}

function FirstJob() {
  const t = useT();
  const may = useMay();
  return (
    <div className="panel">
      <Empty title={t.overview.firstJob}>
        <p>{t.overview.firstJobText}</p>
        {may('PutJob') && (
          <LinkButton to="/jobs/new" kind="main">
            {t.overview.newJob}
          </LinkButton>
        )}
        <Command text="drumtower job create hello --every 10s -- echo hello" />
      </Empty>
    </div>
  );
}

function Figures({ overview, rollups }: { overview: Overview; rollups: Rollups | undefined }) {
  const { t, language } = useWords();
  const points = rollups?.points ?? [];
  const ended = (point: Rollups['points'][number]) => point.completed + point.failed + point.cancelled;
  const full = points.at(-2);
  const completed = points.reduce((sum, point) => sum + point.completed, 0);
  const failed = points.reduce((sum, point) => sum + point.failed, 0);
  const share = completed + failed === 0 ? null : (100 * completed) / (completed + failed);
  const worst = (pick: (point: Rollups['points'][number]) => number | null) => median(points.map(pick).filter((ms): ms is number => ms !== null));
  const { runs } = overview;
  const notes = [runs.held > 0 && t.overview.held(runs.held), runs.parked && t.overview.parked(runs.parked)].filter(Boolean);
  const states = Object.entries(Object.groupBy(overview.workers, (worker) => worker.state));
  return (
    <dl className="figures">
      <Figure title={t.overview.rate} value={full ? count(ended(full), language) : '–'} note={t.overview.rateNow} />
      <Figure title={t.overview.success} value={share === null ? '–' : `${share === 100 ? 100 : Math.min(share, 99.9).toFixed(1)} %`} note={t.overview.successHint} tone={share !== null && share < 95 ? 'failed' : undefined} />
      <Figure title={t.overview.delay} value={duration(worst((point) => point.delay_p50_ms))} note={t.overview.p99(duration(worst((point) => point.delay_p99_ms)))} />
      <Figure title={t.overview.waiting} value={count(runs.waiting - runs.held, language)} note={notes.join(t.comma) || (runs.waiting === 0 ? t.overview.linesEmpty : '')} />
      {runs.live !== null && <Figure title={t.overview.live} value={count(runs.live, language)} note={t.overview.liveHint} />}
      <Figure
        title={t.overview.workers}
        value={count(overview.workers_total, language)}
        note={states.map(([state, all]) => `${all?.length ?? 0} ${t.workerState[state as keyof typeof t.workerState].toLowerCase()}`).join(t.comma)}
      />
    </dl>
  );
}

function median(values: number[]): number | null {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? null;
}

/** The point that still grows is left out: it would look like a fall. */
function usePoints(rollups: Rollups) {
  return useMemo(() => {
    const points = rollups.points.slice(0, -1);
    return { points, times: points.map((point) => Date.parse(point.at) / 1000) };
  }, [rollups]);
}

function Ends({ rollups }: { rollups: Rollups }) {
  const { t, language } = useWords();
  const { points, times } = usePoints(rollups);
  return (
    <Plot
      label={t.overview.chart}
      empty={t.overview.noEnds}
      times={times}
      stacked
      shown={(value) => count(Math.round(value), language)}
      series={[
        { label: t.state.COMPLETED, colour: '--completed', values: points.map((point) => point.completed) },
        { label: t.state.FAILED, colour: '--failed', values: points.map((point) => point.failed) },
        { label: t.state.CANCELLED, colour: '--cancelled', values: points.map((point) => point.cancelled) },
      ]}
    />
  );
}

function Delays({ rollups }: { rollups: Rollups }) {
  const t = useT();
  const { points, times } = usePoints(rollups);
  return (
    <Plot
      label={t.overview.delayChart}
      empty={t.overview.noEnds}
      times={times}
      shown={(value) => duration(value)}
      series={[
        { label: t.overview.p50Line, colour: '--running', values: points.map((point) => point.delay_p50_ms), fill: true },
        { label: t.overview.p99Line, colour: '--bronze', values: points.map((point) => point.delay_p99_ms) },
      ]}
    />
  );
}

function Failing({ overview }: { overview: Overview }) {
  const t = useT();
  const [namespace] = useNamespace();
  const failing = overview.failing.filter((job) => !namespace || job.namespace === namespace).slice(0, 8);
  return (
    <Panel title={t.overview.failing} flush={failing.length > 0}>
      {failing.length === 0 ? (
        <p className="quiet">{t.overview.failingEmpty}</p>
      ) : (
        <table className="table">
          <tbody>
            {failing.map((job) => (
              <tr key={`${job.namespace}/${job.job}`}>
                <td>
                  <Link href={`/jobs/${job.namespace}/${job.job}`} className="name">
                    {job.job}
                  </Link>
                  <div className="quiet">{t.overview.failingCount(job.failed, job.completed)}</div>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Panel>
  );
}

const LETTERS = 6;
/** A page may be short while there are more; so many are read for one picture. */
const MOST_PAGES = 8;

async function newestLetters(namespace: string): Promise<{ letters: Letter[]; all: boolean }> {
  const letters: Letter[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MOST_PAGES; page++) {
    const read = await call('listAllLetters', { query: { namespace: namespace || undefined, limit: LETTERS, cursor } });
    letters.push(...read.items);
    cursor = read.next ?? undefined;
    if (!cursor || letters.length >= LETTERS) break;
  }
  return { letters: letters.slice(0, LETTERS), all: !cursor };
}

/** The newest dead letters with their causes: an index holds them, however many runs there are. */
function Newest() {
  const t = useT();
  const [namespace] = useNamespace();
  const newest = useQuery({ queryKey: ['letters', 'newest', namespace], queryFn: () => newestLetters(namespace), refetchInterval: 10_000 });
  const again = useAtMostEach(LOOK_AGAIN_MS, () => void newest.refetch());
  useTidings((tidings) => {
    if (tidings.crowded || tidings.runs.some((run) => run.state === 'FAILED')) again();
  });
  const letters = newest.data?.letters ?? [];
  return (
    <Panel title={t.overview.letters} flush={letters.length > 0} aside={<Link href="/letters">{t.all}</Link>}>
      {!newest.data ? (
        newest.isPending ? (
          <Loading />
        ) : (
          <Fault error={newest.error} retry={() => void newest.refetch()} />
        )
      ) : letters.length === 0 ? (
        <p className="quiet">{newest.data.all ? t.overview.lettersEmpty : t.overview.lettersUnseen}</p>
      ) : (
        <table className="table">
          <tbody>
            {letters.map((letter) => (
              <tr key={letter.run}>
                <td>
                  <div className="row-apart">
                    <Link href={`/runs/${letter.run}`} className="state" data-state="FAILED">
                      <StateMark state="FAILED" />
                      {letter.job ?? letter.run}
                    </Link>
                    <span className="quiet">
                      <When at={letter.died} />
                    </span>
                  </div>
                  <div className="cut quiet" title={letter.error ?? undefined}>
                    {letter.error ?? t.letters.noError}
                  </div>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Panel>
  );
}

function Fleet({ overview }: { overview: Overview }) {
  const t = useT();
  const workers = overview.workers.slice(0, 8);
  return (
    <Panel title={t.overview.workers} flush={workers.length > 0} aside={<Link href="/workers">{t.all}</Link>}>
      {workers.length === 0 ? (
        <p className="quiet">{t.workers.emptyTitle}</p>
      ) : (
        <table className="table">
          <tbody>
            {workers.map((worker) => (
              <tr key={`${worker.name} ${worker.connected}`}>
                <td>
                  <Link href={`/workers/${worker.name}`} className="name">
                    {worker.name}
                  </Link>
                </td>
                <td className="fit">
                  <WorkerStateLabel state={worker.state} />
                </td>
                <td>
                  <span className="meter" data-tone={workerTone(worker.state)} title={t.of(worker.capacity - worker.credit, worker.capacity)}>
                    <span style={{ width: `${(100 * (worker.capacity - worker.credit)) / Math.max(worker.capacity, 1)}%` }} />
                  </span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Panel>
  );
}
