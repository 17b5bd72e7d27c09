// A backfill that is yet to be: tried first, so that nobody starts a thousand runs by a slip.
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useLocation, useSearchParams } from 'wouter';
import { call } from '../api/call';
import type { BackfillOrder, BackfillPreview, BackfillWhich, NewBackfill } from '../api/schema';
import { useMay } from '../api/session';
import { useT, useWords } from '../i18n';
import { useNamespace } from '../namespace';
import { useSending } from '../ui/form';
import { JsonField, parsed } from '../ui/json';
import { Link } from '../ui/link';
import { Button, Fault, Field, PageHead, Panel } from '../ui/parts';
import { When, count } from '../ui/time';

const DAY_MS = 86_400_000;
const FIELDS = ['name', 'from', 'to', 'max_active', 'priority', 'params'];

/** What a field for a day and a time takes, in the browser's own time zone. */
function local(at: number): string {
  const zone = new Date(at).getTimezoneOffset() * 60_000;
  return new Date(at - zone).toISOString().slice(0, 16);
}

interface Form {
  job: string;
  from: string;
  to: string;
  which: BackfillWhich;
  order: BackfillOrder;
  maxActive: string;
  priority: string;
  params: string;
  obey: boolean;
  force: boolean;
}

function bodyOf(form: Form): NewBackfill {
  const number = (text: string) => (text.trim() === '' ? undefined : Number(text));
  return {
    from: new Date(form.from).toISOString(),
    to: new Date(form.to).toISOString(),
    which: form.which,
    order: form.order,
    max_active: number(form.maxActive),
    priority: number(form.priority),
    params: parsed(form.params).value,
    overlap: form.obey ? 'obey' : undefined,
    force: form.force || undefined,
  };
}

export default function NewBackfillPage() {
  const t = useT();
  const may = useMay();
  const client = useQueryClient();
  const [, go] = useLocation();
  const [search] = useSearchParams();
  const [chosen] = useNamespace();
  const namespace = search.get('namespace') ?? (chosen || 'default');
  const { busy, fault, rest, send } = useSending(FIELDS, { no_such_job: 'name', invalid_parameter: 'name' });
  const [preview, setPreview] = useState<BackfillPreview | null>(null);
  const [form, setForm] = useState<Form>(() => ({
    job: search.get('job') ?? '',
    from: local(Date.now() - DAY_MS),
    to: local(Date.now()),
    which: 'missing',
    order: 'oldest_first',
    maxActive: '1',
    priority: '',
    params: '',
    obey: false,
    force: false,
  }));
  const change = (part: Partial<Form>) => {
    setForm({ ...form, ...part });
    // What was tried is not what stands there any more.
    setPreview(null);
  };
  const path = { namespace, name: form.job.trim() };
  const tryIt = () => send(async () => setPreview(await call('previewBackfill', { path, body: bodyOf(form) })));
  const start = () =>
    send(async () => {
      const made = await call('createBackfill', { path, body: bodyOf(form) });
      await client.invalidateQueries({ queryKey: ['backfills'] });
      go(`/backfills/${made.id}`);
    }, t.backfills.started);
  const isWhole = form.job.trim() !== '' && form.from !== '' && form.to !== '' && !parsed(form.params).wrong;
  return (
    <div className="page">
      <PageHead
        title={t.backfills.new}
        crumbs={
          <>
            <Link href="/backfills">{t.nav.backfills}</Link> / {namespace}
          </>
        }
      />
      <div className="editor">
        <Panel>
          <Fields form={form} change={change} fault={fault} />
        </Panel>
        <div className="stack">
          {rest !== null && <Fault error={rest} />}
          <Panel title={t.backfills.previewTitle}>
            {preview ? <Foreseen preview={preview} /> : <p className="quiet">{t.backfills.previewFirst}</p>}
          </Panel>
          <div className="row">
            <Button kind={preview ? undefined : 'main'} disabled={!isWhole || busy} onClick={() => void tryIt()}>
              {t.backfills.preview}
            </Button>
            {may('CreateBackfill') && (
              <Button kind={preview ? 'main' : undefined} disabled={!isWhole || busy || !preview || preview.runs === 0} onClick={() => void start()}>
                {t.backfills.start}
              </Button>
            )}
          </div>
        </div>
      </div>
    </div>
  );
}

function Fields({ form, change, fault }: { form: Form; change: (part: Partial<Form>) => void; fault: (field: string) => string | null }) {
  const t = useT();
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const input = (label: string, key: 'job' | 'from' | 'to' | 'maxActive' | 'priority', type: string, name: string, hint?: string) => (
    <Field label={label} hint={hint} fault={fault(name)}>
      {(id) => <input id={id} className="input" type={type} value={form[key]} aria-invalid={fault(name) !== null} onChange={(event) => change({ [key]: event.target.value })} />}
    </Field>
  );
  const select = <K extends 'which' | 'order'>(label: string, key: K, choices: Record<Form[K], string>) => (
    <Field label={label}>
      {(id) => (
        <select id={id} className="select" value={form[key]} onChange={(event) => change({ [key]: event.target.value } as Partial<Form>)}>
          {Object.entries(choices).map(([value, words]) => (
            <option key={value} value={value}>
              {words as string}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
  return (
    <div className="stack">
      {input(t.backfills.job, 'job', 'text', 'name', t.backfills.jobHint)}
      <div className="fields">
        {input(t.backfills.from, 'from', 'datetime-local', 'from', t.backfills.zoneHint(zone))}
        {input(t.backfills.to, 'to', 'datetime-local', 'to', t.backfills.zoneHint(zone))}
        {select(t.backfills.which, 'which', t.backfills.whichChoices)}
        {select(t.backfills.order, 'order', t.backfills.orderChoices)}
        {input(t.backfills.maxActive, 'maxActive', 'number', 'max_active')}
        {input(t.backfills.priority, 'priority', 'number', 'priority', t.backfills.priorityHint)}
      </div>
      <JsonField label={t.backfills.params} hint={t.backfills.paramsHint} text={form.params} onChange={(params) => change({ params })} rows={3} fault={fault('params')} />
      <label className="row">
        <input type="checkbox" checked={form.obey} onChange={(event) => change({ obey: event.target.checked })} />
        {t.backfills.obey}
      </label>
      <label className="row">
        <input type="checkbox" checked={form.force} onChange={(event) => change({ force: event.target.checked })} />
        {t.backfills.force}
      </label>
    </div>
  );
}

function Foreseen({ preview }: { preview: BackfillPreview }) {
  const { t, language } = useWords();
  const fates = Object.entries(preview.fates).filter(([, fate]) => fate.count > 0);
  return (
    <div className="stack-tight">
      <p>
        <strong>{t.backfills.previewRuns(preview.runs, preview.times)}</strong>
      </p>
      {fates.length > 0 && (
        <table className="table" aria-label={t.backfills.previewTitle}>
          <thead>
            <tr>
              <th>{t.backfills.fate}</th>
              <th className="number">{t.backfills.count}</th>
              <th>{t.backfills.taken}</th>
              <th>{t.backfills.earliest}</th>
            </tr>
          </thead>
          <tbody>
            {fates.map(([name, fate]) => (
              <tr key={name}>
                <td>{t.backfills.fates[name] ?? name}</td>
                <td className="number">{count(fate.count, language)}</td>
                <td>{fate.taken ? t.backfills.yes : t.backfills.no}</td>
                <td>
                  <When at={fate.first[0]} dated />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}
