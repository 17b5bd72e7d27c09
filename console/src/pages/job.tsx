// One job, in tabs; each has an address of its own.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { useLocation } from 'wouter';
import { call, callTagged } from '../api/call';
import type { Job } from '../api/schema';
import { useMay } from '../api/session';
import { Editor } from '../edit/editor';
import { textOf } from '../edit/manifest';
import { useSpoken, useT } from '../i18n';
import { JsonField, parsed } from '../ui/json';
import { Button, Confirm, Fault, Labels, LinkButton, Loading, PageHead, Sheet, Tabs } from '../ui/parts';
import { Away } from '../ui/time';
import { useDo } from '../ui/toast';
import { JobFates } from './job_fates';
import { JobOverview } from './job_overview';
import { JobVersions } from './job_versions';
import { LetterGroups } from './letters';
import { RunTable } from './runs';
import { Link } from '../ui/link';

const TABS = ['overview', 'runs', 'definition', 'fate', 'versions', 'letters'] as const;

export default function JobPage({ namespace, name, tab }: { namespace: string; name: string; tab: string }) {
  const t = useT();
  const spoken = useSpoken();
  const path = { namespace, name };
  const job = useQuery({ queryKey: ['job', namespace, name], queryFn: () => callTagged('showJob', { path }), refetchInterval: 15_000 });
  const here = `/jobs/${namespace}/${name}`;
  if (job.isPending) return <Loading />;
  if (!job.data) {
    return (
      <div className="page">
        <Fault error={job.error} retry={() => void job.refetch()} />
      </div>
    );
  }
  const { value, tag } = job.data;
  const tabs = TABS.map((key) => ({ key, label: t.job[key], to: key === 'overview' ? here : `${here}/${key}` }));
  return (
    <div className={tab === 'runs' ? 'page page-fixed' : 'page'}>
      <PageHead
        title={name}
        crumbs={
          <>
            <Link href="/jobs">{t.nav.jobs}</Link> / {namespace}
          </>
        }
        note={
          <span className="row">
            {value.paused && (
              <span className="tag" data-tone="warning">
                {t.jobs.pausedBy(value.paused.actor)}
              </span>
            )}
            <span>{spoken(value.words, value.words_zh)}</span>
            {value.next_due && !value.paused && (
              <span>
                {t.jobs.next} <Away at={value.next_due} due />
              </span>
            )}
            <Labels labels={value.spec.labels} />
          </span>
        }
      >
        <Acts job={value} tag={tag} />
      </PageHead>
      <Tabs tabs={tabs} current={tab} />
      <Tab job={value} tag={tag} tab={tab} />
    </div>
  );
}

function Tab({ job, tag, tab }: { job: Job; tag: string; tab: string }) {
  const may = useMay();
  const client = useQueryClient();
  const { namespace, name } = job;
  switch (tab) {
    case 'runs':
      return <RunTable filter={{ namespace, job: name }} filtered={false} ofJob />;
    case 'definition':
      return <Definition job={job} tag={tag} mayEdit={may('PutJob')} onApplied={() => void client.invalidateQueries({ queryKey: ['job', namespace, name] })} />;
    case 'fate':
      return <JobFates job={job} />;
    case 'versions':
      return <JobVersions job={job} />;
    case 'letters':
      return <LetterGroups namespace={namespace} job={name} />;
    default:
      return <JobOverview job={job} />;
  }
}

function Definition({ job, tag, mayEdit, onApplied }: { job: Job; tag: string; mayEdit: boolean; onApplied: () => void }) {
  // What is being edited is the version that was read first. A later one is shown at once if nothing was typed; what was
  // typed is never thrown away unasked.
  const [began, begin] = useState({ text: textOf(job.spec), version: job.version, tag });
  const [edited, setEdited] = useState(false);
  const isLater = job.version > began.version;
  const reload = () => begin({ text: textOf(job.spec), version: job.version, tag });
  useEffect(() => {
    if (isLater && !edited) reload();
  });
  const applied = (made: Job) => {
    setEdited(false);
    begin({ text: textOf(made.spec), version: made.version, tag: `"${made.revision}"` });
    onApplied();
  };
  // A pause makes another revision and leaves the definition as it is.
  const match = job.version === began.version ? tag : began.tag;
  return <Editor key={began.version} first={began.text} tag={match} isNew={false} mayEdit={mayEdit} outdated={isLater && edited} onEdit={setEdited} onReload={reload} onApplied={applied} />;
}

function Acts({ job, tag }: { job: Job; tag: string }) {
  const t = useT();
  const may = useMay();
  const act = useDo();
  const client = useQueryClient();
  const [, go] = useLocation();
  const [asks, setAsks] = useState<'params' | 'remove' | null>(null);
  const path = { namespace: job.namespace, name: job.name };
  const again = () => client.invalidateQueries({ queryKey: ['job', job.namespace, job.name] });
  const trigger = (params?: unknown) =>
    act(async () => {
      const made = await call('triggerRun', { path, body: params === undefined ? {} : { params } });
      go(`/runs/${made.id}`);
    }, t.job.triggered);
  return (
    <>
      {may('DeleteJob') && (
        <Button kind="danger" onClick={() => setAsks('remove')}>
          {t.job.remove}
        </Button>
      )}
      {may('PauseJob') &&
        (job.paused ? (
          <Button onClick={() => void act(() => call('resumeJob', { path }), t.job.resumedNow).then(again)}>{t.job.resume}</Button>
        ) : (
          <Button onClick={() => void act(() => call('pauseJob', { path }), t.job.pausedNow).then(again)}>{t.job.pause}</Button>
        ))}
      {may('CreateBackfill') && job.spec.schedule && job.spec.schedule.length > 0 && <LinkButton to={`/backfills/new?namespace=${encodeURIComponent(job.namespace)}&job=${encodeURIComponent(job.name)}`}>{t.backfills.ofJob}</LinkButton>}
      {may('TriggerRun') && (
        <>
          <Button onClick={() => setAsks('params')}>{t.job.triggerParams}</Button>
          <Button kind="main" onClick={() => void trigger()}>
            {t.job.trigger}
          </Button>
        </>
      )}
      {asks === 'remove' && (
        <Confirm danger title={t.job.remove} text={t.job.removeText} act={() => call('deleteJob', { path, match: tag.replace(/\..*"$/, '"') })} onDone={() => go('/jobs')} onClose={() => setAsks(null)} />
      )}
      {asks === 'params' && <TriggerSheet job={job} onRun={trigger} onClose={() => setAsks(null)} />}
    </>
  );
}

function TriggerSheet({ job, onRun, onClose }: { job: Job; onRun: (params: unknown) => Promise<unknown>; onClose: () => void }) {
  const t = useT();
  const [text, setText] = useState(() => JSON.stringify(job.spec.params ?? {}, null, 2));
  const { value, wrong } = parsed(text);
  return (
    <Sheet title={t.job.triggerParams} onClose={onClose}>
      <JsonField label={t.job.params} hint={t.job.paramsHint} text={text} onChange={setText} rows={10} />
      <div className="row">
        <Button kind="main" disabled={wrong} onClick={() => void onRun(value).then(onClose)}>
          {t.job.trigger}
        </Button>
        <Button kind="plain" onClick={onClose}>
          {t.cancel}
        </Button>
      </div>
    </Sheet>
  );
}
