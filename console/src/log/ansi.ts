// The colours that programs write for terminals, as classes. Every other control is dropped, so that nothing a program
// writes can do more than be read.

export interface Piece {
  text: string;
  /** Names of classes, separated by blanks. */
  style: string;
}

/** What is in force from one line to the next. */
export interface Pen {
  marks: Set<string>;
  front: number | null;
  back: number | null;
}

export const plainPen = (): Pen => ({ marks: new Set(), front: null, back: null });

// A control sequence; an operating system command up to its end; a short escape; a control character that is no space.
// eslint-disable-next-line no-control-regex
const CONTROL = /\x1b\[([0-9;:]*)([ -/]*[@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\|$)|\x1b[@-Z\\^_=>78()#]?|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g;

const MARKS: Record<number, string> = { 1: 'a-bold', 2: 'a-dim', 3: 'a-italic', 4: 'a-under', 9: 'a-strike' };
const ENDS: Record<number, string[]> = { 22: ['a-bold', 'a-dim'], 23: ['a-italic'], 24: ['a-under'], 29: ['a-strike'] };

/** The pieces of a line, and the pen as the line leaves it. */
export function pieces(line: string, pen: Pen): Piece[] {
  const found: Piece[] = [];
  let from = 0;
  const put = (text: string) => {
    if (text) found.push({ text, style: styleOf(pen) });
  };
  for (const match of line.matchAll(CONTROL)) {
    put(line.slice(from, match.index));
    from = match.index + match[0].length;
    if (match[2] === 'm') turn(pen, match[1] ?? '');
  }
  put(line.slice(from));
  return found;
}

function styleOf(pen: Pen): string {
  const names = [...pen.marks];
  if (pen.front !== null) names.push(`a-f${pen.front}`);
  if (pen.back !== null) names.push(`a-b${pen.back}`);
  return names.join(' ');
}

function turn(pen: Pen, codes: string): void {
  const numbers = codes.split(/[;:]/).map((code) => Number(code || 0));
  for (let at = 0; at < numbers.length; at++) {
    const code = numbers[at]!;
    if (code === 0) {
      pen.marks.clear();
      pen.front = pen.back = null;
    } else if (MARKS[code]) pen.marks.add(MARKS[code]);
    else if (ENDS[code]) ENDS[code].forEach((name) => pen.marks.delete(name));
    else if (code >= 30 && code <= 37) pen.front = code - 30;
    else if (code >= 90 && code <= 97) pen.front = code - 82;
    else if (code >= 40 && code <= 47) pen.back = code - 40;
    else if (code >= 100 && code <= 107) pen.back = code - 92;
    else if (code === 39) pen.front = null;
    else if (code === 49) pen.back = null;
    else if (code === 38 || code === 48) {
      const [colour, used] = wide(numbers, at + 1);
      if (code === 38) pen.front = colour;
      else pen.back = colour;
      at += used;
    }
  }
}

/** Of 256 and of millions of colours the nearest of the sixteen. */
function wide(numbers: number[], at: number): [number | null, number] {
  if (numbers[at] === 5) return [nearestOf256(numbers[at + 1] ?? 0), 2];
  if (numbers[at] === 2) return [nearest(numbers[at + 1] ?? 0, numbers[at + 2] ?? 0, numbers[at + 3] ?? 0), 4];
  // Nobody knows how long it is: the rest of the sequence is left out.
  return [null, numbers.length];
}

function nearestOf256(index: number): number | null {
  if (index < 16) return index;
  if (index >= 232) return index < 244 ? 8 : 7;
  const level = (value: number) => (value === 0 ? 0 : 55 + value * 40);
  const cube = index - 16;
  return nearest(level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6));
}

function nearest(red: number, green: number, blue: number): number {
  const most = Math.max(red, green, blue);
  if (most < 64) return 8;
  const on = (value: number) => (value > most * 0.6 ? 1 : 0);
  return on(red) | (on(green) << 1) | (on(blue) << 2);
}
