// The hours of days as clocks on the wall show them, and what was due in each.
//
// A square is one hour of the clock: in zones that are half an hour off, and on days of 23 or 25 hours, too. An hour that the clock
// leaves out has no square, one that it shows twice is one square of two hours.
import type { Explained } from '../api/schema';

export type Tone = 'completed' | 'failed' | 'running' | 'planned' | 'warning' | 'none';
const WORSE: Tone[] = ['none', 'planned', 'completed', 'running', 'warning', 'failed'];
/** Rows that are told of one hour. */
const MOST_ROWS = 500;

export interface Cell {
  /** What the clock shows. */
  hour: number;
  from: number;
  /** The first instant that is not in it. */
  to: number;
}

export interface Hour {
  tone: Tone;
  /** Due times that are certainly in it. */
  count: number;
  /** Due times of ranges that reach beyond it: nobody knows how many of them are in it. */
  whole: number;
  /** How much of it has its tone, from 0 to 1. */
  share: number;
  rows: Explained[];
}

export function toneOf(row: Explained): Tone {
  if (row.fate === 'planned') return 'planned';
  if (row.fate === 'excluded') return 'none';
  if (row.run) {
    if (row.state === 'FAILED') return 'failed';
    if (row.state === 'COMPLETED') return 'completed';
    return row.state === 'CANCELLED' ? 'warning' : 'running';
  }
  return row.fate === 'pending' ? 'running' : 'warning';
}

/** When the day that lies so many days before that of an instant begins. */
export function dayBefore(at: number, days: number): number {
  const day = new Date(at);
  return new Date(day.getFullYear(), day.getMonth(), day.getDate() - days).getTime();
}

/** The hours that the clock shows on the day that begins then, in order. */
export function hoursOf(day: number): Cell[] {
  const date = new Date(day);
  const at = (hour: number) => new Date(date.getFullYear(), date.getMonth(), date.getDate(), hour).getTime();
  return Array.from({ length: 24 }, (_, hour) => ({ hour, from: at(hour), to: at(hour + 1) })).filter((cell) => cell.from < cell.to);
}

/** The first cell that ends after an instant. */
function cellAt(cells: Cell[], at: number): number {
  let [low, high] = [0, cells.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (cells[middle]!.to <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

interface Sum {
  tones: Map<Tone, number>;
  count: number;
  whole: number;
  rows: Explained[];
}

/** What was due in each cell, by its beginning. The cells are in order and do not overlap. */
export function byHour(rows: Explained[], cells: Cell[]): Map<number, Hour> {
  const sums = new Map<number, Sum>();
  const add = (cell: Cell | undefined, row: Explained, part: { count: number; whole: number; weight: number }) => {
    if (!cell) return;
    const sum: Sum = sums.get(cell.from) ?? { tones: new Map(), count: 0, whole: 0, rows: [] };
    const tone = toneOf(row);
    sum.tones.set(tone, (sum.tones.get(tone) ?? 0) + part.weight);
    if (row.fate !== 'excluded') {
      sum.count += part.count;
      sum.whole += part.whole;
    }
    if (sum.rows.length < MOST_ROWS) sum.rows.push(row);
    sums.set(cell.from, sum);
  };
  for (const row of rows) {
    const [first, last] = [Date.parse(row.first), Date.parse(row.last)];
    const [begin, end] = [cellAt(cells, first), cellAt(cells, last)];
    const holds = (cell: Cell | undefined, at: number) => (cell && cell.from <= at ? cell : undefined);
    if (begin === end && holds(cells[begin], first)) {
      add(cells[begin], row, { count: row.count, whole: 0, weight: row.count });
    } else if (row.count <= 2) {
      // Nothing is due between two.
      add(holds(cells[begin], first), row, { count: 1, whole: 0, weight: 1 });
      add(holds(cells[end], last), row, { count: 1, whole: 0, weight: 1 });
    } else {
      for (let at = begin; at < cells.length && cells[at]!.from <= last; at++) {
        const cell = cells[at]!;
        const overlap = Math.min(cell.to, last) - Math.max(cell.from, first);
        add(cell, row, { count: 0, whole: row.count, weight: (row.count * Math.max(overlap, 1)) / (last - first) });
      }
    }
  }
  return new Map([...sums].map(([from, sum]) => [from, hourOf(sum)]));
}

function hourOf({ tones, count, whole, rows }: Sum): Hour {
  const tone = WORSE.findLast((one) => tones.has(one)) ?? 'none';
  const due = [...tones].reduce((sum, [one, weight]) => sum + (one === 'none' ? 0 : weight), 0);
  return { tone, count, whole, share: due > 0 ? Math.min((tones.get(tone) ?? 0) / due, 1) : 1, rows };
}
