// The form of a job: what most jobs need. It reads the manifest and writes single values into it.
import { useState } from 'react';
import type { ScheduleEntry } from '../api/schema';
import { useT } from '../i18n';
import { JsonField, parsed } from '../ui/json';
import { Field } from '../ui/parts';
import { AfterFields } from './after_fields';
import { kindOf, labelsOf, line, taskLike, taskOf, whenLike, whenOf, words, type Spec, type TaskKind, type WhenKind } from './manifest';
import { TextField } from './text_field';

interface Props {
  spec: Spec;
  set: (path: string[], value: unknown) => void;
  isNew: boolean;
  /** The key that the server objects to, and why. */
  fault: { field: string; text: string } | null;
}

const ZONES = Intl.supportedValuesOf('timeZone');
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
const OVERLAPS = ['skip', 'allow', 'queue', 'cancel_old', 'fail'] as const;

export function JobForm({ spec, set, isNew, fault }: Props) {
  const t = useT();
  const wrong = (field: string) => (fault && (fault.field === field || fault.field.startsWith(`${field}.`) || fault.field.startsWith(`${field}[`)) ? fault.text : null);
  const text = (path: string[], value: string) => set(path, value === '' ? undefined : value);
  const number = (path: string[], value: string) => set(path, value === '' ? undefined : Number(value));
  return (
    <div className="stack">
      {isNew && (
        <div className="fields">
          <TextField label={t.editor.name} hint={t.editor.nameHint} value={spec.name ?? ''} onChange={(value) => set(['name'], value)} fault={wrong('name')} />
          <TextField label={t.editor.namespace} value={spec.namespace ?? ''} placeholder="default" onChange={(value) => text(['namespace'], value)} fault={wrong('namespace')} />
        </div>
      )}
      <TextField label={t.editor.description} value={spec.description ?? ''} onChange={(value) => text(['description'], value)} fault={wrong('description')} />
      <TaskFields spec={spec} set={set} wrong={wrong} />
      <WhenFields spec={spec} set={set} wrong={wrong} />
      <AfterFields after={spec.after} set={(value) => set(['after'], value)} fault={wrong('after')} />
      <div className="fields">
        <TextField label={t.editor.timeout} hint={t.editor.timeoutHint} value={spec.timeout ?? ''} placeholder="10m" onChange={(value) => text(['timeout'], value)} fault={wrong('timeout')} />
        <TextField label={t.editor.attempts} type="number" value={String(spec.retry?.max_attempts ?? '')} placeholder="3" onChange={(value) => number(['retry', 'max_attempts'], value)} fault={wrong('retry')} />
        <OverlapField spec={spec} set={set} />
        <TextField label={t.editor.queue} value={spec.queue ?? ''} onChange={(value) => text(['queue'], value)} fault={wrong('queue')} />
        <TextField label={t.editor.priority} type="number" value={String(spec.priority ?? '')} placeholder="5" onChange={(value) => number(['priority'], value)} fault={wrong('priority')} />
      </div>
      <LabelsField spec={spec} set={set} fault={wrong('labels')} />
      <ParamsField spec={spec} set={set} />
    </div>
  );
}

type Part = Pick<Props, 'spec' | 'set'> & { wrong: (field: string) => string | null };

function TaskFields({ spec, set, wrong }: Part) {
  const t = useT();
  const task = taskOf(spec);
  const kind = kindOf(task);
  const kinds: Record<TaskKind, string> = { command: t.editor.command, shell: t.editor.shell, script: t.editor.script, http: t.editor.http, handler: t.editor.handler };
  return (
    <>
      <Field label={t.editor.kind}>
        {(id) => (
          <select id={id} className="select" value={kind} onChange={(event) => set(['task'], taskLike(event.target.value as TaskKind))}>
            {Object.entries(kinds).map(([key, label]) => (
              <option key={key} value={key}>
                {label}
              </option>
            ))}
          </select>
        )}
      </Field>
      {kind === 'command' && <CommandField argv={task.exec?.argv ?? []} onChange={(argv) => set(['task', 'exec', 'argv'], argv)} fault={wrong('task')} />}
      {kind === 'shell' && <TextField label={t.editor.shell} value={task.exec?.shell ?? ''} onChange={(value) => set(['task', 'exec', 'shell'], value)} fault={wrong('task')} />}
      {kind === 'script' && (
        <Field label={t.editor.script} fault={wrong('task')}>
          {(id) => <textarea id={id} className="area" rows={8} spellCheck={false} value={task.script?.body ?? ''} onChange={(event) => set(['task', 'script', 'body'], event.target.value)} />}
        </Field>
      )}
      {kind === 'http' && (
        <div className="fields">
          <TextField label={t.editor.url} value={task.http?.url ?? ''} onChange={(value) => set(['task', 'http', 'url'], value)} fault={wrong('task')} />
          <Field label={t.editor.method}>
            {(id) => (
              <select id={id} className="select" value={task.http?.method ?? 'GET'} onChange={(event) => set(['task', 'http', 'method'], event.target.value)}>
                {METHODS.map((method) => (
                  <option key={method}>{method}</option>
                ))}
              </select>
            )}
          </Field>
        </div>
      )}
      {kind === 'handler' && <TextField label={t.editor.handler} hint={t.editor.handlerHint} value={task.handler?.name ?? ''} onChange={(value) => set(['task', 'handler', 'name'], value)} fault={wrong('task')} />}
    </>
  );
}

