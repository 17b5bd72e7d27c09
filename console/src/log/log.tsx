// The output of a run: followed while it is written, searched, downloaded. Lines are text; colours are classes. A line may
// be of any height, so their places are measured.
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useMemo, useRef, useState } from 'react';
import { Refusal, send } from '../api/call';
import { useT } from '../i18n';
import { Button, Fault } from '../ui/parts';
import { bytes } from '../ui/time';
import { useToasts } from '../ui/toast';
import { Lines, readEntries, type Line } from './lines';

/** Of a longer line only the beginning is drawn, until someone asks for all of it. */
const CUT = 2_000;
/** A megabyte without a blank is laid out in seconds as one text, and in a fifth of one in blocks of this length. */
const BLOCK = 10_000;
const TAIL = 10_000;

interface Props {
  run: string;
  attempts: number;
  over: boolean;
}

export function Log({ run, attempts, over }: Props) {
  const t = useT();
  const [attempt, setAttempt] = useState(0);
  const [streams, setStreams] = useState<'both' | 'stdout' | 'stderr'>('both');
  const [find, setFind] = useState('');
  const [follow, setFollow] = useState(true);
  const [times, setTimes] = useState(false);
  const { lines, ended, error, forgotten } = useOutput(run, attempt, attempts, over);
  const seen = useMemo(() => {
    const wanted = find.toLowerCase();
    const fits = (line: Line) => (streams === 'both' || line.stream === streams || line.stream === 'note') && (!wanted || line.text.toLowerCase().includes(wanted));
    return streams === 'both' && !wanted ? lines : lines.filter(fits);
  }, [lines, streams, find]);
  const expired = error instanceof Refusal && error.code === 'log_expired';
  return (
    <div className="log" style={{ height: over ? `clamp(11rem, ${seen.length * 1.25 + 5}rem, min(32rem, 70vh))` : 'min(32rem, 70vh)' }}>
      <div className="log-bar">
        <input className="input" type="search" placeholder={t.log.search} aria-label={t.log.search} value={find} onChange={(event) => setFind(event.target.value)} />
        {find && <span className="quiet">{t.log.matches(seen.length)}</span>}
        {attempts > 1 && (
          <select className="select" aria-label={t.run.attempts} value={attempt} onChange={(event) => setAttempt(Number(event.target.value))}>
            <option value={0}>{t.all}</option>
            {Array.from({ length: attempts }, (_, index) => (
              <option key={index} value={index + 1}>
                {t.log.attempt(index + 1)}
              </option>
            ))}
          </select>
        )}
        <select className="select" aria-label={t.log.both} value={streams} onChange={(event) => setStreams(event.target.value as typeof streams)}>
          <option value="both">{t.log.both}</option>
          <option value="stdout">{t.log.stdout}</option>
          <option value="stderr">{t.log.stderr}</option>
        </select>
        <span className="grow" />
        <button type="button" className="chip" aria-pressed={times} onClick={() => setTimes(!times)}>
          {t.log.times}
        </button>
        {!ended && (
          <button type="button" className="chip" data-tone="running" aria-pressed={follow} onClick={() => setFollow(!follow)}>
            {follow ? t.log.following : t.log.follow}
          </button>
        )}
        <Download run={run} />
      </div>
      {expired ? <p className="loading">{t.log.gone}</p> : error ? <Fault error={error} /> : null}
      {!error && seen.length === 0 && <p className="loading">{find ? t.log.matches(0) : over ? t.log.empty : t.log.waiting}</p>}
      {forgotten && <p className="loading">{t.log.older}</p>}
      {seen.length > 0 && <Text lines={seen} follow={follow && !ended} onLeave={() => setFollow(false)} find={find} times={times} />}
    </div>
  );
}

