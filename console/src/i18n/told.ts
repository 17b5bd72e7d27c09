// What the server tells in codes and in English: a language that has words of its own for the codes says them here.
import type { Explained, ExplainedCause, ExplainedRemedy, Run, RunExplanationEvent, Worker } from '../api/schema';

/** Each says nothing where only the server's own words say it. */
export interface Told {
  headline(code: ExplainedCause, run: Run): string | null;
  event(event: RunExplanationEvent, run: Run): string | null;
  advice(code: ExplainedRemedy): string | null;
  fate(row: Explained): string | null;
  /** What would keep a run of a job waiting. */
  waits(code: ExplainedCause): string | null;
  /** What its author may not expect of a schedule. */
  warning(code: string): string | null;
  /** The title of a refusal. */
  problem(code: string): string | null;
  /** What the state of a worker rests on. */
  worker(worker: Worker): string | null;
}
