// A form that is sent: what the server refuses stays in it, beside the field that it names.
import { useState } from 'react';
import { Refusal } from '../api/call';
import { useT } from '../i18n';
import { fieldWords } from './fault';
import { useToasts } from './toast';

/** Whether the path of a refused value lies in the field: `include` has `include[2]`, `retry` has `retry.max`. */
function isOf(path: string, field: string): boolean {
  return path === field || path.startsWith(`${field}[`) || path.startsWith(`${field}.`);
}

export interface Sending {
  busy: boolean;
  /** Why the value of a field was refused. */
  fault(field: string): string | null;
  /** A refusal that names none of the fields; nothing when there is none. */
  rest: unknown;
  send(what: () => Promise<unknown>, said?: string): Promise<boolean>;
}

/**
 * `fields` are those that the form shows, by their names in the API; `codes` says which of them a refusal is about that
 * names none.
 */
export function useSending(fields: readonly string[], codes: Record<string, string> = {}): Sending {
  const t = useT();
  const { say } = useToasts();
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const at = error instanceof Refusal ? (error.field ?? codes[error.code] ?? null) : null;
  const known = at !== null && fields.some((field) => isOf(at, field));
  return {
    busy,
    fault: (field) => (known && isOf(at, field) ? fieldWords(t, error as Refusal) : null),
    rest: known ? null : error,
    async send(what, said) {
      setBusy(true);
      setError(null);
      try {
        await what();
        if (said) say(said);
        return true;
      } catch (caught) {
        setError(caught);
        return false;
      } finally {
        setBusy(false);
      }
    },
  };
}
