// What went wrong, in words: the server's own where it refused, the console's where there was no answer.
import { Refusal } from '../api/call';
import type { Dictionary } from '../i18n/en';

/** The title is in the language of the page; what offends and what to do stays as the server says it. */
export function faultWords(t: Dictionary, error: unknown): { title: string; text: string } {
  if (!(error instanceof Refusal) || error.status === 0) return { title: t.fault.unreachable, text: t.fault.unreachableRemedy };
  return { title: t.told?.problem(error.code) ?? error.title, text: error.detail };
}

/** The same below a field: the detail says it all to whoever reads English, others get the title before it. */
export function fieldWords(t: Dictionary, refusal: Refusal): string {
  const title = t.told?.problem(refusal.code);
  return title ? `${title}：${refusal.detail}` : refusal.detail;
}
