// The output of a run as lines, read while it is written.
//
// Pieces come as newline-delimited JSON; a long line may come in several. Lines are kept up to a bound: of more, the oldest
// are forgotten here and can be downloaded.
import { pieces, plainPen, type Pen, type Piece } from './ansi';

export type Stream = 'stdout' | 'stderr' | 'note';

export interface Line {
  number: number;
  stream: Stream;
  attempt: number;
  at: string;
  text: string;
  pieces: Piece[];
}

interface Entry {
  ts: string;
  stream: Stream;
  attempt: number;
  text: string;
}

const KEPT = 200_000;

export class Lines {
  all: Line[] = [];
  forgotten = 0;
  private open = new Map<string, Line>();
  private pens = new Map<string, Pen>();
  private next = 1;

  add(entry: Entry): void {
    const source = `${entry.attempt} ${entry.stream}`;
    let rest = entry.text;
    while (rest.length > 0) {
      const end = rest.indexOf('\n');
      const part = end < 0 ? rest : rest.slice(0, end);
      rest = end < 0 ? '' : rest.slice(end + 1);
      this.put(source, entry, part);
      if (end >= 0) this.open.delete(source);
    }
    if (this.all.length > KEPT) {
      this.forgotten += this.all.length - KEPT;
      this.all = this.all.slice(-KEPT);
    }
  }

  private put(source: string, entry: Entry, part: string): void {
    const before = this.open.get(source);
    const pen = this.pens.get(source) ?? plainPen();
    this.pens.set(source, pen);
    // A carriage return begins the line anew, as progress bars do.
    const text = part.replace(/\r$/, '');
    const fresh = text.slice(text.lastIndexOf('\r') + 1);
    if (before) {
      before.text += fresh;
      before.pieces = [...before.pieces, ...pieces(fresh, pen)];
      return;
    }
    const line: Line = { number: this.next++, stream: entry.stream, attempt: entry.attempt, at: entry.ts, text: fresh, pieces: pieces(fresh, pen) };
    this.all.push(line);
    this.open.set(source, line);
  }
}

/** Reads a body of newline-delimited JSON; `hear` gets what came at once. */
export async function readEntries(body: ReadableStream<Uint8Array>, hear: (entries: Entry[]) => void): Promise<void> {
  const reader = body.pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split('\n');
    rest = lines.pop() ?? '';
    const entries = lines.filter(Boolean).map((line) => JSON.parse(line) as Entry);
    if (entries.length > 0) hear(entries);
  }
}
