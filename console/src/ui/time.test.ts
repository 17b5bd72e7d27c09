import { expect, it } from 'vitest';
import { away } from './time';

it('what is less than half a second away is now, in either direction', () => {
  for (const ms of [-499, -1, 0, 1, 499]) {
    expect(away(ms, 'en'), String(ms)).toBe('now');
    expect(away(ms, 'zh'), String(ms)).toBe('现在');
  }
});

it('all else is so far away', () => {
  expect(away(1_400, 'en')).toBe('in 1 sec');
  expect(away(-600, 'en')).toBe('1 sec ago');
  expect(away(-61_000, 'en')).toBe('1 min ago');
  expect(away(86_400_000, 'en')).toBe('in 1 day');
});
