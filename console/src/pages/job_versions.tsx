// The versions of a job: what each changed, and a way back.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../api/call';
import type { Change, Job, JobVersion } from '../api/schema';
import { useMay } from '../api/session';
import { useT } from '../i18n';
import { Button, Confirm, Fault, Loading, Panel } from '../ui/parts';
import { When } from '../ui/time';
import { useDo } from '../ui/toast';

export function JobVersions({ job }: { job: Job }) {
  const path = { namespace: job.namespace, name: job.name };
  const versions = useQuery({ queryKey: ['job', job.namespace, job.name, 'versions'], queryFn: () => call('listJobVersions', { path, query: { limit: 100 } }) });
  if (versions.isPending) return <Loading />;
  if (!versions.data) return <Fault error={versions.error} />;
  return (
    <div className="stack">
      {versions.data.items.map((version) => (
        <Version key={version.version} job={job} version={version} />
      ))}
    </div>
  );
}

function Version({ job, version }: { job: Job; version: JobVersion }) {
  const t = useT();
  const may = useMay();
  const act = useDo();
  const client = useQueryClient();
  const [asks, setAsks] = useState(false);
  const path = { namespace: job.namespace, name: job.name };
  const number = version.version;
  const difference = useQuery({
    queryKey: ['diff', job.id, number],
    queryFn: () => call('diffJob', { path, query: { from: number - 1, to: number } }),
    enabled: number > 1,
    staleTime: Infinity,
  });
  return (
    <Panel
      title={
        <>
          {t.job.version} {number} {version.current && <span className="tag">{t.versions.current}</span>}
        </>
      }
      aside={
        <>
          <span className="quiet">
            <When at={version.created} /> {t.job.by(version.actor)}
          </span>
          {!version.current && may('RestoreJob') && (
            <Button size="small" onClick={() => setAsks(true)}>
              {t.versions.restore}
            </Button>
          )}
        </>
      }
    >
      {number === 1 ? (
        <p className="quiet">{t.versions.first}</p>
      ) : difference.data ? (
        difference.data.changes.length === 0 ? (
          <p className="quiet">{t.versions.same}</p>
        ) : (
          <Changes changes={difference.data.changes} />
        )
      ) : (
        difference.isError && <Fault error={difference.error} />
      )}
      {asks && (
        <Confirm
          title={t.versions.restore}
          text={t.versions.restoreText(number)}
          act={() => act(() => call('restoreJob', { path, body: { version: number } }), t.versions.restored)}
          onDone={() => void client.invalidateQueries({ queryKey: ['job', job.namespace, job.name] })}
          onClose={() => setAsks(false)}
        />
      )}
    </Panel>
  );
}

const shown = (value: unknown) => (value === null || value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value, null, 1));

export function Changes({ changes }: { changes: Change[] }) {
  const t = useT();
  return (
    <div className="scroll-x">
      <table className="table diff">
        <thead>
          <tr>
            <th>{t.versions.field}</th>
            <th>{t.versions.before}</th>
            <th>{t.versions.after}</th>
          </tr>
        </thead>
        <tbody>
          {changes.map((change) => (
            <tr key={change.field}>
              <td>{change.field}</td>
              <td className={change.before === null ? undefined : 'before'}>{shown(change.before)}</td>
              <td className={change.after === null ? undefined : 'after'}>{shown(change.after)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
