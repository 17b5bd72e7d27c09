// The jobs that a job runs after, in its form.
import { useState } from 'react';
import type { After } from '../api/schema';
import { useT } from '../i18n';
import { Field } from '../ui/parts';
import { TextField } from './text_field';

const NEEDS = ['all', 'any'] as const;
const ENDS = ['success', 'failure', 'either'] as const;

const namesOf = (text: string) => text.split(/[,\s]+/).filter(Boolean);

/** Keeps what is typed: a comma at its end would be lost in the list of names. */
export function AfterFields({ after, set, fault }: { after: After | null | undefined; set: (after: After | undefined) => void; fault: string | null }) {
  const t = useT();
  const [typed, setTyped] = useState<string | null>(null);
  const jobs = after?.jobs ?? [];
  const isOwn = typed !== null && namesOf(typed).join() === jobs.join();
  const choice = <T extends string>(label: string, value: T, words: Record<T, string>, choices: readonly T[], change: (value: T) => void) => (
    <Field label={label}>
      {(id) => (
        <select id={id} className="select" value={value} onChange={(event) => change(event.target.value as T)}>
          {choices.map((one) => (
            <option key={one} value={one}>
              {words[one]}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
  return (
    <div className="fields">
      <TextField
        label={t.editor.after}
        hint={t.editor.afterHint}
        value={isOwn ? typed : jobs.join(', ')}
        fault={fault}
        onChange={(value) => {
          setTyped(value);
          const names = namesOf(value);
          set(names.length > 0 ? { ...after, jobs: names } : undefined);
        }}
      />
      {after && jobs.length > 1 && choice(t.editor.afterNeed, after.need ?? 'all', t.editor.afterNeeds, NEEDS, (need) => set({ ...after, need }))}
      {after && jobs.length > 0 && choice(t.editor.afterOn, after.on ?? 'success', t.editor.afterOns, ENDS, (on) => set({ ...after, on }))}
    </div>
  );
}
