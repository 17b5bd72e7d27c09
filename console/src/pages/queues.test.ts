import { expect, it } from 'vitest';
import type { Queue } from '../api/schema';
import { en } from '../i18n/en';
import { whyOf } from './queues';

const why = (part: Partial<Queue>) => whyOf(en, 'en', { depth: 0, parked: 0, held: 0, running: 0, paused: null, rate_until: null, full_keys: [], spec: { kind: 'Queue', name: 'q' }, ...part } as unknown as Queue);
const key = (waiting: number) => ({ value: '"a"', running: 1, waiting });
const { whyKeys, whyJob, whyWorkers, whyBoth } = en.queues;

it('keys are the reason only where something waits behind a full one', () => {
  expect(why({ depth: 3, held: 3, full_keys: [key(3)] })).toBe(whyKeys);
  expect(why({ depth: 3, held: 3, full_keys: [key(0)] })).toBe(whyJob);
  expect(why({ depth: 3, held: 0, full_keys: [key(0)] })).toBe(whyWorkers);
});

it('where only some are held back both reasons are told, that of the larger part first', () => {
  expect(why({ depth: 5, held: 3, full_keys: [key(3)] })).toBe(whyBoth(whyKeys, whyWorkers));
  expect(why({ depth: 5, held: 1, full_keys: [key(1)] })).toBe(whyBoth(whyWorkers, whyKeys));
  expect(why({ depth: 4, held: 2 })).toBe(whyBoth(whyJob, whyWorkers));
});

it('what is parked waits for neither', () => {
  expect(why({ depth: 7, parked: 7, full_keys: [key(0)] })).toBeNull();
  expect(why({ depth: 9, parked: 7, held: 2 })).toBe(whyJob);
  expect(why({})).toBeNull();
});
