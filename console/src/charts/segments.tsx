// The 1,024 segments as a map: a square each, coloured by its owner. One shape for each owner, however many squares.
import { useMemo, useState } from 'react';
import type { Cluster, ClusterServer, SegmentRange } from '../api/schema';
import { useT } from '../i18n';

const ACROSS = 64;
/** How many colours owners have; from then on they repeat. */
const COLOURS = 8;

export function ownerOf(cluster: Cluster, session: number | null): ClusterServer | undefined {
  return cluster.servers.find((server) => server.session === session);
}

/** The colour of an owner: by its place among the servers, so that neighbours differ. */
export function toneOf(cluster: Cluster, session: number | null): string {
  const place = cluster.servers.findIndex((server) => server.session === session);
  return place < 0 || cluster.servers[place]?.state === 'gone' ? 'var(--line-strong)' : `var(--owner-${(place % COLOURS) + 1})`;
}

/** The squares from one segment to another, as a path on a grid of unit squares with a gap between them. */
export function squares(first: number, last: number): string {
  let path = '';
  for (let at = first; at <= last; at++) path += `M${(at % ACROSS) + 0.06} ${Math.floor(at / ACROSS) + 0.06}h.88v.88h-.88z`;
  return path;
}

export function SegmentMap({ cluster }: { cluster: Cluster }) {
  const t = useT();
  const { ranges, count } = cluster.segments;
  const [pointed, point] = useState<number | null>(null);
  const down = Math.ceil(count / ACROSS);
  const shapes = useMemo(() => {
    const byOwner = Map.groupBy(ranges, (range) => range.session);
    return [...byOwner].map(([session, own]) => ({ session, path: own.map((range) => squares(range.first, range.last)).join('') }));
  }, [ranges]);
  const nameOf = (session: number | null) => ownerOf(cluster, session)?.name ?? t.cluster.nobody;
  const counted = (session: number | null) => ranges.filter((range) => range.session === session).reduce((sum, range) => sum + range.last - range.first + 1, 0);
  const owned = shapes.map(({ session }) => `${nameOf(session)} ${counted(session)}`).join(', ');
  const found = pointed === null ? undefined : ranges.find((range: SegmentRange) => range.first <= pointed && pointed <= range.last);
  return (
    <figure className="segments">
      <svg
        viewBox={`0 0 ${ACROSS} ${down}`}
        role="img"
        aria-label={t.cluster.mapLabel(owned)}
        onPointerMove={(event) => {
          const box = event.currentTarget.getBoundingClientRect();
          const [x, y] = [Math.floor(((event.clientX - box.left) / box.width) * ACROSS), Math.floor(((event.clientY - box.top) / box.height) * down)];
          const at = y * ACROSS + x;
          point(x >= 0 && x < ACROSS && at >= 0 && at < count ? at : null);
        }}
        onPointerLeave={() => point(null)}
      >
        {shapes.map(({ session, path }) => (
          <path key={session ?? 'nobody'} d={path} style={{ fill: toneOf(cluster, session) }} />
        ))}
        {pointed !== null && <path d={squares(pointed, pointed)} className="segments-pointed" />}
      </svg>
      <figcaption className="row legend">
        {shapes.map(({ session }) => (
          <span key={session ?? 'nobody'} className="key">
            <i style={{ background: toneOf(cluster, session) }} />
            {nameOf(session)} · {counted(session)}
          </span>
        ))}
        <span className="grow" />
        <span>{found && pointed !== null ? t.cluster.cell(pointed, nameOf(found.session), found.epoch) : t.cluster.point}</span>
      </figcaption>
    </figure>
  );
}
