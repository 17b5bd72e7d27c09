// What fires next, on a line that is finer near the present: seconds at its left end, a day at its right.
import { useRef } from 'react';
import type { Upcoming } from '../api/schema';
import { useSpoken, useWords } from '../i18n';
import { duration, shownTime, useNow } from '../ui/time';
import { useWidth } from './width';
import { Link } from '../ui/link';

const DAY_MS = 86_400_000;
const GRAIN_MS = 5_000;
const MARKS_MS = [10_000, 60_000, 600_000, 3_600_000, 6 * 3_600_000];
const LANES = 6;
const LANE_PX = 20;
const FOOT_PX = 26;
/** About as wide as a letter is. */
const LETTER_PX = 6.6;

/** Where a time lies between now and a day from now, from 0 to 1. */
export function placeOf(awayMs: number): number {
  return Math.log1p(Math.min(Math.max(awayMs, 0), DAY_MS) / GRAIN_MS) / Math.log1p(DAY_MS / GRAIN_MS);
}

interface Stem {
  fire: Upcoming;
  x: number;
  lane: number;
}

/** The soonest first; each takes the highest lane in which its name has room. What has no room is left out and counted. */
export function stems(fires: Upcoming[], now: number, width: number): { shown: Stem[]; left: number } {
  const ends = Array<number>(LANES).fill(-Infinity);
  const shown: Stem[] = [];
  for (const fire of fires) {
    const x = placeOf(Date.parse(fire.due) - now) * width * 0.94;
    const lane = ends.findIndex((end) => end < x - 6);
    const end = x + 16 + fire.job.length * LETTER_PX;
    if (lane < 0 || end > width + 40) continue;
    ends[lane] = end;
    shown.push({ fire, x, lane });
  }
  return { shown, left: fires.length - shown.length };
}

export function NextFires({ upcoming }: { upcoming: Upcoming[] }) {
  const { t, language } = useWords();
  const spoken = useSpoken();
  const place = useRef<HTMLDivElement>(null);
  const width = useWidth(place);
  const now = useNow(1000);
  const { shown, left } = stems(upcoming, now, width);
  const lanes = Math.max(1, ...shown.map((stem) => stem.lane + 1));
  const height = lanes * LANE_PX + FOOT_PX + 8;
  return (
    <>
      {upcoming.length === 0 && <p className="quiet">{t.overview.nextEmpty}</p>}
      <div ref={place} className="fires" style={{ height: upcoming.length === 0 ? 0 : height }}>
        {upcoming.length > 0 && (
          <>
            <div className="fires-axis" />
            {MARKS_MS.map((ms) => (
              <span key={ms} className="fires-mark" style={{ left: placeOf(ms) * width * 0.94 }} aria-hidden="true">
                {duration(ms).replace(/ 0\d? (s|min)$/, '').replace(/ 00 (s|min)$/, '')}
              </span>
            ))}
            {shown.map(({ fire, x, lane }) => (
              <Link
                key={`${fire.namespace}/${fire.job}`}
                href={`/jobs/${fire.namespace}/${fire.job}`}
                style={{ left: x, height: (lanes - lane) * LANE_PX - 8 }}
                title={`${shownTime(fire.due, language)} · ${spoken(fire.words, fire.words_zh)}`}
              >
                <span>{fire.job}</span>
              </Link>
            ))}
          </>
        )}
      </div>
      {left > 0 && <p className="quiet">{t.overview.nextMore(left)}</p>}
    </>
  );
}
