// Values as people can read them, and a field for JSON.
import { useState } from 'react';
import { useT } from '../i18n';
import { Field } from './parts';

export function Json({ value }: { value: unknown }) {
  return <pre className="json">{JSON.stringify(value, null, 2)}</pre>;
}

/** The value of a text of JSON; nothing for the empty text. */
export function parsed(text: string): { value?: unknown; wrong: boolean } {
  if (text.trim() === '') return { wrong: false };
  try {
    return { value: JSON.parse(text) as unknown, wrong: false };
  } catch {
    return { wrong: true };
  }
}

export function JsonField({ label, hint, text, onChange, rows = 6, fault = null }: { label: string; hint?: string; text: string; onChange: (text: string) => void; rows?: number; fault?: string | null }) {
  const t = useT();
  const [left, setLeft] = useState(false);
  const { wrong } = parsed(text);
  return (
    <Field label={label} hint={hint} fault={wrong && left ? t.job.notJson : fault}>
      {(id) => (
        <textarea id={id} className="area" rows={rows} spellCheck={false} value={text} aria-invalid={(wrong && left) || fault !== null} onBlur={() => setLeft(true)} onChange={(event) => onChange(event.target.value)} />
      )}
    </Field>
  );
}
