// Times and durations as people read them. Every time shows itself in full when pointed at.
import { useEffect, useState } from 'react';
import { useWords, type Language } from '../i18n';

const locale = (language: Language) => (language === 'zh' ? 'zh-CN' : 'en-GB');

const clocks = new Map<string, Intl.DateTimeFormat>();

function clock(language: Language, kind: 'time' | 'day' | 'full'): Intl.DateTimeFormat {
  const key = `${language} ${kind}`;
  const known = clocks.get(key);
  if (known) return known;
  const options: Intl.DateTimeFormatOptions =
    kind === 'time'
      ? { hour: '2-digit', minute: '2-digit', second: '2-digit' }
      : kind === 'day'
        ? { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' }
        : { dateStyle: 'medium', timeStyle: 'long' };
  const made = new Intl.DateTimeFormat(locale(language), { ...options, ...(kind === 'full' ? {} : { hour12: false }) });
  clocks.set(key, made);
  return made;
}

const SAME_DAY_MS = 18 * 3_600_000;

export function shownTime(at: string | number, language: Language): string {
  const time = new Date(at);
  const near = Math.abs(time.getTime() - Date.now()) < SAME_DAY_MS;
  return clock(language, near ? 'time' : 'day').format(time);
}

export function fullTime(at: string | number, language: Language): string {
  return clock(language, 'full').format(new Date(at));
}

/** When something happened or will; `dated` says the day also when it is near. */
export function When({ at, dated }: { at: string | null | undefined; dated?: boolean }) {
  const { language } = useWords();
  if (!at) return <span className="quiet">–</span>;
  return (
    <time dateTime={at} onPointerEnter={(event) => (event.currentTarget.title = fullTime(at, language))} className="nowrap">
      {dated ? clock(language, 'day').format(new Date(at)) : shownTime(at, language)}
    </time>
  );
}

/** How far away a time is; moves by itself. What is due and is yet to happen is never ago. */
export function Away({ at, due }: { at: string | null | undefined; due?: boolean }) {
  const { t, language } = useWords();
  const now = useNow(1000);
  if (!at) return <span className="quiet">–</span>;
  return (
    <time dateTime={at} onPointerEnter={(event) => (event.currentTarget.title = fullTime(at, language))} className="nowrap">
      {due && Date.parse(at) <= now ? t.now : away(Date.parse(at) - now, language)}
    </time>
  );
}

const STEPS: [number, Intl.RelativeTimeFormatUnit][] = [
  [60_000, 'second'],
  [3_600_000, 'minute'],
  [86_400_000, 'hour'],
  [Infinity, 'day'],
];
const UNIT_MS: Partial<Record<Intl.RelativeTimeFormatUnit, number>> = { second: 1000, minute: 60_000, hour: 3_600_000, day: 86_400_000 };
const relatives = new Map<string, Intl.RelativeTimeFormat>();

function relative(language: Language, numeric: 'always' | 'auto'): Intl.RelativeTimeFormat {
  const key = `${language} ${numeric}`;
  const known = relatives.get(key) ?? new Intl.RelativeTimeFormat(locale(language), { numeric, style: 'short' });
  relatives.set(key, known);
  return known;
}

export function away(ms: number, language: Language): string {
  const [, unit] = STEPS.find(([limit]) => Math.abs(ms) < limit) ?? STEPS[3]!;
  const steps = Math.round(ms / (UNIT_MS[unit] ?? 1));
  // Nobody says "in 0 seconds".
  return relative(language, steps === 0 ? 'auto' : 'always').format(Math.abs(steps) === 0 ? 0 : steps, unit);
}

export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const [h, m, s] = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60, Math.floor(ms / 1000) % 60];
  if (h >= 48) return `${Math.floor(h / 24)} d ${h % 24} h`;
  return h > 0 ? `${h} h ${String(m).padStart(2, '0')} min` : `${m} min ${String(s).padStart(2, '0')} s`;
}

export function bytes(count: number | null | undefined): string {
  if (count === null || count === undefined) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let [value, unit] = [count, 0];
  while (value >= 1024 && unit < units.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

export function count(value: number, language: Language): string {
  return value.toLocaleString(locale(language));
}

/** The present, which moves on. */
export function useNow(everyMs: number): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}
