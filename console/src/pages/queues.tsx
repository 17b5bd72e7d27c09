// Limits that jobs share: how full they are, who holds places, what waits and why. And the lines before the workers.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../api/call';
import type { Line, Queue, QueueSpecByPath } from '../api/schema';
import { useMay } from '../api/session';
import { useT, useWords, type Language } from '../i18n';
import type { Dictionary } from '../i18n/en';
import { useNamespace } from '../namespace';
import { useSending } from '../ui/form';
import { Button, Confirm, Empty, Fault, Field, Loading, PageHead, Panel, Sheet } from '../ui/parts';
import { Away, away, count } from '../ui/time';
import { useDo } from '../ui/toast';
import { Link } from '../ui/link';

export default function QueuesPage() {
  const t = useT();
  const may = useMay();
  const [namespace] = useNamespace();
  const [edits, setEdits] = useState<Queue | 'new' | null>(null);
  const queues = useQuery({ queryKey: ['queues', namespace], queryFn: () => call('listQueues', { query: { namespace: namespace || undefined, limit: 1000 } }), refetchInterval: 2000 });
  const overview = useQuery({ queryKey: ['overview'], queryFn: () => call('showOverview', {}), refetchInterval: 2000 });
  const lines = (overview.data?.lines ?? []).filter((line) => !namespace || line.namespace === namespace);
  return (
    <div className="page">
      <PageHead title={t.queues.title}>
        {may('PutQueue') && (
          <Button kind="main" onClick={() => setEdits('new')}>
            {t.queues.new}
          </Button>
        )}
      </PageHead>
      {queues.isPending ? (
        <Loading />
      ) : !queues.data ? (
        <Fault error={queues.error} retry={() => void queues.refetch()} />
      ) : queues.data.items.length === 0 ? (
        <Empty title={t.queues.emptyTitle}>
          <p>{t.queues.emptyText}</p>
        </Empty>
      ) : (
        <Panel flush>
          <table className="table">
            <thead>
              <tr>
                <th>{t.queues.name}</th>
                <th>{t.queues.limit}</th>
                <th>{t.queues.running}</th>
                <th className="number">{t.queues.depth}</th>
                <th className="number">{t.queues.parked}</th>
                <th className="number">{t.queues.oldest}</th>
                <th>{t.queues.holders}</th>
                <th />
              </tr>
            </thead>
            <tbody>
              {queues.data.items.map((queue) => (
                <Row key={`${queue.namespace}/${queue.name}`} queue={queue} onEdit={() => setEdits(queue)} />
              ))}
            </tbody>
          </table>
        </Panel>
      )}
      <Panel title={t.queues.lines} flush={lines.length > 0}>
        <Lines lines={lines} />
      </Panel>
      {edits && <QueueSheet queue={edits === 'new' ? null : edits} onClose={() => setEdits(null)} />}
    </div>
  );
}

const HOLDERS = 4;

/** What keeps those that wait from starting. */
export function whyOf(t: Dictionary, language: Language, queue: Queue): string | null {
  const { concurrency } = queue.spec;
  if (queue.depth === 0 && queue.parked === 0) return null;
  if (queue.paused) return t.queues.whyPaused;
  if (concurrency && queue.running >= concurrency) return t.queues.whyFull;
  if (queue.rate_until) return t.queues.rateUntil(away(Date.parse(queue.rate_until) - Date.now(), language));
  // What is parked is not looked at before its turn.
  const free = queue.depth - queue.parked - queue.held;
  // A key may be full with nothing behind it.
  const limit = queue.full_keys.some((key) => key.waiting > 0) ? t.queues.whyKeys : t.queues.whyJob;
  if (queue.held > 0 && free > 0) return queue.held >= free ? t.queues.whyBoth(limit, t.queues.whyWorkers) : t.queues.whyBoth(t.queues.whyWorkers, limit);
  if (queue.held > 0) return limit;
  return free > 0 ? t.queues.whyWorkers : null;
}

