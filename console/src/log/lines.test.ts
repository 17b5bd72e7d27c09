import { describe, expect, it } from 'vitest';
import { Lines, type Stream } from './lines';

const entry = (text: string, stream: Stream = 'stdout', attempt = 1) => ({ ts: '2026-01-01T00:00:00.000Z', stream, attempt, text });

describe('the output of a run', () => {
  it('is put together from pieces, stream by stream', () => {
    const lines = new Lines();
    lines.add(entry('one '));
    lines.add(entry('oh no\n', 'stderr'));
    lines.add(entry('line\ntwo\n'));
    expect(lines.all.map((line) => [line.stream, line.text])).toEqual([
      ['stdout', 'one line'],
      ['stderr', 'oh no'],
      ['stdout', 'two'],
    ]);
    expect(lines.all.map((line) => line.number)).toEqual([1, 2, 3]);
  });

  it('keeps empty lines and knows carriage returns', () => {
    const lines = new Lines();
    lines.add(entry('a\n\n10 %\r20 %\r\nb\r\n'));
    expect(lines.all.map((line) => line.text)).toEqual(['a', '', '20 %', 'b']);
  });

  it('forgets the oldest and says so', () => {
    const lines = new Lines();
    lines.add(entry('x\n'.repeat(200_003)));
    expect([lines.all.length, lines.forgotten, lines.all[0]?.number]).toEqual([200_000, 3, 4]);
  });
});
