// The jobs that a job runs after: which ends count, and what has come of each since the last time.
import { useQueryClient } from '@tanstack/react-query';
import { useTidings } from '../api/live';
import type { Arrived, Job } from '../api/schema';
import { afterRule } from '../edit/manifest';
import { useT } from '../i18n';
import { Panel } from '../ui/parts';
import { StateMark, isOver } from '../ui/state';
import { When } from '../ui/time';
import { Link } from '../ui/link';

export function RunsAfter({ job }: { job: Job }) {
  const t = useT();
  const { namespace, waits } = job;
  const { after } = job.spec;
  const client = useQueryClient();
  useTidings(({ runs }) => {
    const isOf = (name: string) => name === job.name || after?.jobs.includes(name);
    if (runs.some((run) => isOver(run.state) && run.namespace === namespace && isOf(run.job))) void client.invalidateQueries({ queryKey: ['job', namespace, job.name], exact: true });
  });
  if (!after || !waits) return null;
  const { arrived, unmade } = waits;
  const need = after.need ?? 'all';
  const come = after.jobs.filter((name) => arrived[name]).length;
  // What any of them needs is there as soon as it has come: nothing is kept.
  const isKept = need === 'all' && after.jobs.length > 1;
  return (
    <Panel title={t.job.after} aside={isKept && <span className="quiet">{t.of(come, after.jobs.length)}</span>}>
      <div className="stack-tight">
        <p className="quiet">{afterRule(t, after)}</p>
        <ul className="befores">
          {after.jobs.map((name) => (
            <li key={name}>
              <Link href={`/jobs/${namespace}/${name}`} className="state name" data-state={arrived[name]?.state ?? 'PENDING'}>
                <StateMark state={arrived[name]?.state ?? 'PENDING'} />
                {name}
              </Link>
              {isKept && <Come arrived={arrived[name]} />}
            </li>
          ))}
        </ul>
        {unmade && (
          <p className="quiet">
            {t.job.unmade(unmade.count)}{' '}
            <Link href={`/runs/${unmade.run}`} className="mono">
              {unmade.run}
            </Link>{' '}
            ({t.unfired[unmade.reason] ?? unmade.reason})
          </p>
        )}
      </div>
    </Panel>
  );
}

function Come({ arrived }: { arrived: Arrived | undefined }) {
  const t = useT();
  if (!arrived) return <span className="quiet">{t.job.yetToEnd}</span>;
  return (
    <span>
      <Link href={`/runs/${arrived.run}`} className="mono">
        {arrived.run}
      </Link>{' '}
      <span className="quiet">
        <When at={arrived.at} />
      </span>
    </span>
  );
}
