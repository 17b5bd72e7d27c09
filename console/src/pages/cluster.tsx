// The servers that share the store, and who owns which segment of the job space.
import { useQuery } from '@tanstack/react-query';
import { call } from '../api/call';
import type { Cluster, ClusterServer, Overview } from '../api/schema';
import { SegmentMap, ownerOf, toneOf } from '../charts/segments';
import { useT, useWords } from '../i18n';
import { Fault, Figure, Loading, PageHead, Panel } from '../ui/parts';
import { Away, When, count, duration } from '../ui/time';
import { Skew } from './workers';

const EVERY_MS = 2000;

export default function ClusterPage() {
  const t = useT();
  const cluster = useQuery({ queryKey: ['cluster'], queryFn: () => call('showCluster', {}), refetchInterval: EVERY_MS });
  const overview = useQuery({ queryKey: ['overview'], queryFn: () => call('showOverview', {}), refetchInterval: EVERY_MS });
  if (cluster.isPending) return <Loading />;
  if (!cluster.data) {
    return (
      <div className="page">
        <Fault error={cluster.error} retry={() => void cluster.refetch()} />
      </div>
    );
  }
  const { data } = cluster;
  return (
    <div className="page">
      <PageHead title={t.cluster.title} note={t.cluster.store[data.store]} />
      {data.segments.unowned > 0 && (
        <div className="notice" data-tone="warning" role="alert">
          <span>{t.cluster.unowned(data.segments.unowned)}</span>
        </div>
      )}
      <Figures cluster={data} overview={overview.data} />
      <Panel title={t.cluster.servers} flush>
        <Servers cluster={data} />
      </Panel>
      <Panel title={t.cluster.map}>
        <div className="stack">
          <p className="quiet">{t.cluster.mapText}</p>
          <SegmentMap cluster={data} />
          <Ranges cluster={data} />
        </div>
      </Panel>
    </div>
  );
}

/** A time of a millisecond or so, with the digits that it has. */
const fine = (ms: number) => (ms < 10 ? `${Number(ms.toFixed(1))} ms` : duration(ms));

/** The bound below which all but a hundredth of the starts were. */
function lagOf(overview: Overview | undefined): { bound: number | null; none: boolean } {
  const buckets = overview?.start_delay ?? [];
  const all = buckets.at(-1)?.count ?? 0;
  if (all === 0) return { bound: null, none: true };
  const found = buckets.find((bucket) => bucket.count >= all * 0.99);
  return { bound: found?.up_to_s === null || found === undefined ? null : found.up_to_s * 1000, none: false };
}

function Figures({ cluster, overview }: { cluster: Cluster; overview: Overview | undefined }) {
  const { t, language } = useWords();
  const { database, servers } = cluster;
  const bound = (ms: number | null) => (ms === null ? '–' : t.cluster.upTo(fine(ms)));
  const of = (state: ClusterServer['state']) => servers.filter((server) => server.state === state).length;
  const lag = lagOf(overview);
  return (
    <dl className="figures">
      <Figure title={t.cluster.servers} value={count(servers.length, language)} note={t.cluster.serversHint(of('active'), of('standby'))} />
      <Figure title={t.cluster.lag} value={lag.none ? '–' : lag.bound === null ? '> 5 min' : t.cluster.upTo(duration(lag.bound))} note={t.cluster.lagHint} />
      <Figure title={t.cluster.read} value={fine(database.read_ms)} note={t.cluster.readHint} />
      <Figure title={t.cluster.commit} value={bound(database.commit_p50_ms)} note={t.cluster.commitHint(bound(database.commit_p99_ms))} />
      <Figure title={t.cluster.failures} value={count(database.commit_failures, language)} note={t.cluster.failuresHint(database.commits)} tone={database.commit_failures > 0 ? 'warning' : undefined} />
    </dl>
  );
}

/** The bounds of half of a server's commits and of all but a hundredth. */
function commits({ commit_p50_ms: half, commit_p99_ms: most }: ClusterServer) {
  const words = (ms: number | null) => (ms === null ? '–' : fine(ms));
  return half === null && most === null ? <span className="quiet">–</span> : `${words(half)} / ${words(most)}`;
}

const STATE_TONES: Record<ClusterServer['state'], string> = { active: 'completed', standby: 'pending', gone: 'failed' };

function Servers({ cluster }: { cluster: Cluster }) {
  const { t, language } = useWords();
  return (
    <table className="table">
      <thead>
        <tr>
          <th>{t.cluster.name}</th>
          <th>{t.cluster.state}</th>
          <th className="number">{t.cluster.segments}</th>
          <th>{t.cluster.address}</th>
          <th>{t.cluster.version}</th>
          <th className="number" title={t.cluster.lateHint}>
            {t.cluster.late}
          </th>
          <th className="number" title={t.cluster.skewHint}>
            {t.cluster.skew}
          </th>
          <th className="number" title={t.cluster.commitColumnHint}>
            {t.cluster.commit}
          </th>
          <th className="number">{t.cluster.started}</th>
          <th className="number">{t.cluster.seen}</th>
        </tr>
      </thead>
      <tbody>
        {cluster.servers.map((server) => (
          <tr key={server.session}>
            <td>
              <span className="row">
                <span className="key">
                  {server.segments > 0 && <i style={{ background: toneOf(cluster, server.session) }} />}
                  <span className="name">{server.name}</span>
                </span>
                {server.here && <span className="tag">{t.cluster.here}</span>}
                {!server.answered && server.state !== 'gone' && (
                  <span className="tag" data-tone="warning" title={t.cluster.silentHint}>
                    {t.cluster.silent}
                  </span>
                )}
              </span>
            </td>
            <td>
              <span className="tag" data-tone={STATE_TONES[server.state]}>
                {t.cluster.states[server.state]}
              </span>
            </td>
            <td className="number" title={server.tied === null ? undefined : t.cluster.tied(server.tied)}>
              {count(server.segments, language)}
            </td>
            <td className="mono">{server.address ?? <span className="quiet">–</span>}</td>
            <td className="quiet">{server.version}</td>
            <td className="number">{server.lag_ms === null ? <span className="quiet">–</span> : duration(server.lag_ms)}</td>
            <td className="number">{server.skew_ms === null ? <span className="quiet">–</span> : <Skew ms={server.skew_ms} />}</td>
            <td className="number">{commits(server)}</td>
            <td className="number quiet">
              <When at={server.started} />
            </td>
            <td className="number quiet">
              <Away at={server.last_seen} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The same as the map, for those who read. */
function Ranges({ cluster }: { cluster: Cluster }) {
  const t = useT();
  const { ranges } = cluster.segments;
  return (
    <details>
      <summary>{t.cluster.ranges(ranges.length)}</summary>
      <table className="table">
        <thead>
          <tr>
            <th>{t.cluster.range}</th>
            <th>{t.cluster.owner}</th>
            <th className="number">{t.cluster.epoch}</th>
          </tr>
        </thead>
        <tbody>
          {ranges.map((range) => (
            <tr key={range.first}>
              <td>{range.first === range.last ? range.first : `${range.first} – ${range.last}`}</td>
              <td>{ownerOf(cluster, range.session)?.name ?? t.cluster.nobody}</td>
              <td className="number">{range.epoch}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}
