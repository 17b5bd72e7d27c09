import { expect, it } from 'vitest';
import type { Cluster, ClusterServer } from '../api/schema';
import { squares, toneOf } from './segments';

const server = (session: number, state: ClusterServer['state']): ClusterServer => ({ session, state, name: `s${session}`, address: null, version: '', here: false, answered: true, started: null, last_seen: '', skew_ms: null, lag_ms: null, commit_p50_ms: null, commit_p99_ms: null, segments: 1, tied: 0 });

it('segments fill rows of 64, from the left and from the top', () => {
  const corners = squares(63, 64).match(/M[\d.]+ [\d.]+/g);
  expect(corners).toEqual(['M63.06 0.06', 'M0.06 1.06']);
});

it('each server has a colour of its own, and what nobody owns has none', () => {
  const cluster = { servers: [server(4, 'active'), server(9, 'active'), server(12, 'gone')] } as Cluster;
  expect(toneOf(cluster, 4)).not.toBe(toneOf(cluster, 9));
  expect(toneOf(cluster, 12)).toBe('var(--line-strong)');
  expect(toneOf(cluster, null)).toBe('var(--line-strong)');
});
