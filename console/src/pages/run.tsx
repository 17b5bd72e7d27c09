// One run: what happened, why it is where it is, what it wrote, and what can be done about it.
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useLocation } from 'wouter';
import { call } from '../api/call';
import type { Attempt, Run, RunExplanation } from '../api/schema';
import { useMay } from '../api/session';
import { useT } from '../i18n';
import { Log } from '../log/log';
import { Json, JsonField, parsed } from '../ui/json';
import { Button, Command, Confirm, Fault, Loading, PageHead, Panel, Quoted, Sheet } from '../ui/parts';
import { RunStateLabel, isOver } from '../ui/state';
import { When, bytes, duration, useNow } from '../ui/time';
import { useDo } from '../ui/toast';
import { Link } from '../ui/link';

export default function RunPage({ id }: { id: string }) {
  const run = useQuery({
    queryKey: ['run', id, 'itself'],
    queryFn: () => call('showRun', { path: { id } }),
    // Progress is told now and then; the state comes by the stream.
    refetchInterval: (query) => (query.state.data && isOver(query.state.data.state) ? false : 3000),
  });
  if (run.isPending) return <Loading />;
  if (!run.data) {
    return (
      <div className="page">
        <Fault error={run.error} retry={() => void run.refetch()} />
      </div>
    );
  }
  return <Shown run={run.data} />;
}

function Shown({ run }: { run: Run }) {
  const t = useT();
  const explanation = useQuery<RunExplanation>({
    queryKey: ['run', run.id, 'explain'],
    queryFn: () => call('explainRun', { path: { id: run.id } }),
    refetchInterval: isOver(run.state) ? false : 3000,
  });
  const job = run.job ? `/jobs/${run.namespace}/${run.job}` : null;
  return (
    <div className="page">
      <PageHead
        title={<span className="mono">{run.id}</span>}
        crumbs={
          <>
            {run.namespace} / {job ? <Link href={job}>{run.job}</Link> : t.run.jobGone} / {t.nav.runs}
          </>
        }
        note={
          <span className="row">
            <RunStateLabel state={run.state} />
            {run.waiting && !t.told && <span>{run.waiting}</span>}
          </span>
        }
      >
        <Acts run={run} />
      </PageHead>
      {run.progress && !isOver(run.state) && <Progress run={run} />}
      <Headline run={run} explanation={explanation.data} />
      <div className="columns-wide">
        <div className="stack">
          <Panel title={t.run.log}>
            <Log run={run.id} attempts={run.attempts.length} over={isOver(run.state)} />
          </Panel>
          <Panel title={t.run.attempts} flush>
            <Attempts run={run} />
          </Panel>
        </div>
        <div className="stack">
          {explanation.data ? <Explained run={run} explanation={explanation.data} /> : explanation.isError && <Fault error={explanation.error} />}
          <Panel title={t.run.facts}>
            <Facts run={run} />
          </Panel>
          {run.params !== null && (
            <Panel title={t.run.params}>
              <Json value={run.params} />
            </Panel>
          )}
          {run.result !== null && (
            <Panel title={t.run.result}>
              <Json value={run.result} />
            </Panel>
          )}
        </div>
      </div>
    </div>
  );
}

function Progress({ run }: { run: Run }) {
  const t = useT();
  if (!run.progress) return null;
  return (
    <div className="stack-tight" data-state="RUNNING">
      <span>
        {t.run.progress} {run.progress.percent} % {run.progress.message && <span className="quiet">{run.progress.message}</span>}
      </span>
      <span className="meter">
        <span style={{ width: `${run.progress.percent}%` }} />
      </span>
    </div>
  );
}

function Acts({ run }: { run: Run }) {
  const t = useT();
  const may = useMay();
  const act = useDo();
  const [, go] = useLocation();
  const [asks, setAsks] = useState<'cancel' | 'rerun' | null>(null);
  const rerun = async (body: { params?: unknown; resume?: boolean; version?: 'current' | 'original' }) => {
    await act(async () => {
      const made = await call('rerunRun', { path: { id: run.id }, body });
      go(`/runs/${made.id}`);
    }, t.run.rerunDone);
  };
  return (
    <>
      {!isOver(run.state) && may('CancelRun') && (
        <Button kind="danger" onClick={() => setAsks('cancel')}>
          {t.run.cancel}
        </Button>
      )}
      {isOver(run.state) && run.job && may('RerunRun') && (
        <>
          {run.checkpoint && run.state !== 'COMPLETED' && <Button onClick={() => void rerun({ resume: true })}>{t.run.resume}</Button>}
          <Button onClick={() => setAsks('rerun')}>{t.run.rerunParams}</Button>
          <Button kind="main" onClick={() => void rerun({})}>
            {t.run.rerun}
          </Button>
        </>
      )}
      {asks === 'cancel' && (
        <Confirm danger title={t.run.cancel} text={t.run.cancelText} act={() => act(() => call('cancelRun', { path: { id: run.id } }), t.run.cancelled)} onClose={() => setAsks(null)} />
      )}
      {asks === 'rerun' && <RerunSheet run={run} onRun={rerun} onClose={() => setAsks(null)} />}
    </>
  );
}

