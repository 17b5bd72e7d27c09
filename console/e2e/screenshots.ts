// Pictures of every page in both themes, for the docs: `npm run screenshots`. DEMO_MINUTES says how long the demo runs before,
// DEMO_DATA names the data directory of one that runs already, DEMO_PAGES the pages to take, such as `jobs,queues`; without it all are.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { it } from 'vitest';
import { crowd, demo } from './demo';
import { Site, eventually, type Json } from './site';

const PLACE = join(import.meta.dirname, '../../docs/images');
const MINUTES = Number(process.env.DEMO_MINUTES ?? 10);
const ONLY = process.env.DEMO_PAGES?.split(',');

async function settled(page: Page): Promise<void> {
  await page.locator('h1').first().waitFor();
  await eventually('everything is loaded', async () => (await page.getByText('Loading…').count()) === 0);
  await page.waitForLoadState('load');
  // Charts draw when their part has come.
  await page.waitForTimeout(1500);
}

it('pictures', async () => {
  const site = process.env.DEMO_DATA ? await Site.attach(process.env.DEMO_DATA) : await Site.start();
  if (!process.env.DEMO_DATA) {
    await demo(site);
    await new Promise((resolve) => setTimeout(resolve, MINUTES * 60_000));
  }
  mkdirSync(PLACE, { recursive: true });
  const run = async (job: string, state: string) => (await site.api('GET', `/api/v1/runs?job=${job}&state=${state}&limit=1`)).items[0].id as string;
  const workers = (await site.api('GET', '/api/v1/workers')).items;
  const worker = (workers.find(({ labels }: Json) => labels.region) ?? workers[0]).name as string;
  const backfill = (await site.api('GET', '/api/v1/backfills')).items[0].id as string;
  const pages: Record<string, string> = {
    overview: '/',
    jobs: '/jobs',
    job: '/jobs/default/payments-settle',
    'job-after': '/jobs/default/sales-figures',
    'job-definition': '/jobs/default/nightly-report/definition',
    'job-due-times': '/jobs/default/payments-settle/fate',
    'job-versions': '/jobs/default/orders-import/versions',
    runs: '/runs',
    'run-live': '',
    'run-failed': `/runs/${await run('crm-export', 'failed')}`,
    letters: '/letters',
    backfills: '/backfills',
    backfill: `/backfills/${backfill}`,
    'backfill-new': '/backfills/new?job=invoices',
    workers: '/workers',
    worker: `/workers/${worker}`,
    queues: '/queues',
    cluster: '/cluster',
    calendars: '/calendars',
    locks: '/locks',
    tokens: '/tokens',
    notifications: '/notifications',
    audit: '/audit',
  };
  const take = async (theme: 'light' | 'dark', names: string[]) => {
    const page = await site.open('/', undefined, { colorScheme: theme, viewport: { width: 1280, height: 800 } });
    for (const name of names) {
      const path = pages[name];
      if (ONLY && !ONLY.includes(name)) continue;
      // One that is under way is made for its picture.
      const live = name === 'run-live' ? `/runs/${await site.trigger('thumbnails')}` : path;
      if (name === 'queues') await crowd(site);
      await page.goto(`${site.url}${live}`);
      await settled(page);
      if (name === 'run-live') await page.waitForTimeout(5000);
      if (name === 'job-due-times') await page.locator('.heat button[data-tone="failed"]').last().click();
      // Load is measured while one looks.
      if (name === 'workers' || name === 'worker') await page.waitForTimeout(20_000);
      await page.screenshot({ path: join(PLACE, `console-${name}-${theme}.png`) });
    }
    await page.context().close();
  };
  const calm = Object.keys(pages).filter((name) => name !== 'queues');
  await take('light', calm);
  await take('dark', calm);
  const door = await site.open('/', '', { colorScheme: 'light', viewport: { width: 1280, height: 800 } });
  await door.getByLabel('Token').waitFor();
  await door.screenshot({ path: join(PLACE, 'console-sign-in-light.png') });
  const chinese = await site.open('/', undefined, { colorScheme: 'light', locale: 'zh-CN', viewport: { width: 1280, height: 800 } });
  for (const name of ['overview', 'run-failed']) {
    await chinese.goto(`${site.url}${pages[name]}`);
    await settled(chinese);
    await chinese.screenshot({ path: join(PLACE, `console-${name}-zh.png`) });
  }
  const phone = await site.open('/', undefined, { colorScheme: 'light', viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true });
  for (const [name, path] of [['phone', '/'], ['phone-jobs', '/jobs'], ['phone-runs', '/runs']] as const) {
    await phone.goto(`${site.url}${path}`);
    await settled(phone);
    await phone.screenshot({ path: join(PLACE, `console-${name}-light.png`) });
  }
  // A crowded queue makes starts late, which other pages would show.
  await take('light', ['queues']);
  await take('dark', ['queues']);
  site.expected.push(/401/);
  await site.stop();
});
