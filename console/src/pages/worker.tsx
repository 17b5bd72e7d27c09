// One worker: what it holds and offers, and taking it out of service and back.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { call } from '../api/call';
import type { WorkerInFull } from '../api/schema';
import { useMay } from '../api/session';
import { keyOf, takenOf, useCourses, type Sample } from '../charts/courses';
import { Plot } from '../charts/plot';
import { useT } from '../i18n';
import { useSending } from '../ui/form';
import { Button, Fault, Field, Labels, Loading, PageHead, Panel, Sheet } from '../ui/parts';
import { RunStateLabel, WorkerStateLabel } from '../ui/state';
import { When, bytes } from '../ui/time';
import { useDo } from '../ui/toast';
import { Skew } from './workers';
import { Link } from '../ui/link';

export default function WorkerPage({ name }: { name: string }) {
  const t = useT();
  const worker = useQuery({ queryKey: ['workers', name], queryFn: () => call('showWorker', { path: { name } }), refetchInterval: 2000 });
  const whole = useMemo(() => (worker.data ? [worker.data] : []), [worker.data]);
  const courses = useCourses(whole, worker.dataUpdatedAt);
  if (worker.isPending) return <Loading />;
  if (!worker.data) {
    return (
      <div className="page">
        <Fault error={worker.error} retry={() => void worker.refetch()} />
      </div>
    );
  }
  const { data } = worker;
  return (
    <div className="page">
      <PageHead
        title={data.name}
        crumbs={<Link href="/workers">{t.nav.workers}</Link>}
        note={
          <span className="row">
            <WorkerStateLabel state={data.state} />
            {data.why && <span>{t.told?.worker(data) ?? data.why}</span>}
            <Labels labels={data.labels} />
          </span>
        }
      >
        <Acts worker={data} />
      </PageHead>
      <div className="columns-wide">
        <div className="stack">
          <Panel title={t.workers.load}>
            <Course course={courses.get(keyOf(data)) ?? []} />
          </Panel>
          <Panel title={t.workers.held} flush={data.running.length > 0}>
            {data.running.length === 0 ? (
              <p className="quiet">{t.workers.heldEmpty}</p>
            ) : (
              <table className="table">
                <tbody>
                  {data.running.map((held) => (
                    <tr key={held.run}>
                      <td>
                        <RunStateLabel state={held.state} />
                      </td>
                      <td>
                        <Link href={`/runs/${held.run}`} className="mono">
                          {held.run}
                        </Link>
                      </td>
                      <td className="name">{held.job ?? t.run.jobGone}</td>
                      <td className="number">
                        <When at={held.created} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
          </Panel>
        </div>
        <Panel title={t.run.facts}>
          <Facts worker={data} />
        </Panel>
      </div>
    </div>
  );
}

/** Its load in hundredths, for as long as one looks. */
function Course({ course }: { course: Sample[] }) {
  const t = useT();
  if (course.length < 2) return <p className="quiet">{t.workers.measuring}</p>;
  const hundredths = (pick: (sample: Sample) => number) => course.map((sample) => 100 * pick(sample));
  return (
    <Plot
      label={t.workers.load}
      times={course.map((sample) => sample.at / 1000)}
      height={150}
      most={100}
      shown={(value) => `${Math.round(value)} %`}
      series={[
        { label: t.workers.cpu, colour: '--running', values: hundredths((sample) => sample.cpu), fill: true },
        { label: t.workers.memory, colour: '--bronze', values: hundredths((sample) => sample.memory) },
      ]}
    />
  );
}

function Facts({ worker }: { worker: WorkerInFull }) {
  const t = useT();
  const { load } = worker;
  const offers = [...worker.executors, ...worker.handlers.map((handler) => `handler:${handler}`)];
  return (
    <dl className="facts">
      <dt>{t.workers.host}</dt>
      <dd>{worker.host}</dd>
      <dt>{t.workers.version}</dt>
      <dd>{worker.version}</dd>
      <dt>{t.workers.offers}</dt>
      <dd className="chips">
        {offers.map((offer) => (
          <span key={offer} className="tag">
            {offer}
          </span>
        ))}
      </dd>
      <dt>{t.workers.capacity}</dt>
      <dd>
        {t.of(takenOf(worker), worker.capacity)}, {worker.credit} {t.workers.credit}
      </dd>
      <dt>{t.workers.cpu}</dt>
      <dd>{Math.round(load.cpu_permille / 10)} %</dd>
      <dt>{t.workers.memory}</dt>
      <dd>
        {bytes(load.memory_used_bytes)} / {bytes(load.memory_total_bytes)}
      </dd>
      <dt>{t.workers.disk}</dt>
      <dd>
        {bytes(load.disk_used_bytes)} / {bytes(load.disk_total_bytes)}
      </dd>
      <dt>{t.workers.network}</dt>
      <dd>
        ↓ {bytes(load.network_received_bytes_per_s)}/s ↑ {bytes(load.network_sent_bytes_per_s)}/s
      </dd>
      <dt>{t.workers.skew}</dt>
      <dd>
        <Skew ms={worker.skew_ms} />
      </dd>
      <dt>{t.workers.losses}</dt>
      <dd>{worker.losses}</dd>
      {worker.limits && (
        <>
          <dt>{t.workers.limits}</dt>
          <dd title={worker.limits.why}>{worker.limits.by}</dd>
        </>
      )}
      <dt>{t.workers.connected}</dt>
      <dd>
        <When at={worker.connected} />
      </dd>
    </dl>
  );
}

function Acts({ worker }: { worker: WorkerInFull }) {
  const t = useT();
  const may = useMay();
  const act = useDo();
  const client = useQueryClient();
  const [asks, setAsks] = useState(false);
  const [deadline, setDeadline] = useState('');
  const path = { name: worker.name };
  const query = worker.namespace ? { namespace: worker.namespace } : undefined;
  const again = () => client.invalidateQueries({ queryKey: ['workers'] });
  const { busy, fault, rest, send } = useSending(['deadline']);
  const drain = async () => {
    const done = await send(() => call('drainWorker', { path, query, body: deadline.trim() ? { deadline: deadline.trim() } : {} }), t.workers.drained);
    if (done) setAsks(false);
    await again();
  };
  return (
    <>
      {worker.losses > 0 && may('ResetWorker') && <Button onClick={() => void act(() => call('resetWorker', { path, query }), t.workers.resetDone).then(again)}>{t.workers.reset}</Button>}
      {worker.maintenance
        ? may('ResumeWorker') && (
            <Button kind="main" onClick={() => void act(() => call('resumeWorker', { path, query }), t.workers.resumed).then(again)}>
              {t.workers.resume}
            </Button>
          )
        : may('DrainWorker') && <Button onClick={() => setAsks(true)}>{t.workers.drain}</Button>}
      {asks && (
        <Sheet title={t.workers.drain} onClose={() => setAsks(false)}>
          <p>{t.workers.drainText}</p>
          <Field label={t.workers.deadline} hint={t.workers.deadlineHint} fault={fault('deadline')}>
            {(id) => <input id={id} className="input" value={deadline} placeholder="10m" onChange={(event) => setDeadline(event.target.value)} />}
          </Field>
          {rest !== null && <Fault error={rest} />}
          <div className="row">
            <Button kind="main" disabled={busy} onClick={() => void drain()}>
              {t.workers.drain}
            </Button>
            <Button kind="plain" onClick={() => setAsks(false)}>
              {t.cancel}
            </Button>
          </div>
        </Sheet>
      )}
    </>
  );
}
