// Jobs that follow others: made in the form, and what has come of the jobs before is seen while it comes.
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Site, counted, eventually } from './site';

let site: Site;
beforeAll(async () => {
  site = await Site.start();
  await site.shell('extract', 'true');
  await site.shell('load', 'true');
  await site.shell('shaky', 'exit 3', { retry: { max_attempts: 1 } });
});
afterAll(() => site.stop());

const panel = (page: Page) => page.locator('.panel').filter({ has: page.getByRole('heading', { name: 'Runs after', exact: true }) });

it('a job that runs after others is made in the form, and says what it waits for', async () => {
  const page = await site.open('/jobs/new');
  await page.getByLabel('Name', { exact: true }).fill('publish');
  await page.getByLabel('When', { exact: true }).selectOption('manual');
  await page.getByLabel('Runs after', { exact: true }).fill('extract, load');
  await page.getByLabel('Which of them', { exact: true }).selectOption('any');
  await page.getByLabel('Which of them', { exact: true }).selectOption('all');
  const yaml = page.getByRole('textbox', { name: 'YAML', exact: true });
  await eventually('the text has them', async () => /after:\n {2}jobs:\n {4}- extract\n {4}- load\n {2}need: all/.test(await yaml.inputValue()));
  await page.getByRole('status').getByText('When each of these has completed since the last time, one run is made.', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Apply', exact: true }).click();
  await page.getByRole('heading', { name: 'publish', exact: true }).waitFor();

  await page.getByText('after extract and load have completed', { exact: true }).waitFor();
  const before = panel(page);
  await before.getByText('When each of these has completed since the last time, one run is made.', { exact: true }).waitFor();
  await before.getByText('0 of 2', { exact: true }).waitFor();
  await counted(before.getByText('is waited for', { exact: true }), 2);
  // Of the page that is open: what has come is seen without a reload.
  const first = await site.trigger('extract');
  await site.ended(first);
  await before.getByRole('link', { name: first, exact: true }).waitFor();
  await before.getByText('1 of 2', { exact: true }).waitFor();
  await counted(before.getByText('is waited for', { exact: true }), 1);
  const second = await site.trigger('load');
  await site.ended(second);
  // Both have come: they are used up, and a run is made that names the last of them.
  await before.getByText('0 of 2', { exact: true }).waitFor();
  const made = async () => (await site.api('GET', '/api/v1/runs?job=publish')).items as { id: string; origin: string }[];
  await eventually('it has run', async () => (await made()).length === 1);
  await page.goto(`${site.url}/runs/${(await made())[0]!.id}`);
  const parent = page.getByRole('definition').getByRole('link', { name: second, exact: true });
  await parent.waitFor();
  await page.getByText('Completed').first().waitFor();
  // Runs that others set off can be listed.
  await page.goto(`${site.url}/runs?origin=after`);
  await page.getByRole('link', { name: 'publish', exact: true }).waitFor();
  await page.context().close();
});

it('an end that made no run is told with its reason', async () => {
  await site.shell('alarm', 'true', { after: { jobs: ['shaky', 'load'], need: 'any', on: 'failure' } });
  await site.api('POST', '/api/v1/namespaces/default/jobs/alarm/pause');
  const failed = await site.trigger('shaky');
  await site.ended(failed);
  const page = await site.open('/jobs/default/alarm');
  const before = panel(page);
  await before.getByText('Each time one of these fails for good, a run is made.', { exact: true }).waitFor();
  await before.getByText('1 end made no run, the last one after').waitFor();
  await before.getByText('(paused)').waitFor();
  await before.getByRole('link', { name: failed, exact: true }).click();
  await page.getByRole('heading', { name: failed, exact: true }).waitFor();
  expect((await site.api('GET', '/api/v1/runs?job=alarm')).items).toEqual([]);
  await page.goto(`${site.url}/jobs/default/alarm`);
  await before.getByRole('link', { name: 'shaky', exact: true }).click();
  await page.getByRole('heading', { name: 'shaky', exact: true }).waitFor();
  await page.context().close();
});