/** Keeps what is typed: quotes that are not closed yet would be lost in the list of words. */
function CommandField({ argv, onChange, fault }: { argv: string[]; onChange: (argv: string[]) => void; fault: string | null }) {
  const t = useT();
  const [typed, setTyped] = useState<string | null>(null);
  const shown = typed !== null && JSON.stringify(words(typed)) === JSON.stringify(argv) ? typed : line(argv);
  return (
    <TextField
      label={t.editor.command}
      hint={t.editor.commandHint}
      value={shown}
      fault={fault}
      onChange={(value) => {
        setTyped(value);
        onChange(words(value));
      }}
    />
  );
}

function WhenFields({ spec, set, wrong }: Part) {
  const t = useT();
  const entries = (spec.schedule ?? []) as ScheduleEntry[];
  const [entry] = entries;
  const kind = whenOf(entry);
  const kinds: Record<WhenKind, string> = { manual: t.editor.manual, cron: t.editor.cron, every: t.editor.every, after_end: t.editor.afterEnd, at: t.editor.at };
  const change = (key: string, value: string) => set(['schedule', '0', key], value === '' ? undefined : value);
  if (entries.length > 1) return <p className="quiet">{t.editor.complex}</p>;
  return (
    <>
      <div className="fields">
        <Field label={t.editor.when}>
          {(id) => (
            <select id={id} className="select" value={kind} onChange={(event) => set(['schedule'], whenLike(event.target.value as WhenKind))}>
              {Object.entries(kinds).map(([key, label]) => (
                <option key={key} value={key}>
                  {label}
                </option>
              ))}
            </select>
          )}
        </Field>
        {kind === 'cron' && <TextField label={t.editor.cron} hint={t.editor.cronHint} value={entry?.cron ?? ''} onChange={(value) => set(['schedule', '0', 'cron'], value)} fault={wrong('schedule')} />}
        {kind === 'every' && <TextField label={t.editor.every} hint={t.editor.everyHint} value={entry?.every ?? ''} onChange={(value) => set(['schedule', '0', 'every'], value)} fault={wrong('schedule')} />}
        {kind === 'after_end' && <TextField label={t.editor.afterEnd} hint={t.editor.everyHint} value={entry?.after_end ?? ''} onChange={(value) => set(['schedule', '0', 'after_end'], value)} fault={wrong('schedule')} />}
        {kind === 'at' && <TextField label={t.editor.at} hint={t.editor.atHint} value={entry?.at ?? ''} onChange={(value) => set(['schedule', '0', 'at'], value)} fault={wrong('schedule')} />}
        {kind === 'cron' && <TextField label={t.editor.timezone} list="zones" value={entry?.timezone ?? ''} placeholder="UTC" onChange={(value) => change('timezone', value)} />}
      </div>
      <datalist id="zones">
        {ZONES.map((zone) => (
          <option key={zone} value={zone} />
        ))}
      </datalist>
    </>
  );
}

function OverlapField({ spec, set }: Pick<Props, 'spec' | 'set'>) {
  const t = useT();
  const isLong = typeof spec.overlap === 'object';
  return (
    <Field label={t.editor.overlap} hint={isLong ? t.editor.complex : undefined}>
      {(id) => (
        <select id={id} className="select" disabled={isLong} value={isLong ? '' : ((spec.overlap as string | undefined) ?? 'skip')} onChange={(event) => set(['overlap'], event.target.value === 'skip' ? undefined : event.target.value)}>
          {OVERLAPS.map((choice) => (
            <option key={choice} value={choice}>
              {t.editor.overlapChoices[choice]}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

function LabelsField({ spec, set, fault }: Pick<Props, 'spec' | 'set'> & { fault: string | null }) {
  const t = useT();
  const kept = Object.entries(spec.labels ?? {})
    .map(([key, value]) => `${key}=${value}`)
    .join(', ');
  const [typed, setTyped] = useState<string | null>(null);
  const same = typed !== null && JSON.stringify(labelsOf(typed) ?? {}) === JSON.stringify(spec.labels ?? {});
  return (
    <TextField
      label={t.editor.labels}
      hint={t.editor.labelsHint}
      value={same ? typed : kept}
      fault={fault}
      onChange={(value) => {
        setTyped(value);
        set(['labels'], labelsOf(value));
      }}
    />
  );
}

function ParamsField({ spec, set }: Pick<Props, 'spec' | 'set'>) {
  const t = useT();
  const [typed, setTyped] = useState<string | null>(null);
  const kept = spec.params === undefined || spec.params === null ? '' : JSON.stringify(spec.params, null, 2);
  const typedValue = typed === null ? undefined : parsed(typed);
  const own = typedValue && (typedValue.wrong || JSON.stringify(typedValue.value) === JSON.stringify(spec.params));
  return (
    <JsonField
      label={t.editor.params}
      hint={t.editor.paramsHint}
      rows={4}
      text={own ? typed! : kept}
      onChange={(text) => {
        setTyped(text);
        const { value, wrong } = parsed(text);
        if (!wrong) set(['params'], value);
      }}
    />
  );
}
