import { expect, it } from 'vitest';
import { beginsWord } from './match';

it('a label is found by the beginning of any of its words, and not by the middle of one', () => {
  for (const wanted of ['', 's', 'sign o', 'out', 'sign out']) expect(beginsWord('Sign out', wanted), wanted).toBe(true);
  for (const wanted of ['ign', 'ut', 'outs', 'n out', 'signout']) expect(beginsWord('Sign out', wanted), wanted).toBe(false);
  expect(beginsWord('Slight light', 'light')).toBe(true);
  expect(beginsWord('退出', '退')).toBe(true);
  expect(beginsWord('退出', '出')).toBe(false);
});
