// One backfill: how far it is, what became of its times, and stopping it.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { call } from '../api/call';
import type { Backfill } from '../api/schema';
import { useMay } from '../api/session';
import { useT, useWords } from '../i18n';
import { Json } from '../ui/json';
import { Link } from '../ui/link';
import { Button, Confirm, Fault, Figure, Loading, PageHead, Panel } from '../ui/parts';
import { When, count } from '../ui/time';
import { useDo } from '../ui/toast';
import { BackfillStateLabel, Progress } from './backfills';
import { RunTable } from './runs';

export default function BackfillPage({ id }: { id: string }) {
  const t = useT();
  const backfill = useQuery({ queryKey: ['backfills', id], queryFn: () => call('showBackfill', { path: { id } }), refetchInterval: 5000 });
  const filter = useMemo(() => ({ backfill: id }), [id]);
  if (backfill.isPending) return <Loading />;
  if (!backfill.data) {
    return (
      <div className="page">
        <Fault error={backfill.error} retry={() => void backfill.refetch()} />
      </div>
    );
  }
  const { data } = backfill;
  return (
    <div className="page">
      <PageHead
        title={data.job}
        crumbs={
          <>
            <Link href="/backfills">{t.nav.backfills}</Link> / {data.namespace}
          </>
        }
        note={
          <span className="row">
            <BackfillStateLabel state={data.state} />
            <span className="mono">{data.id}</span>
            {data.held && data.state === 'RUNNING' && <span>{t.backfills.held[data.held]}</span>}
          </span>
        }
      >
        <Acts backfill={data} />
      </PageHead>
      <div className="columns-wide">
        <div className="stack">
          <Panel title={t.backfills.progress}>
            <Progress backfill={data} />
          </Panel>
          <Figures backfill={data} />
        </div>
        <Panel title={t.backfills.about}>
          <Facts backfill={data} />
        </Panel>
      </div>
      <Panel title={t.backfills.runs}>
        <div className="table-fixed">
          <RunTable filter={filter} filtered ofJob />
        </div>
      </Panel>
    </div>
  );
}

function Figures({ backfill }: { backfill: Backfill }) {
  const { t, language } = useWords();
  const figure = (title: string, value: number, tone?: string) => <Figure title={title} value={count(value, language)} note="" tone={tone} />;
  return (
    <dl className="figures">
      {figure(t.backfills.made, backfill.made)}
      {figure(t.backfills.active, backfill.active)}
      {figure(t.backfills.completed, backfill.completed)}
      {figure(t.backfills.failed, backfill.failed, backfill.failed > 0 ? 'failed' : undefined)}
    </dl>
  );
}

function Facts({ backfill }: { backfill: Backfill }) {
  const t = useT();
  return (
    <dl className="facts">
      <dt>{t.backfills.job}</dt>
      <dd>
        <Link href={`/jobs/${backfill.namespace}/${backfill.job}`} className="name">
          {backfill.job}
        </Link>{' '}
        <span className="quiet">
          {t.job.version} {backfill.job_version}
        </span>
      </dd>
      <dt>{t.backfills.from}</dt>
      <dd>
        <When at={backfill.from} dated />
      </dd>
      <dt>{t.backfills.to}</dt>
      <dd>
        <When at={backfill.to} dated />
      </dd>
      <dt>{t.backfills.which}</dt>
      <dd>{t.backfills.whichChoices[backfill.which]}</dd>
      <dt>{t.backfills.order}</dt>
      <dd>{t.backfills.orderChoices[backfill.order]}</dd>
      <dt>{t.backfills.maxActive}</dt>
      <dd>{backfill.max_active}</dd>
      <dt>{t.backfills.priority}</dt>
      <dd>{backfill.priority}</dd>
      <dt>{t.backfills.skipped}</dt>
      <dd>{t.fate.due(backfill.skipped)}</dd>
      <dt>{t.backfills.created}</dt>
      <dd>
        <When at={backfill.created} /> <span className="quiet">{t.job.by(backfill.actor)}</span>
      </dd>
      {backfill.ended && (
        <>
          <dt>{t.backfills.ended}</dt>
          <dd>
            <When at={backfill.ended} />
          </dd>
        </>
      )}
      {backfill.params !== null && (
        <>
          <dt>{t.backfills.params}</dt>
          <dd>
            <Json value={backfill.params} />
          </dd>
        </>
      )}
    </dl>
  );
}

function Acts({ backfill }: { backfill: Backfill }) {
  const t = useT();
  const may = useMay();
  const act = useDo();
  const client = useQueryClient();
  const [asks, setAsks] = useState(false);
  const [runs, setRuns] = useState(false);
  const path = { id: backfill.id };
  const again = () => client.invalidateQueries({ queryKey: ['backfills'] });
  if (backfill.state === 'COMPLETED' || backfill.state === 'CANCELLED') return null;
  return (
    <>
      {backfill.state === 'PAUSED'
        ? may('ResumeBackfill') && <Button onClick={() => void act(() => call('resumeBackfill', { path }), t.backfills.resumed).then(again)}>{t.backfills.resume}</Button>
        : may('PauseBackfill') && <Button onClick={() => void act(() => call('pauseBackfill', { path }), t.backfills.paused).then(again)}>{t.backfills.pause}</Button>}
      {may('CancelBackfill') && (
        <Button kind="danger" onClick={() => setAsks(true)}>
          {t.backfills.cancel}
        </Button>
      )}
      {asks && (
        <Confirm
          danger
          title={t.backfills.cancel}
          text={
            <div className="stack-tight">
              <p>{t.backfills.cancelText}</p>
              <label className="row">
                <input type="checkbox" checked={runs} onChange={(event) => setRuns(event.target.checked)} />
                {t.backfills.cancelRuns}
              </label>
            </div>
          }
          act={() => call('cancelBackfill', { path, query: { runs: runs || undefined } })}
          onDone={() => void again()}
          onClose={() => setAsks(false)}
        />
      )}
    </>
  );
}
