// A job at a glance: how its runs went, when it fires next, what it is.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { call } from '../api/call';
import { useTidings } from '../api/live';
import type { Job, Rollups } from '../api/schema';
import { useMay } from '../api/session';
import { Plot } from '../charts/plot';
import { TimesList } from '../edit/editor';
import { kindOf, line, taskOf } from '../edit/manifest';
import { useT, useWords } from '../i18n';
import { Button, Fault, Panel, Quoted } from '../ui/parts';
import { When, count, duration } from '../ui/time';
import { useDo } from '../ui/toast';
import { Link } from '../ui/link';
import { RunsAfter } from './job_after';

const DAY_MS = 86_400_000;
const GRID = 200;

export function JobOverview({ job }: { job: Job }) {
  const t = useT();
  const { namespace, name } = job;
  const rollups = useQuery({
    queryKey: ['rollups', namespace, name],
    queryFn: () => {
      // A young job has little to show by the hour.
      const young = Date.now() - Date.parse(job.created) < DAY_MS / 4;
      const since = new Date(Date.now() - (young ? DAY_MS / 8 : 2 * DAY_MS)).toISOString();
      return call('showRollups', { query: { namespace, job: name, since, step: young ? '5m' : '1h' } });
    },
    refetchInterval: 15_000,
  });
  const firesByItself = (job.spec.schedule?.length ?? 0) > 0;
  const next = useQuery({ queryKey: ['job', namespace, name, 'next', job.revision], queryFn: () => call('nextTimes', { path: { namespace, name } }), refetchInterval: 30_000 });
  return (
    <>
      <Hindrances job={job} />
      <div className="columns-wide">
        <div className="stack">
          <Panel title={t.job.grid} aside={<Link href={`/jobs/${namespace}/${name}/runs`}>{t.all}</Link>}>
            <Squares job={job} />
          </Panel>
          {rollups.data && <Courses rollups={rollups.data} />}
          {rollups.isError && <Fault error={rollups.error} />}
        </div>
        <div className="stack">
          {(firesByItself || !job.spec.after) && <Panel title={t.job.nextTimes}>{next.data ? <TimesList times={next.data} /> : null}</Panel>}
          <RunsAfter job={job} />
          <Panel title={t.job.facts}>
            <Facts job={job} />
          </Panel>
        </div>
      </div>
    </>
  );
}

/** What keeps it from running as it should. */
function Hindrances({ job }: { job: Job }) {
  const t = useT();
  const may = useMay();
  const act = useDo();
  const client = useQueryClient();
  const { namespace, name, breaker, last_unfired: unfired } = job;
  const fates = useQuery({
    queryKey: ['job', namespace, name, 'waiting'],
    queryFn: () => call('explainJob', { path: { namespace, name }, query: { limit: 1 } }),
    refetchInterval: 10_000,
  });
  const reset = () => act(() => call('resetBreaker', { path: { namespace, name } }), t.job.resumedNow).then(() => client.invalidateQueries({ queryKey: ['job', namespace, name] }));
  return (
    <>
      {breaker && breaker.state !== 'closed' && (
        <div className="notice" data-tone="failed">
          <strong>{t.job.breakerOpen}</strong>
          <span>{t.job.breakerText(breaker.failures)}</span>
          {may('ResetBreaker') && (
            <div>
              <Button size="small" onClick={() => void reset()}>
                {t.job.resetBreaker}
              </Button>
            </div>
          )}
        </div>
      )}
      {fates.data?.waiting && (
        <div className="notice" data-tone="warning">
          <strong>{t.job.waiting}</strong>
          <span>
            <Quoted text={(fates.data.waiting_code && t.told?.waits(fates.data.waiting_code)) || fates.data.waiting} />
          </span>
        </div>
      )}
      {unfired && Date.now() - Date.parse(unfired.last) < DAY_MS && (
        <div className="notice" data-tone="warning">
          <span>
            <strong>{t.job.lastUnfired(unfired.count)}</strong> <When at={unfired.first} />
            {unfired.last !== unfired.first && (
              <>
                {' '}
                – <When at={unfired.last} />
              </>
            )}{' '}
            ({t.unfired[unfired.reason] ?? unfired.reason}){' '}
            <Link href={`/jobs/${namespace}/${name}/fate`}>{t.job.fate}</Link>
          </span>
        </div>
      )}
    </>
  );
}