function Row({ queue, onEdit }: { queue: Queue; onEdit: () => void }) {
  const { t, language } = useWords();
  const may = useMay();
  const act = useDo();
  const client = useQueryClient();
  const [asks, setAsks] = useState(false);
  const path = { namespace: queue.namespace, name: queue.name };
  const { spec } = queue;
  const again = () => client.invalidateQueries({ queryKey: ['queues'] });
  const limits = [
    spec.concurrency ? t.queues.atOnce(spec.concurrency) : null,
    spec.per_key && spec.key ? t.queues.perKeyShort(spec.per_key, spec.key) : null,
    spec.rate ?? null,
  ].filter(Boolean);
  const why = whyOf(t, language, queue);
  const others = queue.running - Math.min(queue.holders.length, HOLDERS);
  return (
    <tr>
      <td>
        <span className="name">{queue.name}</span> {queue.paused && <span className="tag" data-tone="warning">{t.jobs.paused}</span>}
        <div className="quiet">{queue.namespace}</div>
      </td>
      <td>
        {limits.length === 0 && t.queues.unlimited}
        {limits.map((limit) => (
          <div key={limit} className="limit">
            {limit}
          </div>
        ))}
      </td>
      <td>
        {spec.concurrency ? (
          <>
            <span className="meter" data-tone={queue.running >= spec.concurrency ? 'warning' : 'running'}>
              <span style={{ width: `${(100 * queue.running) / spec.concurrency}%` }} />
            </span>
            <span className="quiet">{t.of(queue.running, spec.concurrency)}</span>
          </>
        ) : (
          count(queue.running, language)
        )}
      </td>
      <td className="number">
        {count(queue.depth, language)}
        {why && <div className="quiet reason">{why}</div>}
      </td>
      <td className="number">{count(queue.parked, language)}</td>
      <td className="number">
        <Away at={queue.oldest} />
      </td>
      <td>
        <span className="chips">
          {queue.holders.slice(0, HOLDERS).map((run) => (
            <Link key={run} href={`/runs/${run}`} className="tag">
              {run}
            </Link>
          ))}
          {others > 0 && (
            <span className="tag" title={t.queues.otherHoldersHint(others)}>
              {t.queues.otherHolders(others)}
            </span>
          )}
          {queue.full_keys.map((key) => (
            <span key={key.value} className="tag" data-tone="warning" title={t.queues.full}>
              {key.value}: {key.waiting}
            </span>
          ))}
        </span>
      </td>
      <td className="fit">
        {may('PauseQueue') &&
          (queue.paused ? (
            <Button size="small" onClick={() => void act(() => call('resumeQueue', { path }), t.queues.resumed).then(again)}>
              {t.queues.resume}
            </Button>
          ) : (
            <Button size="small" onClick={() => void act(() => call('pauseQueue', { path }), t.queues.paused).then(again)}>
              {t.queues.pause}
            </Button>
          ))}{' '}
        {may('PutQueue') && (
          <Button size="small" onClick={onEdit}>
            {t.queues.edit}
          </Button>
        )}{' '}
        {may('DeleteQueue') && (
          <Button size="small" kind="danger" onClick={() => setAsks(true)}>
            {t.queues.remove}
          </Button>
        )}
        {asks && <Confirm danger title={t.queues.remove} text={t.queues.removeText} act={() => call('deleteQueue', { path })} onDone={() => void again()} onClose={() => setAsks(false)} />}
      </td>
    </tr>
  );
}

function Lines({ lines }: { lines: Line[] }) {
  const { t, language } = useWords();
  if (lines.length === 0) return <p className="quiet">{t.queues.lineEmpty}</p>;
  return (
    <table className="table">
      <thead>
        <tr>
          <th>{t.queues.need}</th>
          <th>{t.namespace.label}</th>
          <th className="number">{t.queues.priority}</th>
          <th className="number">{t.queues.weight}</th>
          <th className="number">{t.queues.forPlace}</th>
          <th className="number">{t.queues.forWorker}</th>
          <th className="number">{t.queues.oldest}</th>
          <th className="number">{t.queues.workers}</th>
        </tr>
      </thead>
      <tbody>
        {lines.map((line) => (
          <tr key={`${line.namespace} ${line.need} ${line.priority} ${line.weight}`}>
            <td className="mono">{line.need}</td>
            <td>{line.namespace}</td>
            <td className="number">{line.priority}</td>
            <td className="number">{line.weight}</td>
            <td className="number">
              {count(line.held, language)}
              {line.parked && line.held > 0 ? '+' : ''}
            </td>
            <td className="number">
              {count(line.waiting - line.held, language)}
              {line.parked && line.held === 0 ? '+' : ''}
            </td>
            <td className="number">
              <Away at={line.oldest} />
            </td>
            <td className="number" data-tone={line.workers === 0 ? 'failed' : undefined}>
              <span className={line.workers === 0 ? 'state' : undefined}>{line.workers}</span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function QueueSheet({ queue, onClose }: { queue: Queue | null; onClose: () => void }) {
  const t = useT();
  const client = useQueryClient();
  const [chosen] = useNamespace();
  const spec = queue?.spec;
  const [form, setForm] = useState({
    name: queue?.name ?? '',
    concurrency: String(spec?.concurrency ?? ''),
    rate: spec?.rate ?? '',
    key: spec?.key ?? '',
    per_key: String(spec?.per_key ?? ''),
  });
  const { busy, fault, rest, send } = useSending(Object.keys(form), { invalid_parameter: 'name' });
  const field = (key: keyof typeof form, label: string, hint?: string, type = 'text') => (
    <Field label={label} hint={hint} fault={fault(key)}>
      {(id) => <input id={id} className="input" type={type} value={form[key]} aria-invalid={fault(key) !== null} onChange={(event) => setForm({ ...form, [key]: event.target.value })} />}
    </Field>
  );
  const save = async () => {
    const number = (text: string) => (text ? Number(text) : undefined);
    const body: QueueSpecByPath = {
      ...spec,
      kind: 'Queue',
      concurrency: number(form.concurrency),
      rate: form.rate || undefined,
      key: form.key || undefined,
      per_key: number(form.per_key),
    };
    const path = { namespace: queue?.namespace ?? (chosen || 'default'), name: form.name };
    const done = await send(() => call('putQueue', { path, body, absent: !queue, match: queue ? `"q${queue.revision}"` : undefined }), t.editor.applied);
    await client.invalidateQueries({ queryKey: ['queues'] });
    if (done) onClose();
  };
  return (
    <Sheet title={queue ? queue.name : t.queues.new} onClose={onClose}>
      {!queue && field('name', t.queues.name, t.editor.nameHint)}
      {field('concurrency', t.queues.concurrency, undefined, 'number')}
      {field('rate', t.queues.rate, t.queues.rateHint)}
      {field('key', t.queues.key, t.queues.keyHint)}
      {field('per_key', t.queues.perKey, undefined, 'number')}
      {rest !== null && <Fault error={rest} />}
      <div className="row">
        <Button kind="main" disabled={!form.name || busy} onClick={() => void save()}>
          {t.save}
        </Button>
        <Button kind="plain" onClick={onClose}>
          {t.cancel}
        </Button>
      </div>
    </Sheet>
  );
}