function RerunSheet({ run, onRun, onClose }: { run: Run; onRun: (body: { params?: unknown; version: 'current' | 'original' }) => Promise<void>; onClose: () => void }) {
  const t = useT();
  const [text, setText] = useState(() => JSON.stringify(run.params ?? {}, null, 2));
  const [original, setOriginal] = useState(false);
  const { value, wrong } = parsed(text);
  return (
    <Sheet title={t.run.rerunParams} onClose={onClose}>
      <JsonField label={t.run.params} text={text} onChange={setText} rows={10} />
      <label className="row">
        <input type="checkbox" checked={original} onChange={(event) => setOriginal(event.target.checked)} />
        {t.run.original}
      </label>
      <div className="row">
        <Button kind="main" disabled={wrong} onClick={() => void onRun({ params: value, version: original ? 'original' : 'current' }).then(onClose)}>
          {t.run.rerun}
        </Button>
        <Button kind="plain" onClick={onClose}>
          {t.cancel}
        </Button>
      </div>
    </Sheet>
  );
}

const TONES: Record<string, string> = {
  succeeded: 'completed',
  started: 'running',
  started_late: 'warning',
  went_on_from_checkpoint: 'running',
  checkpoint_saved: 'running',
  assigned: 'scheduled',
  failed: 'failed',
  timed_out: 'failed',
  start_timed_out: 'failed',
  lost: 'failed',
  stopped: 'cancelled',
  cancelled: 'cancelled',
  cancel_requested: 'cancelled',
};

/** Why it is where it is, and its error where those words do not say it. */
function Headline({ run, explanation }: { run: Run; explanation: RunExplanation | undefined }) {
  const t = useT();
  const text = explanation ? (t.told?.headline(explanation.headline.code, run) ?? explanation.headline.text) : '';
  const error = run.error && !text.includes(run.error) ? run.error : null;
  if (!text && !error) return null;
  return (
    <div className="notice" data-state={run.state}>
      <strong>{t.run.why}</strong>
      {text && (
        <span>
          <Quoted text={text} />
        </span>
      )}
      {error && <pre className="said">{error}</pre>}
    </div>
  );
}

function Explained({ run, explanation }: { run: Run; explanation: RunExplanation }) {
  const t = useT();
  const { timeline, advice } = explanation;
  return (
    <>
      {advice.length > 0 && (
        <Panel title={t.run.advice}>
          <div className="stack-tight">
            {advice.map((one) => (
              <div key={one.code + one.text} className="stack-tight">
                <span>
                  <Quoted text={t.told?.advice(one.code) ?? one.text} />
                </span>
                {one.commands.map((text) => (
                  <Command key={text} text={text} />
                ))}
              </div>
            ))}
          </div>
        </Panel>
      )}
      <Panel title={t.run.timeline}>
        <ol className="course">
          {timeline.map((event, index) => (
            <li key={index} data-tone={TONES[event.code] ?? 'pending'}>
              <span className="dot" />
              <When at={event.at} />
              <span>
                <Quoted text={t.told?.event(event, run) ?? event.text} />
              </span>
            </li>
          ))}
        </ol>
      </Panel>
    </>
  );
}

