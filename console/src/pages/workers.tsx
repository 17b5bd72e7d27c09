// The fleet: who is there, how loaded, how far its clock is off.
import { useQuery } from '@tanstack/react-query';
import { call } from '../api/call';
import type { Worker } from '../api/schema';
import { cpuShare, keyOf, memoryShare, takenOf, useCourses, type Sample } from '../charts/courses';
import { Spark } from '../charts/spark';
import { useT } from '../i18n';
import { Command, Empty, Fault, Labels, Loading, PageHead, Panel } from '../ui/parts';
import { WorkerStateLabel } from '../ui/state';
import { Away } from '../ui/time';
import { Link } from '../ui/link';

const EVERY_MS = 2000;
export const SKEW_ALARM_MS = 1000;

export default function WorkersPage() {
  const t = useT();
  const workers = useQuery({ queryKey: ['workers', 'list'], queryFn: () => call('listWorkers', {}), refetchInterval: EVERY_MS });
  const courses = useCourses(workers.data?.items, workers.dataUpdatedAt);
  if (workers.isPending) return <Loading />;
  return (
    <div className="page">
      <PageHead title={t.workers.title} />
      {!workers.data ? (
        <Fault error={workers.error} retry={() => void workers.refetch()} />
      ) : workers.data.items.length === 0 ? (
        <Empty title={t.workers.emptyTitle}>
          <p>{t.workers.emptyText}</p>
          <Command text="drumtower work" />
        </Empty>
      ) : (
        <Panel flush>
          <table className="table">
            <thead>
              <tr>
                <th>{t.workers.name}</th>
                <th>{t.workers.state}</th>
                <th>{t.workers.cpu}</th>
                <th>{t.workers.memory}</th>
                <th>{t.workers.capacity}</th>
                <th className="number">{t.workers.attempts}</th>
                <th>{t.workers.labels}</th>
                <th>{t.workers.version}</th>
                <th className="number">{t.workers.skew}</th>
                <th className="number">{t.workers.heartbeat}</th>
              </tr>
            </thead>
            <tbody>
              {workers.data.items.map((worker) => (
                <Row key={keyOf(worker)} worker={worker} course={courses.get(keyOf(worker))} />
              ))}
            </tbody>
          </table>
        </Panel>
      )}
    </div>
  );
}

function Row({ worker, course }: { worker: Worker; course: Sample[] | undefined }) {
  const t = useT();
  const [cpu, memory] = [cpuShare(worker), memoryShare(worker)];
  const tone = (share: number) => (share > 0.9 ? 'failed' : share > 0.75 ? 'warning' : 'running');
  return (
    <tr>
      <td>
        <div className="worker-name">
          <Link href={`/workers/${worker.name}`} className="name cut" title={worker.name}>
            {worker.name}
          </Link>
          <div className="quiet cut" title={worker.host}>
            {worker.host}
          </div>
        </div>
      </td>
      <td>
        <WorkerStateLabel state={worker.state} />
        {worker.why && <div className="quiet">{t.told?.worker(worker) ?? worker.why}</div>}
      </td>
      <td className="fit">
        <Spark values={(course ?? []).map((sample) => sample.cpu)} most={1} tone={tone(cpu)} label={`${t.workers.cpu} ${Math.round(cpu * 100)} %`} />
        <span className="quiet">{Math.round(cpu * 100)} %</span>
      </td>
      <td className="fit">
        <Spark values={(course ?? []).map((sample) => sample.memory)} most={1} tone={tone(memory)} label={`${t.workers.memory} ${Math.round(memory * 100)} %`} />
        <span className="quiet">{Math.round(memory * 100)} %</span>
      </td>
      <td>
        <span className="meter" data-tone="running">
          <span style={{ width: `${(100 * takenOf(worker)) / Math.max(worker.capacity, 1)}%` }} />
        </span>
        <span className="quiet nowrap">
          {t.of(takenOf(worker), worker.capacity)}, {worker.credit} {t.workers.credit}
        </span>
      </td>
      <td className="number">{worker.attempts}</td>
      <td>
        <Labels labels={worker.labels} />
      </td>
      <td className="quiet">{worker.version}</td>
      <td className="number">
        <Skew ms={worker.skew_ms} />
      </td>
      <td className="number quiet">
        <Away at={worker.last_heartbeat} />
      </td>
    </tr>
  );
}

export function Skew({ ms }: { ms: number }) {
  const t = useT();
  const text = `${ms > 0 ? '+' : ''}${ms} ms`;
  if (Math.abs(ms) < SKEW_ALARM_MS) return <span className="quiet nowrap">{text}</span>;
  return (
    <span className="tag" data-tone="warning" title={t.workers.skewWarning}>
      {text}
    </span>
  );
}
