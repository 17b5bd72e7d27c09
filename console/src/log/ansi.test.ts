import { describe, expect, it } from 'vitest';
import { pieces, plainPen } from './ansi';

const ESC = '\u001b';
const read = (line: string, pen = plainPen()) => pieces(line, pen).map((piece) => [piece.text, piece.style]);

describe('what programs write for terminals', () => {
  it('becomes classes', () => {
    expect(read(`a ${ESC}[1;31mred${ESC}[0m b`)).toEqual([
      ['a ', ''],
      ['red', 'a-bold a-f1'],
      [' b', ''],
    ]);
    expect(read(`${ESC}[92;44mx`)).toEqual([['x', 'a-f10 a-b4']]);
    expect(read(`${ESC}[38;5;196mx${ESC}[39my`)).toEqual([
      ['x', 'a-f1'],
      ['y', ''],
    ]);
    expect(read(`${ESC}[38;2;10;200;10mx`)).toEqual([['x', 'a-f2']]);
  });

  it('goes on over lines', () => {
    const pen = plainPen();
    read(`${ESC}[32mgreen`, pen);
    expect(read('still', pen)).toEqual([['still', 'a-f2']]);
  });

  it('can do nothing but be read', () => {
    expect(read(`${ESC}]0;title\u0007text`)).toEqual([['text', '']]);
    expect(read(`${ESC}[2J${ESC}[10;10Hx\u0000\u0008y`).map(([text]) => text).join('')).toBe('xy');
    expect(read(`${ESC}]8;;javascript:alert(1)${ESC}\\link`)).toEqual([['link', '']]);
    expect(read('<script>alert(1)</script>')).toEqual([['<script>alert(1)</script>', '']]);
    expect(read(`${ESC}[`).map(([text]) => text).join('')).toBe('[');
    expect(read(`${ESC}[99999999m${ESC}[38;9mx`)).toEqual([['x', '']]);
  });
});
