import { expect, it } from 'vitest';
import type { Worker } from '../api/schema';
import { sampled, takenOf, type Sample } from './courses';

const sample = (at: number): Sample => ({ at, cpu: 0.5, memory: 0.2 });

it('keeps the last minutes, and one of two samples at once', () => {
  let course: Sample[] = [];
  for (let at = 0; at < 100; at++) course = sampled(course, sample(at * 2000));
  expect([course.length, course[0]?.at]).toEqual([60, 80_000]);
  expect(sampled(course, sample(198_500))).toBe(course);
});

it('what is taken is what the server gave, unless it gives nothing', () => {
  const worker = (state: string) => ({ state, capacity: 16, credit: state === 'ONLINE' ? 14 : 0, load: { running_weight: 5 } }) as unknown as Worker;
  expect(takenOf(worker('ONLINE'))).toBe(2);
  expect(takenOf(worker('MAINTENANCE'))).toBe(5);
});
