import { afterEach, expect, it, vi } from 'vitest';
import type { Explained } from '../api/schema';
import { byHour, dayBefore, hoursOf } from './heat';

afterEach(() => vi.unstubAllEnvs());

const MINUTE_MS = 60_000;
const range = (first: string, last: string, count: number, more: Partial<Explained> = {}) => ({ first, last, count, fate: 'misfired', run: null, state: null, text: '', ...more }) as Explained;
/** What each hour of a day holds, by what the clock shows. */
const told = (rows: Explained[], day: number) => {
  const cells = hoursOf(day);
  const hours = byHour(rows, cells);
  return cells.flatMap(({ hour, from }) => {
    const found = hours.get(from);
    return found ? [[hour, found.tone, found.count, found.whole]] : [];
  });
};

it('counts what lies within an hour, and gives no number of its own to an hour that a range only touches', () => {
  vi.stubEnv('TZ', 'UTC');
  const day = Date.parse('2026-11-18T00:00:00Z');
  const rows = [range('2026-11-18T03:00:00Z', '2026-11-18T03:59:00Z', 60), range('2026-11-18T05:30:00Z', '2026-11-18T07:10:00Z', 101)];
  expect(told(rows, day)).toEqual([
    [3, 'warning', 60, 0],
    [5, 'warning', 0, 101],
    [6, 'warning', 0, 101],
    [7, 'warning', 0, 101],
  ]);
});

it('colours nothing between two due times, and nothing beyond the days that are shown', () => {
  vi.stubEnv('TZ', 'UTC');
  const day = Date.parse('2026-11-18T00:00:00Z');
  expect(told([range('2026-11-18T01:00:00Z', '2026-11-18T05:00:00Z', 2)], day)).toEqual([
    [1, 'warning', 1, 0],
    [5, 'warning', 1, 0],
  ]);
  expect(told([range('2026-11-17T23:00:00Z', '2026-11-18T01:00:00Z', 3)], day)).toEqual([
    [0, 'warning', 0, 3],
    [1, 'warning', 0, 3],
  ]);
  expect(told([range('2026-11-17T23:30:00Z', '2026-11-17T23:30:00Z', 1), range('2026-11-19T00:00:00Z', '2026-11-19T00:00:00Z', 1)], day)).toEqual([]);
});

it('takes the worst of an hour, and says how much of it is so', () => {
  vi.stubEnv('TZ', 'UTC');
  const day = Date.parse('2026-11-18T00:00:00Z');
  const at = (minute: string, more: Partial<Explained>) => range(`2026-11-18T09:${minute}:00Z`, `2026-11-18T09:${minute}:00Z`, 1, { fate: 'fired', run: 'run_1', ...more } as Partial<Explained>);
  const rows = [at('00', { state: 'COMPLETED' }), at('15', { state: 'FAILED' }), at('30', { state: 'COMPLETED' }), at('45', { state: 'COMPLETED' }), range('2026-11-18T09:00:00Z', '2026-11-18T09:59:00Z', 60, { fate: 'excluded' } as Partial<Explained>)];
  const hour = byHour(rows, hoursOf(day)).get(Date.parse('2026-11-18T09:00:00Z'));
  expect([hour?.tone, hour?.count, hour?.whole, hour?.share]).toEqual(['failed', 4, 0, 0.25]);
});

it('an hour begins where the clock says, half an hour off as well', () => {
  vi.stubEnv('TZ', 'Asia/Kolkata');
  const day = dayBefore(Date.parse('2026-11-18T12:00:00Z'), 0);
  expect(new Date(day).toISOString()).toBe('2026-11-17T18:30:00.000Z');
  // 09:00 to 09:59 in India.
  expect(told([range('2026-11-18T03:30:00Z', '2026-11-18T04:29:00Z', 60)], day)).toEqual([[9, 'warning', 60, 0]]);
});

it('a day has the hours that its clock shows', () => {
  vi.stubEnv('TZ', 'Europe/Berlin');
  const spring = hoursOf(dayBefore(Date.parse('2026-03-29T12:00:00Z'), 0));
  expect(spring.map(({ hour }) => hour)).toEqual([0, 1, ...Array.from({ length: 21 }, (_, index) => index + 3)]);
  const autumn = dayBefore(Date.parse('2026-10-25T12:00:00Z'), 0);
  const lengths = hoursOf(autumn).map(({ from, to }) => (to - from) / MINUTE_MS);
  expect(lengths).toEqual(Array.from({ length: 24 }, (_, hour) => (hour === 2 ? 120 : 60)));
  // The second time that the clock shows half past two.
  expect(told([range('2026-10-25T01:30:00Z', '2026-10-25T01:30:00Z', 1), range('2026-10-25T22:30:00Z', '2026-10-25T22:30:00Z', 1)], autumn)).toEqual([
    [2, 'warning', 1, 0],
    [23, 'warning', 1, 0],
  ]);
  // Fourteen days over the change are fourteen midnights.
  const days = Array.from({ length: 14 }, (_, index) => new Date(dayBefore(Date.parse('2026-10-31T10:00:00Z'), index)));
  expect(new Set(days.map((day) => day.getDate())).size).toBe(14);
  expect(days.every((day) => day.getHours() === 0)).toBe(true);
});
