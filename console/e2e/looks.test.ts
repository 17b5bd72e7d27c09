// How the console looks and feels: languages, themes, keys, a phone, and what axe says of every page.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Site, counted, eventually } from './site';

let site: Site;
let run: string;
let sleeps: string;
let backfill: string;
beforeAll(async () => {
  site = await Site.start();
  await site.shell('greet', 'echo hello', { schedule: [{ cron: '30 2 * * *', timezone: 'Europe/Berlin' }], labels: { team: 'docs' }, description: 'Says hello.' });
  await site.shell('greet', 'echo hello', { schedule: [{ cron: '30 3 * * *', timezone: 'Europe/Berlin' }], labels: { team: 'docs' }, description: 'Says hello.' });
  // Its times are years away, with an offset: as wide as times get.
  await site.shell('leap', 'true', { schedule: [{ cron: '30 3 29 2 *', timezone: 'Asia/Kolkata' }] });
  await site.shell('broken', 'echo oh no >&2; exit 3', { retry: { max_attempts: 1 } });
  await site.api('PUT', '/api/v1/namespaces/default/queues/mail', { kind: 'Queue', concurrency: 4, rate: '1/1h' });
  // One may start; the rate holds the others back.
  await site.shell('letter', 'exec sleep 600', { queue: 'mail' });
  sleeps = await site.trigger('letter');
  for (let number = 0; number < 2; number++) await site.trigger('letter');
  await site.api('PUT', '/api/v1/namespaces/default/calendars/holidays', { kind: 'Calendar', include: ['12-25'] });
  await site.api('POST', '/api/v1/namespaces/default/locks/import/acquire', { owner: 'me', ttl: '5m' });
  await site.worker('berlin-1', { region: 'eu', disk: 'ssd' });
  await site.api('POST', '/api/v1/workers/berlin-1/drain', { deadline: '1h' });
  run = await site.trigger('greet');
  await site.ended(run);
  await site.ended(await site.trigger('broken'));
  backfill = (await site.api('POST', '/api/v1/namespaces/default/jobs/greet/backfills', { from: daysAgo(3), to: daysAgo(1) })).id as string;
});
afterAll(async () => {
  // What sleeps is not waited for.
  await site.api('POST', `/api/v1/runs/${sleeps}/cancel`);
  await site.stop();
});

const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();

const pages = () => [
  '/',
  '/jobs',
  '/jobs/new',
  '/jobs/default/greet',
  '/jobs/default/leap',
  '/jobs/default/greet/runs',
  '/jobs/default/greet/definition',
  '/jobs/default/greet/fate',
  '/jobs/default/greet/versions',
  '/runs',
  `/runs/${run}`,
  '/letters',
  '/workers',
  '/workers/berlin-1',
  '/queues',
  '/cluster',
  '/backfills',
  '/backfills/new?job=greet',
  `/backfills/${backfill}`,
  '/calendars',
  '/locks',
  '/tokens',
  '/notifications',
  '/audit',
];

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

async function settled(page: Page): Promise<void> {
  await page.locator('h1').first().waitFor();
  await eventually('everything is loaded', async () => (await page.getByText('Loading…').count()) === 0);
}

async function findings(page: Page): Promise<string[]> {
  // The policy of the page lets no script in that is not its own; the tool's own world is not bound by it.
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const { violations } = await (window as any).axe.run(document, { resultTypes: ['violations'] });
    return violations
      .filter((one: any) => ['serious', 'critical'].includes(one.impact))
      .map((one: any) => `${one.id}: ${one.nodes.map((node: any) => `${node.target.join(' ')} ${node.any?.[0]?.message ?? ''}`).slice(0, 3).join(' | ')}`);
  });
}

for (const theme of ['light', 'dark'] as const) {
  it(`axe finds nothing serious on any page, ${theme}`, async () => {
    const page = await site.open('/', undefined, { colorScheme: theme });
    const found: string[] = [];
    for (const path of pages()) {
      await page.goto(`${site.url}${path}`);
      await settled(page);
      expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe(theme);
      for (const finding of await findings(page)) found.push(`${path} ${finding}`);
    }
    expect(found).toEqual([]);
    await page.context().close();
  });
}

it('a server without a console says so on a page that its own policy lets through', async () => {
  const absent = readFileSync(new URL('../../crates/server/src/console/absent.html', import.meta.url));
  const page = await site.open('/', undefined, { viewport: { width: 390, height: 780 } });
  // The headers are the server's own, as it would send them with this page.
  await page.route((url) => url.pathname === '/', async (route) => {
    const { 'content-encoding': _, 'content-length': __, ...headers } = (await route.fetch()).headers();
    await route.fulfill({ headers, body: absent });
  });
  await page.goto(site.url);
  await page.getByRole('heading', { name: 'Drumtower is running, without its console', exact: true }).waitFor();
  await page.getByText('cargo xtask console').waitFor();
  expect(await findings(page)).toEqual([]);
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
  await page.getByRole('link', { name: 'server', exact: true }).click();
  await page.waitForURL('**/healthz');
  await page.context().close();
});

