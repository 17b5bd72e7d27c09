// Small pictures in a row of a table: the course of a figure, and the last outcomes of a job.
import type { RunState, RunSummary } from '../api/schema';
import { useT } from '../i18n';
import { duration } from '../ui/time';
import { Link } from '../ui/link';

const WIDTH = 96;
const HEIGHT = 24;

export function Spark({ values, most, tone, label }: { values: number[]; most: number; tone: string; label: string }) {
  const step = WIDTH / Math.max(values.length - 1, 1);
  const y = (value: number) => HEIGHT - 2 - (Math.min(value, most) / Math.max(most, 1e-9)) * (HEIGHT - 4);
  const line = values.map((value, index) => `${index === 0 ? 'M' : 'L'}${(index * step).toFixed(1)} ${y(value).toFixed(1)}`).join('');
  return (
    <svg className="spark" data-tone={tone} width={WIDTH} height={HEIGHT} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
      {values.length > 1 && (
        <>
          <path d={`${line}L${WIDTH} ${HEIGHT}L0 ${HEIGHT}Z`} fill="var(--tone-soft)" stroke="none" />
          <path d={line} fill="none" stroke="var(--tone)" strokeWidth="1.5" />
        </>
      )}
    </svg>
  );
}

type Outcome = Pick<RunSummary, 'id' | 'state' | 'duration_ms'>;

/** The last runs of a job, oldest first: colour is the outcome, height the duration. */
export function Outcomes({ runs }: { runs: Outcome[] }) {
  const t = useT();
  const longest = Math.max(...runs.map((run) => run.duration_ms ?? 0), 1);
  const height = (run: Outcome) => 30 + 70 * Math.sqrt((run.duration_ms ?? 0) / longest);
  return (
    <span className="bars">
      {[...runs].reverse().map((run) => (
        <Link
          key={run.id}
          href={`/runs/${run.id}`}
          data-state={run.state satisfies RunState}
          style={{ height: `${height(run)}%` }}
          title={`${t.state[run.state]} · ${duration(run.duration_ms)}`}
          aria-label={`${t.state[run.state]}, ${run.id}`}
        />
      ))}
    </span>
  );
}
