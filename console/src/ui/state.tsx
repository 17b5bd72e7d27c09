// A state has one colour and one shape everywhere.
import type { RunState, WorkerState } from '../api/schema';
import { useT } from '../i18n';

const SHAPES: Record<RunState, React.ReactNode> = {
  PENDING: <circle cx="7" cy="7" r="5" fill="none" strokeDasharray="2.6 2.6" />,
  SCHEDULED: (
    <>
      <circle cx="7" cy="7" r="5" fill="none" />
      <path d="M7 4.4V7l1.8 1.2" fill="none" />
    </>
  ),
  RUNNING: <path d="M7 2a5 5 0 1 1-4.3 2.5" fill="none" />,
  COMPLETED: (
    <>
      <circle cx="7" cy="7" r="5.6" fill="currentColor" stroke="none" />
      <path d="m4.6 7.2 1.7 1.7 3.2-3.5" fill="none" stroke="var(--surface)" />
    </>
  ),
  FAILED: (
    <>
      <circle cx="7" cy="7" r="5.6" fill="currentColor" stroke="none" />
      <path d="m5.1 5.1 3.8 3.8m0-3.8-3.8 3.8" fill="none" stroke="var(--surface)" />
    </>
  ),
  CANCELLED: (
    <>
      <circle cx="7" cy="7" r="5" fill="none" />
      <path d="m3.6 10.4 6.8-6.8" fill="none" />
    </>
  ),
};

export function StateMark({ state }: { state: RunState }) {
  return (
    <svg width="14" height="14" viewBox="0 0 14 14" stroke="currentColor" strokeWidth="1.6" strokeLinecap="round" aria-hidden="true">
      {SHAPES[state]}
    </svg>
  );
}

export function RunStateLabel({ state }: { state: RunState }) {
  const t = useT();
  return (
    <span className="state" data-state={state} data-spin={state === 'RUNNING'}>
      <StateMark state={state} />
      {t.state[state]}
    </span>
  );
}

const WORKER_TONES: Record<WorkerState, string> = {
  ONLINE: 'completed',
  BUSY: 'running',
  MAINTENANCE: 'warning',
  OFFLINE: 'cancelled',
  FAULTY: 'failed',
};

export function workerTone(state: WorkerState): string {
  return WORKER_TONES[state];
}

export function WorkerStateLabel({ state }: { state: WorkerState }) {
  const t = useT();
  return (
    <span className="tag" data-tone={workerTone(state)}>
      {t.workerState[state]}
    </span>
  );
}

export const RUN_STATES: RunState[] = ['PENDING', 'SCHEDULED', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED'];

export function isOver(state: RunState): boolean {
  return state === 'COMPLETED' || state === 'FAILED' || state === 'CANCELLED';
}