it('the language is switched in place and kept', async () => {
  const page = await site.open('/jobs');
  await page.getByRole('heading', { name: 'Jobs', exact: true }).waitFor();
  await page.getByText('every day at 03:30, Europe/Berlin').waitFor();
  await page.getByRole('button', { name: '中文', exact: true }).click();
  await page.getByRole('heading', { name: '作业', exact: true }).waitFor();
  await page.getByText('每天 03:30（Europe/Berlin）').waitFor();
  expect(await page.evaluate(() => document.documentElement.lang)).toBe('zh-CN');
  await page.goto(`${site.url}/runs`);
  await page.getByRole('heading', { name: '运行', exact: true }).waitFor();
  await page.getByText('已完成').first().waitFor();
  await page.getByRole('button', { name: 'English', exact: true }).click();
  await page.getByRole('heading', { name: 'Runs', exact: true }).waitFor();
  await page.context().close();
});

it('dark is chosen and kept', async () => {
  const page = await site.open('/', undefined, { colorScheme: 'light' });
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const becomes = (colour: string) => eventually(`the paper is ${colour}`, async () => (await paper()) === colour);
  await settled(page);
  await becomes('rgb(250, 248, 243)');
  await page.getByRole('button', { name: 'Dark or light', exact: true }).click();
  await becomes('rgb(20, 19, 17)');
  await page.reload();
  await settled(page);
  await becomes('rgb(20, 19, 17)');
  await page.context().close();
});

it('the keyboard is enough', async () => {
  const page = await site.open('/');
  await settled(page);
  // The two keys of a pair are pressed soon after one another; a busy machine may take longer once.
  await eventually('g and j lead to the jobs', async () => {
    await page.keyboard.press('g');
    await page.keyboard.press('j');
    return page.url().endsWith('/jobs');
  });
  await page.getByRole('heading', { name: 'Jobs', exact: true }).waitFor();
  await page.keyboard.press('/');
  await page.getByRole('combobox', { name: 'Go to a page, a job or a run', exact: true }).fill('gree');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'greet', exact: true }).waitFor();
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Go to a page, a job or a run', exact: true }).fill(run);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: run, exact: true }).waitFor();
  await page.keyboard.press('Control+k');
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Escape');
  await counted(page.getByRole('dialog'), 0);
  await page.context().close();
});

it('a phone shows every page without scrolling sideways', async () => {
  const page = await site.open('/', undefined, { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true });
  const wide: string[] = [];
  for (const path of pages()) {
    await page.goto(`${site.url}${path}`);
    await settled(page);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (over > 0) wide.push(`${path} by ${over}`);
    // The long tables fit too: nothing of a row lies beside the screen.
    const beside = await page.evaluate(() => Math.max(0, ...[...document.querySelectorAll('.grid')].map((table) => table.scrollWidth - table.clientWidth)));
    if (beside > 0) wide.push(`${path}: a table by ${beside}`);
  }
  expect(wide).toEqual([]);
  await page.goto(site.url);
  await page.getByRole('button', { name: 'Menu', exact: true }).click();
  await page.getByRole('link', { name: 'Workers', exact: true }).first().click();
  await page.getByRole('heading', { name: 'Workers', exact: true }).waitFor();
  await page.context().close();
});

/** By how much a table is wider than its place. */
const overhang = (page: Page) => page.evaluate(() => Math.max(0, ...[...document.querySelectorAll('table, .grid')].map((table) => table.scrollWidth - table.parentElement!.clientWidth)));

it('everything in a table lies within it on a laptop', async () => {
  const page = await site.open('/', undefined, { viewport: { width: 1280, height: 800 } });
  const cut: string[] = [];
  for (const path of pages()) {
    await page.goto(`${site.url}${path}`);
    await settled(page);
    const over = await overhang(page);
    if (over > 0) cut.push(`${path} by ${over}`);
  }
  // Times stand below each other where the column is narrow, in both languages.
  for (const language of ['en', 'zh']) {
    await page.evaluate((chosen) => localStorage.setItem('drumtower.language', chosen), language);
    for (const width of [820, 900, 1024, 1280, 1920]) {
      await page.setViewportSize({ width, height: 800 });
      await page.goto(`${site.url}/jobs/default/leap`);
      await page.getByText(/^\d{4}-02-29$/).first().waitFor();
      const over = await overhang(page);
      if (over > 0) cut.push(`times in ${language} at ${width} by ${over}`);
    }
  }
  expect(cut).toEqual([]);
  await page.evaluate(() => localStorage.removeItem('drumtower.language'));
  await page.goto(`${site.url}/queues`);
  await page.getByText('its rate lets the next one through').waitFor();
  await page.context().close();
});

it('the filters of runs are in the address', async () => {
  const page = await site.open('/runs');
  await settled(page);
  await page.getByRole('button', { name: 'Failed', exact: true }).click();
  await page.getByLabel('Since', { exact: true }).selectOption('hour');
  await eventually('the address has them', async () => page.url().endsWith('/runs?state=FAILED&within=hour'));
  await page.reload();
  await settled(page);
  expect(await page.getByRole('button', { name: 'Failed', exact: true }).getAttribute('aria-pressed')).toBe('true');
  await page.getByRole('link', { name: 'broken', exact: true }).waitFor();
  expect(await page.getByRole('link', { name: 'greet', exact: true }).count()).toBe(0);
  await page.context().close();
});