function Facts({ run }: { run: Run }) {
  const t = useT();
  return (
    <dl className="facts">
      <dt>{t.run.due}</dt>
      <dd>
        <When at={run.due} />
      </dd>
      <dt>{t.run.created}</dt>
      <dd>
        <When at={run.created} /> <span className="quiet">{t.origin[run.origin]}</span>
      </dd>
      {run.finished && (
        <>
          <dt>{t.run.finished}</dt>
          <dd>
            <When at={run.finished} />
          </dd>
        </>
      )}
      <dt>{t.run.actor}</dt>
      <dd>{run.actor}</dd>
      <dt>{t.run.version}</dt>
      <dd>{run.job_version}</dd>
      {run.backfill && (
        <>
          <dt>{t.backfills.ofJob}</dt>
          <dd>
            <Link href={`/backfills/${run.backfill}`} className="mono">
              {run.backfill}
            </Link>
          </dd>
        </>
      )}
      {run.rerun_of && (
        <>
          <dt>{t.run.rerunOf}</dt>
          <dd>
            <Link href={`/runs/${run.rerun_of}`} className="mono">
              {run.rerun_of}
            </Link>
          </dd>
        </>
      )}
      {run.parent_run && (
        <>
          <dt>{t.run.parentRun}</dt>
          <dd>
            <Link href={`/runs/${run.parent_run}`} className="mono">
              {run.parent_run}
            </Link>
          </dd>
        </>
      )}
      {run.checkpoint && (
        <>
          <dt>{t.run.checkpoint}</dt>
          <dd>
            {t.run.checkpointText(run.checkpoint.number, bytes(run.checkpoint.bytes))} <When at={run.checkpoint.at} />
          </dd>
        </>
      )}
      {run.idempotency_key && (
        <>
          <dt>{t.run.key}</dt>
          <dd className="mono">{run.idempotency_key}</dd>
        </>
      )}
    </dl>
  );
}

const OUTCOME_TONES: Record<string, string> = { succeeded: 'completed', failed: 'failed', timed_out: 'failed', lost: 'failed', undelivered: 'warning', cancelled: 'cancelled', snoozed: 'pending' };

/** Attempts as bars over the time of the run, and their figures. */
function Attempts({ run }: { run: Run }) {
  const t = useT();
  const now = useNow(isOver(run.state) ? 3_600_000 : 1000);
  const begin = Date.parse(run.created);
  const end = Math.max(run.finished ? Date.parse(run.finished) : now, begin + 1);
  const share = (at: string | null, otherwise: number) => (100 * ((at ? Date.parse(at) : otherwise) - begin)) / (end - begin);
  if (run.attempts.length === 0) return <p className="loading">{t.run.waiting}</p>;
  return (
    <div className="stack">
      <div className="panel-body gantt">
        {run.attempts.map((attempt) => {
          const [from, start, to] = [share(attempt.assigned, begin), share(attempt.started, end), share(attempt.end?.at ?? null, end)].map((at) => Math.min(100, Math.max(0, at))) as [number, number, number];
          const tone = attempt.end ? OUTCOME_TONES[attempt.end.outcome] : 'running';
          return (
            <div key={attempt.number} className="gantt-row" data-tone={tone}>
              <span className="quiet">{t.runs.attempt(attempt.number)}</span>
              <span className="gantt-lane">
                <span data-part="wait" style={{ left: `${from}%`, width: `${Math.max(0, start - from)}%` }} />
                <span style={{ left: `${start}%`, width: `${Math.max(0, to - start)}%` }} />
              </span>
            </div>
          );
        })}
      </div>
      <table className="table">
        <thead>
          <tr>
            <th>#</th>
            <th>{t.run.worker}</th>
            <th>{t.run.outcome}</th>
            <th>{t.run.started}</th>
            <th className="number">{t.run.duration}</th>
            <th className="number">{t.run.cpu}</th>
            <th className="number">{t.run.memory}</th>
          </tr>
        </thead>
        <tbody>
          {run.attempts.map((attempt) => (
            <AttemptRow key={attempt.number} attempt={attempt} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function AttemptRow({ attempt }: { attempt: Attempt }) {
  const t = useT();
  const { end } = attempt;
  const how = end && (end.exit_code !== null ? t.runs.exit(end.exit_code) : end.http_status !== null ? `HTTP ${end.http_status}` : end.signal !== null ? t.runs.signal(end.signal) : '');
  return (
    <tr>
      <td className="fit">{attempt.number}</td>
      <td>
        <Link href={`/workers/${attempt.worker}`}>{attempt.worker}</Link>
      </td>
      <td data-tone={end ? OUTCOME_TONES[end.outcome] : 'running'}>
        <span className="state">{end ? t.outcome[end.outcome] : t.run.ranOn}</span> <span className="quiet">{how}</span>
      </td>
      <td>
        <When at={attempt.started} />
      </td>
      <td className="number">{end ? duration(end.duration_ms) : '–'}</td>
      <td className="number">{end ? duration(end.cpu_ms) : '–'}</td>
      <td className="number">{end ? bytes(end.peak_memory_bytes) : '–'}</td>
    </tr>
  );
}
