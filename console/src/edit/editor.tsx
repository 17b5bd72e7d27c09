// A definition as form and as text, side by side, tried by the server while it is typed.
import { useQuery } from '@tanstack/react-query';
import { useDeferredValue, useEffect, useMemo, useState } from 'react';
import { Refusal, call } from '../api/call';
import type { Job, JobSpecByPath, Times } from '../api/schema';
import { useSpoken, useT, useWords } from '../i18n';
import { Button, Fault } from '../ui/parts';
import { Away, fullTime, shownTime } from '../ui/time';
import { useDo } from '../ui/toast';
import { JobForm } from './form';
import { afterRule, read, written, type Spec } from './manifest';
import { YamlField } from './yaml_field';

interface Props {
  first: string;
  isNew: boolean;
  /** The revision that was read. */
  tag?: string;
  mayEdit: boolean;
  /** Someone else has changed it since it was read. */
  outdated?: boolean;
  onEdit?: (edited: boolean) => void;
  /** Gives up what was typed for what is in force. */
  onReload?: () => void;
  onApplied: (job: Job) => void;
}

const TRY_AFTER_MS = 250;
const NAME = /^[a-z0-9._-]{1,128}$/;

export function Editor({ first, isNew, tag, mayEdit, outdated, onEdit, onReload, onApplied }: Props) {
  const t = useT();
  const act = useDo();
  const [text, setText] = useState(first);
  const reading = useMemo(() => read(text), [text]);
  const { spec } = reading;
  const tried = useTrial(text);
  const refusal = tried.error instanceof Refusal && tried.error.status > 0 ? tried.error : null;
  const unchanged = text === first && !isNew;
  useEffect(() => onEdit?.(!unchanged), [onEdit, unchanged]);
  const set = (path: string[], value: unknown) => setText((before) => written(before, path, value));
  const apply = async () => {
    if (!spec) return;
    const path = { namespace: spec.namespace ?? 'default', name: spec.name ?? '' };
    await act(async () => onApplied(await call('putJob', { path, body: spec as JobSpecByPath, match: isNew ? undefined : tag, absent: isNew })), t.editor.applied);
  };
  return (
    <div className="stack">
      {outdated && (
        <div className="notice" data-tone="warning" role="status">
          <span>{t.editor.changedMeanwhile}</span>
          <div>
            <Button size="small" onClick={onReload}>
              {t.editor.reload}
            </Button>
          </div>
        </div>
      )}
      <div className="editor">
        <section className="stack" aria-label={t.editor.form}>
          <h2>{t.editor.form}</h2>
          <fieldset disabled={!mayEdit || !spec} className="bare">
            {spec && <JobForm spec={spec} set={set} isNew={isNew} fault={refusal?.field ? { field: refusal.field, text: refusal.detail } : null} />}
          </fieldset>
        </section>
        <section className="stack" aria-label={t.editor.yaml}>
          <h2>{t.editor.yaml}</h2>
          <YamlField label={t.editor.yaml} text={text} onChange={setText} readOnly={!mayEdit} wrongLine={reading.fault?.line ?? null} />
          <Verdict fault={reading.fault?.text ?? null} tried={tried} refusal={refusal} spec={spec} />
        </section>
      </div>
      {mayEdit && (
        <div className="bar-fixed">
          <span className="quiet">{unchanged ? t.editor.unchanged : t.editor.leave}</span>
          <span className="grow" />
          <Button kind="main" disabled={!spec || unchanged || refusal !== null || tried.isPending} onClick={() => void apply()}>
            {t.editor.apply}
          </Button>
        </div>
      )}
    </div>
  );
}

/** What the server says of the text, a moment after the last key. */
function useTrial(text: string) {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), TRY_AFTER_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const { spec } = useMemo(() => read(settled), [settled]);
  const name = String(spec?.name ?? '');
  const path = { namespace: String(spec?.namespace ?? 'default'), name: NAME.test(name) ? name : 'unnamed' };
  const body = useMemo(() => (spec && !NAME.test(name) ? { ...spec, name: undefined } : spec), [spec, name]);
  const trial = useQuery({
    queryKey: ['trial', path, body],
    queryFn: ({ signal }) => call('validateJob', { path, body: body as JobSpecByPath, signal }),
    enabled: spec !== null,
    retry: false,
    staleTime: Infinity,
    gcTime: 10_000,
    placeholderData: (before) => before,
  });
  return { ...trial, waiting: settled !== text, nameMissing: spec !== null && !NAME.test(name) };
}

function Verdict({ fault, tried, refusal, spec }: { fault: string | null; tried: ReturnType<typeof useTrial>; refusal: Refusal | null; spec: Spec | null }) {
  const t = useT();
  const spoken = useSpoken();
  const answer = useDeferredValue(tried.data);
  if (fault) return <Notice tone="failed" title={t.editor.invalidYaml} text={fault} />;
  if (refusal) return <Notice tone="failed" title={t.editor.invalid} text={refusal.detail} />;
  if (tried.isError) return <Fault error={tried.error} />;
  if (!answer) return <p className="quiet">{t.editor.checking}</p>;
  // The words of a trial are those of the schedule alone.
  const after = spec?.after && !spec.schedule?.length ? afterRule(t, spec.after) : null;
  return (
    <>
      {tried.nameMissing ? (
        <Notice tone="warning" title={t.editor.name} text={t.editor.nameHint} />
      ) : (
        <Notice tone="completed" title={t.editor.valid} text={after ?? spoken(answer.words, answer.words_zh)} />
      )}
      {!after && <TimesList times={answer} />}
    </>
  );
}

function Notice({ tone, title, text }: { tone: string; title: string; text: string }) {
  return (
    <div className="notice" data-tone={tone} role="status">
      <strong>{title}</strong>
      <span>{text}</span>
    </div>
  );
}

/** What tells the two nights of a change of clocks apart. */
const offset = (local: string) => local.slice(19).replace(/\[.*/, '').replace('+00:00', '');

/** The next times of a schedule with what is odd about them. */
export function TimesList({ times }: { times: Times }) {
  const { t, language } = useWords();
  return (
    <div className="stack-tight">
      {times.warnings.map((warning) => (
        <Notice key={warning.code + warning.text} tone="warning" title={t.told?.warning(warning.code) ?? t.editor.warnings} text={warning.text} />
      ))}
      {times.times.length === 0 ? (
        <p className="quiet">{t.job.noTimes}</p>
      ) : (
        <table className="table" aria-label={t.editor.times}>
          <tbody>
            {times.times.map((time) => (
              <tr key={time.nominal}>
                <td title={`${time.local ?? ''} ${fullTime(time.due, language)}`}>
                  {time.local ? <Moment local={time.local} /> : <span className="mono">{shownTime(time.due, language)}</span>}
                  {time.note && <div className="quiet">{time.note}</div>}
                </td>
                <td className="number quiet">
                  <Away at={time.due} due />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}

/** Day, clock and offset, each whole: where there is no room for all of them they stand below each other. */
function Moment({ local }: { local: string }) {
  return (
    <span className="mono">
      <span className="nowrap">{local.slice(0, 10)}</span> <span className="nowrap">{local.slice(11, 19)}</span> <span className="quiet nowrap">{offset(local)}</span>
    </span>
  );
}