/** Its last runs as squares, the newest last. */
function Squares({ job }: { job: Job }) {
  const { t } = useWords();
  const runs = useQuery({ queryKey: ['last grid', job.id], queryFn: () => call('listRuns', { query: { job_id: job.id, limit: GRID } }), staleTime: 1000 });
  useTidings((tidings) => {
    if (tidings.crowded || tidings.runs.some((run) => run.job_id === job.id)) void runs.refetch();
  });
  const items = runs.data?.items ?? [];
  if (runs.isSuccess && items.length === 0) return <p className="quiet">{t.job.gridEmpty}</p>;
  return (
    <div className="squares">
      {[...items].reverse().map((run) => (
        <Link key={run.id} href={`/runs/${run.id}`} data-state={run.state} title={`${t.state[run.state]} · ${run.created} · ${duration(run.duration_ms)}`} aria-label={`${t.state[run.state]}, ${run.id}`} />
      ))}
    </div>
  );
}

function Courses({ rollups }: { rollups: Rollups }) {
  const { t, language } = useWords();
  const { points } = rollups;
  const times = points.map((point) => Date.parse(point.at) / 1000);
  return (
    <>
      <Panel title={t.job.durations}>
        <Plot
          label={t.job.durations}
          empty={t.job.noEnds}
          times={times}
          shown={(value) => duration(value)}
          series={[
            { label: t.overview.p50Line, colour: '--running', values: points.map((point) => point.duration_p50_ms), fill: true },
            { label: t.overview.p99Line, colour: '--bronze', values: points.map((point) => point.duration_p99_ms) },
          ]}
        />
      </Panel>
      <Panel title={t.job.outcomes}>
        <Plot
          label={t.job.outcomes}
          empty={t.job.noEnds}
          times={times}
          stacked
          shown={(value) => count(Math.round(value), language)}
          series={[
            { label: t.state.COMPLETED, colour: '--completed', values: points.map((point) => point.completed) },
            { label: t.state.FAILED, colour: '--failed', values: points.map((point) => point.failed) },
            { label: t.state.CANCELLED, colour: '--cancelled', values: points.map((point) => point.cancelled) },
          ]}
        />
      </Panel>
    </>
  );
}

function Facts({ job }: { job: Job }) {
  const t = useT();
  const { spec } = job;
  const task = taskOf(spec as never);
  const what = {
    command: () => line(task.exec?.argv ?? []),
    shell: () => task.exec?.shell ?? '',
    script: () => task.script?.body.split('\n').slice(0, 3).join('\n') ?? '',
    http: () => `${task.http?.method ?? 'GET'} ${task.http?.url ?? ''}`,
    handler: () => task.handler?.name ?? '',
  }[kindOf(task)]();
  return (
    <dl className="facts">
      {spec.description && (
        <>
          <dt>{t.job.description}</dt>
          <dd dir="auto">{spec.description}</dd>
        </>
      )}
      <dt>{t.job.task}</dt>
      <dd className="mono">{what}</dd>
      {spec.timeout && (
        <>
          <dt>{t.job.timeout}</dt>
          <dd>{spec.timeout}</dd>
        </>
      )}
      <dt>{t.job.retry}</dt>
      <dd>{spec.retry?.max_attempts ?? 3}</dd>
      {spec.queue && (
        <>
          <dt>{t.job.queue}</dt>
          <dd>
            <Link href="/queues">{spec.queue}</Link>
          </dd>
        </>
      )}
      <dt>{t.job.version}</dt>
      <dd>
        <Link href={`/jobs/${job.namespace}/${job.name}/versions`}>{job.version}</Link>
      </dd>
      <dt>{t.job.changed}</dt>
      <dd>
        <When at={job.updated} /> <span className="quiet">{t.job.by(job.actor)}</span>
      </dd>
    </dl>
  );
}