/** Reads the output, follows it until the run has ended, and goes on after a break. */
function useOutput(run: string, attempt: number, attempts: number, over: boolean) {
  const [state, setState] = useState<{ lines: Line[]; ended: boolean; error: unknown; forgotten: boolean }>({ lines: [], ended: false, error: null, forgotten: false });
  const isOver = useRef(over);
  isOver.current = over;
  useEffect(() => {
    const stop = new AbortController();
    let again: ReturnType<typeof setTimeout> | undefined;
    const read = async () => {
      const kept = new Lines();
      let frame = 0;
      // What comes within one frame is drawn once.
      const show = () => {
        frame ||= requestAnimationFrame(() => {
          frame = 0;
          setState((before) => ({ ...before, error: null, lines: [...kept.all], forgotten: kept.forgotten > 0 }));
        });
      };
      try {
        const query = { follow: true, tail: TAIL, ...(attempt ? { attempt } : {}) };
        const response = await send('readLogs', { path: { id: run }, query: query as never, signal: stop.signal });
        if (response.body) {
          await readEntries(response.body, (entries) => {
            for (const entry of entries) kept.add(entry);
            show();
          });
        }
        show();
        if (isOver.current) setState((before) => ({ ...before, ended: true }));
        else again = setTimeout(() => void read(), 1000);
      } catch (error) {
        if (stop.signal.aborted) return;
        const refused = error instanceof Refusal && error.status >= 400 && error.status < 500;
        if (refused) setState((before) => ({ ...before, error, ended: true }));
        else {
          // Shown, and asked for again: the server that has it may come back.
          if (error instanceof Refusal && error.code === 'output_away') setState((before) => ({ ...before, error }));
          again = setTimeout(() => void read(), 1500);
        }
      }
    };
    setState({ lines: [], ended: false, error: null, forgotten: false });
    void read();
    return () => {
      stop.abort();
      clearTimeout(again);
    };
    // A run that is tried again is read again: its stream had ended with the attempt before.
  }, [run, attempt, attempts === 0]);
  return state;
}

function Text({ lines, follow, onLeave, find, times }: { lines: Line[]; follow: boolean; onLeave: () => void; find: string; times: boolean }) {
  const t = useT();
  const place = useRef<HTMLDivElement>(null);
  const [whole, setWhole] = useState<ReadonlySet<number>>(new Set());
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => place.current,
    estimateSize: () => 20,
    overscan: 20,
    getItemKey: (index) => lines[index]?.number ?? index,
  });
  const count = lines.length;
  useEffect(() => {
    if (follow && count > 0) virtual.scrollToIndex(count - 1, { align: 'end' });
  }, [follow, count, virtual]);
  return (
    <div
      ref={place}
      className="log-lines"
      tabIndex={0}
      role="log"
      aria-label={t.run.log}
      aria-live="off"
      onWheel={(event) => event.deltaY < 0 && follow && onLeave()}
    >
      <div className="log-body" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const line = lines[item.index];
          if (!line) return null;
          return (
            <div key={item.key} ref={virtual.measureElement} data-index={item.index} className="log-line" data-stream={line.stream} style={{ transform: `translateY(${item.start}px)` }}>
              <span className="number">{line.number}</span>
              <span className="at">{times ? line.at.slice(11, 23) : ''}</span>
              <span className="text" dir="auto">
                <Drawn line={line} all={whole.has(line.number)} find={find} />
                {!whole.has(line.number) && line.text.length > CUT && (
                  <button type="button" className="log-cut" onClick={() => setWhole(new Set([...whole, line.number]))}>
                    {t.log.cut(bytes(line.text.length - CUT))}
                  </button>
                )}
              </span>
            </div>
          );
        })}
      </div>
    </div>
  );
}

function Drawn({ line, all, find }: { line: Line; all: boolean; find: string }) {
  let room = all ? Infinity : CUT;
  return line.pieces.map((piece, index) => {
    if (room <= 0) return null;
    const text = piece.text.slice(0, room === Infinity ? undefined : room);
    room -= text.length;
    return (
      <span key={index} className={piece.style || undefined}>
        {text.length > BLOCK ? blocks(text).map((block, at) => <span key={at} className="log-block">{find ? marked(block, find) : block}</span>) : find ? marked(text, find) : text}
      </span>
    );
  });
}

function blocks(text: string): string[] {
  return Array.from({ length: Math.ceil(text.length / BLOCK) }, (_, at) => text.slice(at * BLOCK, (at + 1) * BLOCK));
}

function marked(text: string, find: string): React.ReactNode[] {
  const parts: React.ReactNode[] = [];
  const lower = text.toLowerCase();
  const wanted = find.toLowerCase();
  let from = 0;
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, at + wanted.length)) {
    parts.push(text.slice(from, at), <mark key={at}>{text.slice(at, at + wanted.length)}</mark>);
    from = at + wanted.length;
  }
  parts.push(text.slice(from));
  return parts;
}

function Download({ run }: { run: string }) {
  const t = useT();
  const { complain } = useToasts();
  const [busy, setBusy] = useState(false);
  const get = async () => {
    setBusy(true);
    try {
      const response = await send('readLogs', { path: { id: run } }, { Accept: 'text/plain' });
      const link = document.createElement('a');
      link.href = URL.createObjectURL(await response.blob());
      link.download = `${run}.log`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    } catch (error) {
      complain(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Button size="small" disabled={busy} onClick={() => void get()}>
      {t.log.download}
    </Button>
  );
}
