import { expect, it } from 'vitest';
import type { Explained, Run, RunExplanationEvent, Worker } from '../api/schema';
import { told } from './zh_told';

const run = { id: 'run_1', namespace: 'default', origin: 'api', actor: 'ann', attempts: [], cancel: null, due: '2026-01-01T00:00:00Z', checkpoint: null, job_version: 1 } as unknown as Run;
const row = (part: Partial<Explained>) => ({ calendar: null, delay_ms: null, moved_to: null, local: null, timezone: null, reason: null, run: null, state: null, ...part }) as Explained;

it('a run without attempts is spoken of without gaps', () => {
  for (const code of ['failed', 'superseded', 'no_worker_connected', 'failed_for_others', 'expired'] as const) {
    expect(told.headline(code, run)).toMatch(/^[^a-z]*(`[a-z_.: ]+`[^a-z]*)*。$/);
  }
});

it('a code that a newer server has is left to its own words', () => {
  expect(told.headline('of_tomorrow' as never, run)).toBeNull();
  expect(told.advice('of_tomorrow' as never)).toBeNull();
  expect(told.fate(row({ fate: 'unfired', reason: 'of_tomorrow' }))).toBeNull();
});

it('fates have their facts', () => {
  expect(told.fate(row({ fate: 'run', state: 'COMPLETED', delay_ms: 12 }))).toBe('已完成，到期后 12 ms 启动');
  expect(told.fate(row({ fate: 'unfired', reason: 'paused' }))).toBe('作业已暂停');
  expect(told.fate(row({ fate: 'excluded', reason: 'calendar', calendar: 'holidays' }))).toBe('日历 holidays 排除了这一天');
});

it('a stop says how long it took and who wanted it, unless the run was cancelled with it', () => {
  const at = '2026-01-01T00:01:00Z';
  const end = { at, outcome: 'cancelled', duration_ms: 60_000, error: 'its worker was drained by ann', exit_code: null, signal: null, http_status: null };
  const event = { code: 'stopped', at, attempt: 1, worker: 'mill', actor: null, text: '' } as RunExplanationEvent;
  const of = (transitions: { to: string; at: string }[]) => told.event(event, { ...run, attempts: [{ number: 1, worker: 'mill', end }], transitions } as unknown as Run);
  expect(of([{ to: 'PENDING', at }])).toBe('工作节点 mill 停止了第 1 次尝试，用时 1 min 00 s：its worker was drained by ann。');
  expect(of([{ to: 'PENDING', at }, { to: 'CANCELLED', at: '2026-01-01T00:02:00Z' }])).toContain('drained by ann');
  expect(of([{ to: 'CANCELLED', at }])).toBe('工作节点 mill 停止了第 1 次尝试。');
});

const worker = (part: Partial<Worker>) => ({ why: 'something', attempts: 0, losses: 0, probation: false, maintenance: null, faulty_until: null, last_heartbeat: null, ...part }) as Worker;

it('refusals and workers are spoken of in Chinese, and left to the server where they are not known', () => {
  expect(told.problem('no_such_job')).toBe('没有这个作业');
  expect(told.problem('of_tomorrow')).toBeNull();
  const drain = { actor: 'ann', deadline: null, forced: null, namespace: null, since: '2026-01-01T00:00:00Z' };
  expect(told.worker(worker({ state: 'MAINTENANCE', maintenance: drain, attempts: 2 }))).toBe('由 ann 排空：还有 2 个运行要结束');
  expect(told.worker(worker({ state: 'MAINTENANCE', maintenance: { ...drain, forced: drain.since }, attempts: 2 }))).toBe('由 ann 排空：期限已到，还有 2 个运行要结束');
  expect(told.worker(worker({ state: 'MAINTENANCE' }))).toBe('它正在关闭：没有正在执行的运行');
  expect(told.worker(worker({ state: 'ONLINE', probation: true }))).toContain('试用中');
  expect(told.worker(worker({ state: 'ONLINE', why: null }))).toBeNull();
  expect(told.worker(worker({ state: 'OF_TOMORROW' as never }))).toBeNull();
});
