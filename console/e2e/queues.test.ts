// Queues say why runs wait: for a place, for a worker, for their own job. And the overview tells them apart too.
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Site } from './site';

let site: Site;
const made: string[] = [];
beforeAll(async () => {
  site = await Site.start();
  const queue = (name: string, spec: object) => site.api('PUT', `/api/v1/namespaces/default/queues/${name}`, { kind: 'Queue', ...spec });
  const fill = async (name: string, runs: number, more: object) => {
    await site.job(name, { overlap: 'allow', ...more });
    for (let run = 0; run < runs; run++) made.push(await site.trigger(name));
  };
  const sleeps = { task: { exec: { argv: ['sleep', '600'] } } };
  await queue('full', { concurrency: 6 });
  await fill('holder', 9, { queue: 'full', ...sleeps });
  await queue('unserved', { concurrency: 9 });
  await fill('nobody', 2, { queue: 'unserved', task: { handler: { name: 'missing' } } });
  await queue('own', { concurrency: 9 });
  await fill('modest', 3, { queue: 'own', limits: { concurrency: 1 }, ...sleeps });
});
afterAll(async () => {
  // What sleeps is not waited for.
  for (const run of made) await site.api('POST', `/api/v1/runs/${run}/cancel`);
  await site.stop();
});

const row = (page: Page, name: string) => page.getByRole('row').filter({ has: page.locator('.name').getByText(name, { exact: true }) });

it('a queue says why its runs wait, since when, and how many hold a place', async () => {
  const page = await site.open('/queues');
  await row(page, 'full').getByText('all places are taken', { exact: true }).waitFor();
  await row(page, 'unserved').getByText('no worker has room for them', { exact: true }).waitFor();
  await row(page, 'own').getByText('a limit of their own job holds them back', { exact: true }).waitFor();
  // Four of the six are named.
  expect(await row(page, 'full').locator('a[href^="/runs/"]').count()).toBe(4);
  await row(page, 'full').getByText('+2', { exact: true }).waitFor();
  expect(await row(page, 'own').locator('a[href^="/runs/"]').count()).toBe(1);
  for (const name of ['full', 'unserved', 'own']) expect(await row(page, name).locator('td:nth-child(6)').textContent()).not.toBe('–');
  const line = (need: string) => page.getByRole('row').filter({ has: page.locator('td.mono').getByText(need) }).locator('td');
  const [held, worker, oldest] = [4, 5, 6];
  // Three of the one job, two of the other: no worker could take them.
  expect([await line('exec').nth(held).textContent(), await line('exec').nth(worker).textContent()]).toEqual(['5', '0']);
  expect([await line('missing').nth(held).textContent(), await line('missing').nth(worker).textContent()]).toEqual(['0', '2']);
  expect(await line('exec').nth(oldest).textContent()).not.toBe('–');
  await page.context().close();
});

it('the overview counts what waits for a worker, and what limits hold back beside it', async () => {
  const page = await site.open('/');
  const figure = page.locator('.figure').filter({ has: page.getByText('Waiting for a worker', { exact: true }) });
  await figure.getByText('2', { exact: true }).waitFor();
  await figure.getByText('5 more held back by limits', { exact: true }).waitFor();
  await page.context().close();
});
