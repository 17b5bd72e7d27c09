// Jobs of an imaginary shop, for pictures: most go well, some fail, one waits.
import type { Site } from './site';

const at = (seconds: string, line: string) => `sleep ${seconds}; ${line}`;
/** A number that differs from run to run, from the run's own id. */
const DICE = 'd=$(printf %s "$DRUMTOWER_RUN" | cksum | cut -d" " -f1); ';

const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();

/** More letters than the mail server takes at once: some of them wait. */
export async function crowd(site: Site): Promise<void> {
  await site.api('POST', '/api/v1/runs:batch', { runs: Array.from({ length: 9 }, () => ({ job: 'newsletter' })) });
}

/** Workers of two places beside the one of the server; one of them is taken out for a while. */
async function fleet(site: Site): Promise<void> {
  await site.worker('berlin-1', { region: 'eu', disk: 'ssd' });
  await site.worker('berlin-2', { region: 'eu', disk: 'ssd' });
  await site.worker('tokyo-1', { region: 'jp', disk: 'hdd' }, 16);
  await site.api('POST', '/api/v1/workers/berlin-2/drain', { deadline: '1h' });
}

export async function demo(site: Site): Promise<void> {
  await fleet(site);
  await site.api('PUT', '/api/v1/namespaces/default/calendars/working-days', { kind: 'Calendar', weekly: ['mon', 'tue', 'wed', 'thu', 'fri'], exclude: ['12-25', '01-01'] });
  await site.api('PUT', '/api/v1/namespaces/default/calendars/stocktaking', { kind: 'Calendar', include: ['01-02', '2026-12-30..2026-12-31'] });
  await site.api('PUT', '/api/v1/namespaces/default/queues/mail', { kind: 'Queue', concurrency: 2, rate: '100/1m' });
  await site.api('PUT', '/api/v1/namespaces/default/queues/warehouse', { kind: 'Queue', concurrency: 4 });
  const every = (duration: string) => [{ every: duration }];
  const once = { retry: { max_attempts: 1 } };
  await site.shell('orders-import', `${DICE} sleep 0.$((d % 9)); echo "imported $((d % 400)) orders"`, { schedule: every('5s'), labels: { team: 'orders', tier: '1' }, description: 'Takes new orders from the shop.' });
  await site.shell('stock-sync', `${DICE} sleep 1.$((d % 9)); echo "stock of $((d % 90)) articles"`, { schedule: every('15s'), labels: { team: 'warehouse' }, queue: 'warehouse' });
  await site.shell('mail-confirmations', `${DICE} sleep 2; echo "sent $((d % 30)) letters"`, { schedule: every('10s'), labels: { team: 'orders' }, queue: 'mail', overlap: 'allow' });
  await site.shell('payments-settle', `${DICE} sleep 0.3; if [ $((d % 9)) -eq 0 ]; then echo "gateway answered 502" >&2; exit 3; fi; echo settled`, { schedule: every('20s'), labels: { team: 'payments', tier: '1' }, ...once });
  await site.shell('crm-export', 'echo "connection to crm.internal refused" >&2; exit 7', { schedule: every('2m'), labels: { team: 'sales' }, ...once });
  await site.shell('thumbnails', `${DICE} i=0; while [ $i -lt 40 ]; do i=$((i+1)); printf '\\033[32mok\\033[0m  image-%04d.jpg  %d kB\\n' $((d % 9000 + i)) $((20 + i * 7 % 90)); sleep 0.4; done`, { schedule: every('1m'), labels: { team: 'web' } });
  await site.shell('search-index', at('8', 'echo "index has 48213 documents"'), { schedule: every('45s'), labels: { team: 'web' } });
  await site.shell('nightly-report', 'echo report', { schedule: [{ cron: '30 2 * * *', timezone: 'Europe/Berlin' }], calendar: { only: ['working-days'], roll: 'next' }, labels: { team: 'finance' }, description: 'Figures of the day before, for finance.' });
  await site.shell('database-backup', 'echo backup', { schedule: [{ cron: '0 */2 * * *' }], labels: { tier: '1' }, timeout: '1h' });
  await site.shell('invoices', 'echo invoices', { schedule: [{ cron: '15 9 1 * *', timezone: 'Asia/Shanghai' }], labels: { team: 'finance' } });
  await site.shell('cache-warm', 'echo warm', { schedule: [{ cron: '*/10 * * * *' }], labels: { team: 'web' } });
  await site.shell('price-list', 'echo list', { schedule: [{ cron: '25,55 * * * *' }], labels: { team: 'sales' } });
  await site.shell('reindex-all', 'echo reindex', { labels: { team: 'web' }, params: { shards: 4, full: true }, description: 'By hand, after a change of the schema.' });
  await site.shell('sales-figures', 'echo "figures of the day"', { after: { jobs: ['payments-settle', 'invoices'] }, labels: { team: 'finance' }, description: 'Once both have completed.' });
  await site.shell('newsletter', at('6', 'echo "sent to one reader"'), { queue: 'mail', labels: { team: 'marketing' }, overlap: 'allow', description: 'One run a reader; the mail server takes two at once.' });
  await site.api('POST', '/api/v1/namespaces/default/jobs/price-list/pause');
  await site.shell('orders-import', `${DICE} sleep 0.$((d % 9)); echo "imported $((d % 400)) orders"`, { schedule: every('5s'), labels: { team: 'orders', tier: '1' }, description: 'Takes new orders from the shop.', timeout: '2m', retry: { max_attempts: 5 } });
  await site.api('POST', '/api/v1/namespaces/default/locks/nightly-import/acquire', { owner: 'importer-2', ttl: '24h' });
  await site.api('POST', '/api/v1/namespaces/default/jobs/database-backup/backfills', { from: daysAgo(14), to: daysAgo(7), max_active: 4 });
  await site.api('POST', '/api/v1/namespaces/default/jobs/search-index/backfills', { from: daysAgo(1), to: daysAgo(1 - 1 / 24) });
  await site.newToken('ci', 'operator', 'default');
  await site.newToken('grafana', 'viewer');
  await site.newToken('fleet-eu', 'worker');
  await site.api('PUT', '/api/v1/namespaces/default/settings/notify', { rules: [{ on: ['failure', 'recovery'], webhook: 'https://hooks.example.com/drumtower', group_for: '10m' }] });
}
