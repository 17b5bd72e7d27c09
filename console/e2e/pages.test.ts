// Backfills from the first try to the end, and the cluster as its servers see it.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Site, counted, eventually } from './site';

/** One day for all tests, also when another begins meanwhile. */
const TODAY = Date.now();
/** Midnight so many days ago, as a field for a day and a time takes it; the browser's time zone is UTC. */
const midnight = (daysAgo: number) => `${new Date(TODAY - daysAgo * 86_400_000).toISOString().slice(0, 10)}T00:00`;

let site: Site;
beforeAll(async () => {
  site = await Site.start();
  // Not often enough to fire by itself while the test runs.
  await site.shell('report', 'echo $DRUMTOWER_NOMINAL_MS', { schedule: [{ cron: '30 */6 * * *' }] });
  site.expected.push(/404/, /422/);
});
afterAll(() => site.stop());

it('a backfill is tried, started from its job, seen to its end, and leads to its runs', async () => {
  const page = await site.open('/jobs/default/report');
  await page.getByRole('link', { name: 'Backfill', exact: true }).click();
  await page.getByRole('heading', { name: 'New backfill', exact: true }).waitFor();
  expect(await page.getByLabel('Job', { exact: true }).inputValue()).toBe('report');
  const start = page.getByRole('button', { name: 'Start it', exact: true });
  expect(await start.isDisabled()).toBe(true);
  await page.getByLabel('From', { exact: true }).fill(midnight(3));
  await page.getByLabel('Until', { exact: true }).fill(midnight(4));
  const tryIt = page.getByRole('button', { name: 'Try it', exact: true });
  await tryIt.click();
  const until = page.locator('.field').filter({ has: page.getByLabel('Until', { exact: true }) });
  await until.getByRole('alert').getByText('is not after `from`').waitFor();
  await page.getByLabel('Until', { exact: true }).fill(midnight(1));
  await tryIt.click();
  // Four times a day, two days, none of them run.
  await page.getByText('It would make 8 runs of 8 times.', { exact: true }).waitFor();
  await page.getByRole('table', { name: 'What it would do' }).getByText('no run', { exact: true }).waitFor();
  expect((await site.api('GET', '/api/v1/backfills')).items).toEqual([]);
  // What was tried holds only for what was tried.
  await page.getByLabel('Runs at once', { exact: true }).fill('3');
  expect(await start.isDisabled()).toBe(true);
  await tryIt.click();
  await start.click();
  await page.getByRole('progressbar', { name: 'Progress' }).waitFor();
  await page.getByText('8 of 8 times', { exact: true }).waitFor();
  await page.locator('.page-head').getByText('Completed', { exact: true }).waitFor();
  const [made] = (await site.api('GET', '/api/v1/backfills')).items;
  expect([made.state, made.made, made.max_active]).toEqual(['COMPLETED', 8, 3]);
  const runs = page.getByRole('table', { name: 'Runs' }).getByRole('link', { name: /^run_/ });
  await counted(runs, 8);
  await runs.first().click();
  await page.getByRole('link', { name: made.id }).waitFor();
  await page.goto(`${site.url}/backfills`);
  await page.getByRole('link', { name: 'report', exact: true }).click();
  await page.getByText(made.id, { exact: true }).waitFor();
  await page.context().close();
});

