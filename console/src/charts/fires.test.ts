import { describe, expect, it } from 'vitest';
import type { Upcoming } from '../api/schema';
import { placeOf, stems } from './fires';

const fire = (job: string, inMs: number): Upcoming => ({ namespace: 'default', job, nominal: null, due: new Date(inMs).toISOString(), words: null, words_zh: null });

describe('the line of next fires', () => {
  it('grows with time and is finer near the present', () => {
    expect([placeOf(-5), placeOf(0), placeOf(1e12)]).toEqual([0, 0, 1]);
    expect(placeOf(60_000)).toBeGreaterThan(0.2);
    expect(placeOf(3_600_000)).toBeGreaterThan(placeOf(60_000));
  });

  it('lets no two names overlap, and counts what has no room', () => {
    const many = Array.from({ length: 20 }, (_, index) => fire(`job-number-${index}`, 10_000 + index * 1000));
    const { shown, left } = stems(many, 0, 800);
    expect(shown.length + left).toBe(20);
    expect(left).toBeGreaterThan(0);
    for (const a of shown) for (const b of shown) if (a !== b && a.lane === b.lane) expect(Math.abs(a.x - b.x)).toBeGreaterThan(a.fire.job.length * 6);
  });
});
