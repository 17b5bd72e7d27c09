// Time series, drawn by uPlot, which is loaded when the first chart is shown. Colours come from the tokens.
import { useEffect, useRef, useState } from 'react';
import type uPlot from 'uplot';
import { useWords, type Language } from '../i18n';
import { useTheme } from '../theme';
import { useWidth } from './width';

export interface Series {
  label: string;
  /** The name of a token, such as `--completed`. */
  colour: string;
  values: (number | null)[];
  fill?: boolean;
}

interface Props {
  label: string;
  /** Seconds since 1970. */
  times: number[];
  series: Series[];
  /** Series stand on one another. */
  stacked?: boolean;
  height?: number;
  /** The upper end of the scale; without it the highest value. */
  most?: number;
  /** Said in place of a chart without values. */
  empty?: string;
  shown: (value: number) => string;
}

/** Steps of a scale that counts. */
const WHOLE = [1, 2, 5].flatMap((digit) => Array.from({ length: 9 }, (_, power) => digit * 10 ** power)).sort((a, b) => a - b);

/** Steps of a scale of times, in milliseconds: seconds, minutes and hours have their own. */
const SPANS = [1, 2, 5, 10, 20, 50, 100, 200, 500, ...[1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800].map((s) => s * 1000), ...[1, 2, 6, 12, 24, 48].map((h) => h * 3_600_000)];

const token = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** That of the page in the smallest size of the tokens; a canvas does not inherit it. */
function axisFont(): string {
  const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
  return `${parseFloat(token('--text-1')) * rem}px ${getComputedStyle(document.body).fontFamily}`;
}

/** Each series on top of those before it; drawn from the highest down, so that the lower ones cover their part. */
function stack(series: Series[]): (number | null)[][] {
  const sums: (number | null)[][] = [];
  let below: (number | null)[] | undefined;
  for (const one of series) {
    const base: (number | null)[] | undefined = below;
    below = one.values.map((value, index) => (value ?? 0) + (base?.[index] ?? 0));
    sums.push(below);
  }
  return sums;
}

/** Of a few minutes also the seconds. */
const FEW_S = 600;

function clockOf(language: Language, times: number[]): Intl.DateTimeFormat {
  const isShort = (times.at(-1) ?? 0) - (times[0] ?? 0) < FEW_S;
  return new Intl.DateTimeFormat(language === 'zh' ? 'zh-CN' : 'en-GB', { hour: '2-digit', minute: '2-digit', second: isShort ? '2-digit' : undefined, hour12: false });
}

/** Points without a neighbour: no line leads to them. */
const lonely: uPlot.Series.Points.Filter = (chart, index) => {
  const values = chart.data[index] ?? [];
  const isThere = (at: number) => values[at] !== null && values[at] !== undefined;
  return Array.from(values.keys()).filter((at) => isThere(at) && !isThere(at - 1) && !isThere(at + 1));
};

export function Plot(props: Props) {
  const isEmpty = props.series.every((one) => one.values.every((value) => !value));
  return isEmpty && props.empty ? <p className="quiet">{props.empty}</p> : <Drawn {...props} />;
}

function Drawn({ label, times, series, stacked, height = 180, most: top, shown }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const width = useWidth(place);
  const theme = useTheme();
  const { language } = useWords();
  const drawn = stacked ? stack(series).reverse() : series.map((one) => one.values);
  const data = [times, ...drawn] as uPlot.AlignedData;
  const latest = useRef(data);
  latest.current = data;
  const shape = `${series.map((one) => one.label).join()} ${stacked} ${theme} ${language} ${height}`;

  useEffect(() => {
    let gone = false;
    const element = place.current;
    if (!element || width === 0) return;
    void Promise.all([import('uplot'), import('uplot/dist/uPlot.min.css')]).then(([{ default: Draw }]) => {
      if (gone) return;
      const bars = Draw.paths.bars?.({ size: [0.72, 24], radius: 0.08 });
      const order = stacked ? [...series].reverse() : series;
      const axis = { stroke: token('--ink-3'), grid: { stroke: token('--line'), width: 1 }, ticks: { show: false }, font: axisFont() };
      const clock = clockOf(language, times);
      chart.current = new Draw(
        {
          width,
          height,
          // Room for half of the last label.
          padding: [8, 18, 0, 0],
          legend: { show: false },
          cursor: { drag: { x: false, y: false }, points: { show: !stacked } },
          scales: { x: { time: true }, y: { range: (_, __, most) => [0, top ?? Math.max((most ?? 0) * 1.08, stacked ? 4 : 10)] } },
          axes: [
            { ...axis, size: 28, grid: { show: false }, values: (_, ticks) => ticks.map((at) => clock.format(at * 1000)), space: 64 },
            // Of a half run there is nothing to say.
            { ...axis, size: 60, values: (_, ticks) => ticks.map((value) => shown(value).replace(/ 00 (s|min)$/, '')), space: 32, ...(top ? {} : { incrs: stacked ? WHOLE : SPANS }) },
          ],
          series: [
            {},
            ...order.map((one) => ({
              label: one.label,
              stroke: token(one.colour),
              width: stacked ? 0 : 1.75,
              fill: stacked ? token(one.colour) : one.fill ? `${token(one.colour)}22` : undefined,
              paths: stacked ? bars : undefined,
              points: { show: false, size: 5, fill: token(one.colour), filter: stacked ? undefined : lonely },
            })),
          ],
          hooks: { setCursor: [(drawnChart) => tell(drawnChart.cursor.idx ?? null)] },
        },
        latest.current,
        element,
      );
    });
    return () => {
      gone = true;
      chart.current?.destroy();
      chart.current = null;
    };
    // The chart is made anew when its shape changes; data alone is set below.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [shape, width]);

  useEffect(() => {
    chart.current?.setData(latest.current);
  });

  const [at, tell] = useState<number | null>(null);
  const last = times.length - 1;
  const index = at ?? last;
  const clock = clockOf(language, times);
  return (
    <figure className="plot">
      <figcaption className="row">
        <span className="only-heard">{label}</span>
        {series.map((one) => (
          <span key={one.label} className="key">
            <i style={{ background: `var(${one.colour})` }} />
            {one.label} <b>{one.values[index] === null || one.values[index] === undefined ? '–' : shown(one.values[index])}</b>
          </span>
        ))}
        <span className="quiet grow key-time">{times[index] !== undefined && clock.format(times[index] * 1000)}</span>
      </figcaption>
      <div ref={place} style={{ height }} />
    </figure>
  );
}
