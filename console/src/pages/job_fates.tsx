// What became of every due time of a job, as a calendar: a row is a day, a square an hour, its colour the worst in it.
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { call } from '../api/call';
import type { Explained, Job } from '../api/schema';
import { byHour, dayBefore, hoursOf, toneOf, type Tone } from '../charts/heat';
import { useWords } from '../i18n';
import { Fault, Loading, Panel, Quoted } from '../ui/parts';
import { When } from '../ui/time';
import { Link } from '../ui/link';

const DAYS = 14;
/** Due times that are looked at for one picture. */
const MOST_ROWS = 20_000;
const A_CALL = 10_000;

/** Reads the newest days first, until so many times were read that a picture of more would not be looked at. */
async function read(path: { namespace: string; name: string }): Promise<{ rows: Explained[]; since: number; cut: boolean }> {
  const now = Date.now();
  const rows: Explained[] = [];
  let since = now;
  for (let day = 0; day < DAYS && rows.length < MOST_ROWS; day++) {
    const [from, to] = [dayBefore(now, day), dayBefore(now, day - 1)];
    const span = { from: new Date(from).toISOString(), to: new Date(to).toISOString() };
    let cursor: string | undefined;
    do {
      const page = await call('explainJob', { path, query: { ...span, limit: A_CALL, cursor } });
      rows.push(...page.rows);
      cursor = page.next ?? undefined;
    } while (cursor && rows.length < MOST_ROWS);
    since = from;
  }
  return { rows, since, cut: rows.length >= MOST_ROWS };
}

export function JobFates({ job }: { job: Job }) {
  const { t, language } = useWords();
  const path = { namespace: job.namespace, name: job.name };
  const fates = useQuery({ queryKey: ['fates', job.id], queryFn: () => read(path), staleTime: 20_000, refetchInterval: 30_000 });
  const [chosen, choose] = useState<number | null>(null);
  const today = dayBefore(Date.now(), 0);
  const days = useMemo(() => Array.from({ length: DAYS }, (_, index) => dayBefore(today, DAYS - 1 - index)).map((day) => ({ day, cells: hoursOf(day) })), [today]);
  const hours = useMemo(() => byHour(fates.data?.rows ?? [], days.flatMap(({ cells }) => cells)), [fates.data, days]);
  if (fates.isPending) return <Loading />;
  if (!fates.data) return <Fault error={fates.error} retry={() => void fates.refetch()} />;
  const dayName = new Intl.DateTimeFormat(language === 'zh' ? 'zh-CN' : 'en-GB', { weekday: 'short', day: 'numeric', month: 'numeric' });
  const picked = chosen === null ? undefined : hours.get(chosen);
  const legend: [Tone, string][] = [
    ['completed', t.fate.legend.completed],
    ['failed', t.fate.legend.failed],
    ['warning', t.fate.legend.unfired],
    ['running', t.fate.legend.running],
    ['planned', t.fate.legend.planned],
    ['none', t.fate.legend.none],
  ];
  return (
    <div className="stack">
      <Panel title={t.fate.title}>
        <div className="stack">
          <p className="quiet">{t.fate.text}</p>
          <div className="heat">
            <div className="heat-row" aria-hidden="true">
              <span />
              {Array.from({ length: 24 }, (_, hour) => (
                <span key={hour}>{hour % 6 === 0 ? hour : ''}</span>
              ))}
            </div>
            {days.map(({ day, cells }) => (
              <div key={day} className="heat-row">
                <span>{dayName.format(day)}</span>
                {cells.map(({ hour, from }) => {
                  const found = hours.get(from);
                  const due = found?.whole ? t.fate.duePart(found.count, found.whole) : t.fate.due(found?.count ?? 0);
                  const name = `${dayName.format(day)} ${hour}:00, ${due}`;
                  // One failure of many is paler than many of many; an hour that the clock leaves out has no square.
                  const look = { '--deep': `${found ? 45 + 55 * found.share : 100}%`, gridColumn: hour + 2 } as React.CSSProperties;
                  return <button key={hour} type="button" data-tone={found?.tone ?? 'none'} style={look} disabled={!found} aria-pressed={chosen === from} aria-label={name} title={name} onClick={() => choose(from)} />;
                })}
              </div>
            ))}
          </div>
          <div className="row legend">
            {legend.map(([tone, label]) => (
              <span key={tone} className="key" data-tone={tone}>
                <i style={{ background: 'var(--tone)' }} />
                {label}
              </span>
            ))}
          </div>
          {fates.data.cut && <p className="quiet">{t.fate.more}</p>}
        </div>
      </Panel>
      {picked ? <Times rows={picked.rows} /> : <p className="quiet">{t.fate.pick}</p>}
    </div>
  );
}

function Times({ rows }: { rows: Explained[] }) {
  const { t } = useWords();
  return (
    <Panel flush>
      <table className="table">
        <thead>
          <tr>
            <th>{t.fate.when}</th>
            <th>{t.fate.what}</th>
            <th>{t.runs.run}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.first + row.fate} data-tone={toneOf(row)}>
              <td className="fit">
                <When at={row.first} />
                {row.count > 1 && (
                  <>
                    {' – '}
                    <When at={row.last} /> <span className="quiet">×{row.count}</span>
                  </>
                )}
              </td>
              <td>
                <Quoted text={t.told?.fate(row) ?? row.text} />
              </td>
              <td className="fit">
                {row.run && (
                  <Link href={`/runs/${row.run}`} className="state" data-state={row.state ?? undefined}>
                    {row.run}
                  </Link>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  );
}
