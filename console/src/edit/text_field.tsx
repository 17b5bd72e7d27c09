// A labelled line of text in the form of a job.
import { Field } from '../ui/parts';

export function TextField(props: { label: string; hint?: string; fault?: string | null; value: string; placeholder?: string; type?: string; list?: string; onChange: (value: string) => void }) {
  const { label, hint, fault, onChange, type = 'text', ...rest } = props;
  return (
    <Field label={label} hint={hint} fault={fault}>
      {(id) => <input id={id} className="input" type={type} aria-invalid={Boolean(fault)} onChange={(event) => onChange(event.target.value)} {...rest} />}
    </Field>
  );
}