it('a backfill is paused, resumed and cancelled; a job that is not there is told at its field', async () => {
  await site.shell('slow', `while [ ! -e ${site.data}/go ]; do sleep 0.05; done`, { schedule: [{ cron: '0 * * * *' }] });
  const page = await site.open('/backfills/new');
  await page.getByLabel('Job', { exact: true }).fill('nobody');
  await page.getByRole('button', { name: 'Try it', exact: true }).click();
  const job = page.locator('.field').filter({ has: page.getByLabel('Job', { exact: true }) });
  await job.getByRole('alert').getByText('there is no job `nobody`').waitFor();
  await page.getByLabel('Job', { exact: true }).fill('slow');
  await page.getByRole('button', { name: 'Try it', exact: true }).click();
  await page.getByRole('button', { name: 'Start it', exact: true }).click();
  const state = async () => (await site.api('GET', '/api/v1/backfills')).items.find((one: { job: string }) => one.job === 'slow').state as string;
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  await page.getByRole('button', { name: 'Resume', exact: true }).waitFor();
  expect(await state()).toBe('PAUSED');
  await page.getByRole('button', { name: 'Resume', exact: true }).click();
  await page.getByRole('button', { name: 'Pause', exact: true }).waitFor();
  expect(await state()).toBe('RUNNING');
  await page.getByRole('button', { name: 'Cancel it', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Also stop those that workers have', { exact: true }).check();
  await dialog.getByRole('button', { name: 'Cancel it', exact: true }).click();
  await eventually('it is cancelled', async () => (await state()) === 'CANCELLED');
  await counted(page.getByRole('button', { name: 'Cancel it', exact: true }), 0);
  await page.context().close();
});

it('a viewer may try a backfill and is not offered to start one', async () => {
  const page = await site.open('/backfills/new?job=report', await site.newToken('vic', 'viewer'));
  await page.getByRole('button', { name: 'Try it', exact: true }).waitFor();
  expect(await page.getByRole('button', { name: 'Start it', exact: true }).count()).toBe(0);
  await page.goto(`${site.url}/backfills`);
  await page.getByRole('heading', { name: 'Backfills', exact: true }).waitFor();
  expect(await page.getByRole('link', { name: 'New backfill', exact: true }).count()).toBe(0);
  await page.context().close();
});

it('the cluster shows its server, who owns each segment, and how the store answers', async () => {
  const page = await site.open('/cluster');
  await page.getByText('Embedded store: one server', { exact: true }).waitFor();
  const [server] = (await site.api('GET', '/api/v1/cluster')).servers;
  const row = page.getByRole('row').filter({ hasText: server.name });
  await row.getByText('Active', { exact: true }).waitFor();
  await row.getByText('answered', { exact: true }).waitFor();
  await row.getByRole('cell', { name: '1,024', exact: true }).waitFor();
  const map = page.getByRole('img', { name: `Map of the segments: ${server.name} 1024` });
  const box = (await map.boundingBox())!;
  // The last square of the first row, and the first of the second.
  await map.hover({ position: { x: box.width - 3, y: 3 } });
  await page.getByText(`Segment 63: ${server.name}, epoch 1`, { exact: true }).waitFor();
  await map.hover({ position: { x: 3, y: (box.height / 16) * 1.5 } });
  await page.getByText(`Segment 64: ${server.name}, epoch 1`, { exact: true }).waitFor();
  await page.getByText('As a list (1 range)', { exact: true }).click();
  await page.getByRole('cell', { name: '0 – 1023', exact: true }).waitFor();
  await page.context().close();
});

it('a cluster of several servers is told apart by colour, and what nobody owns is said', async () => {
  // Several servers need a database to share; what such a cluster answers is tried with the server's own tests.
  const page = await site.open('/');
  const cluster = await site.api('GET', '/api/v1/cluster');
  const servers = ['north', 'south', 'west'].map((name, at) => ({ ...cluster.servers[0], name, session: at + 1, here: at === 0, state: at === 2 ? 'gone' : 'active', segments: [400, 600, 24][at] }));
  const ranges = [
    { first: 0, last: 399, session: 1, epoch: 3 },
    { first: 400, last: 999, session: 2, epoch: 7 },
    { first: 1000, last: 1023, session: 3, epoch: 2 },
  ];
  await page.route('**/api/v1/cluster', (route) => route.fulfill({ json: { ...cluster, store: 'postgresql', servers, segments: { count: 1024, unowned: 24, ranges } } }));
  await page.goto(`${site.url}/cluster`);
  await page.getByRole('img', { name: 'Map of the segments: north 400, south 600, west 24' }).waitFor();
  await page.getByRole('alert').getByText('24 segments have no owner now.').waitFor();
  const fills = await page.locator('.segments svg path').evaluateAll((paths) => paths.map((path) => getComputedStyle(path).fill));
  expect(new Set(fills).size).toBe(3);
  await page.context().close();
});
