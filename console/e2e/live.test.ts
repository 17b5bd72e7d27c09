// The overview lives: what happens is seen on a page that is open, without a reload.
import { rmSync, writeFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Site, eventually } from './site';

let site: Site;
beforeAll(async () => {
  site = await Site.start();
});
afterAll(() => site.stop());

async function figure(page: Page, title: string): Promise<string> {
  const own = page.locator('.figure').filter({ has: page.getByText(title, { exact: true }) });
  return (await own.locator('dd').first().textContent()) ?? '';
}

const becomes = (page: Page, title: string, value: string) => eventually(`${title} is ${value}`, async () => (await figure(page, title)) === value);

it('counts, failures and the next fires move while the page is open', async () => {
  const go = `${site.data}/go`;
  await site.shell('held', `while [ ! -e ${go} ]; do sleep 0.05; done`, { overlap: 'allow' });
  await site.shell('frail', 'echo "no route to the bank" >&2; exit 3', { retry: { max_attempts: 1 } });
  const page = await site.open('/');
  // A page that is loaded again forgets this.
  await page.evaluate(() => ((window as unknown as { same: boolean }).same = true));
  await becomes(page, 'Not ended', '0');
  await becomes(page, 'Workers', '1');
  const runs = [await site.trigger('held'), await site.trigger('held'), await site.trigger('held')];
  await becomes(page, 'Not ended', '3');
  writeFileSync(go, '');
  for (const run of runs) await site.ended(run);
  await becomes(page, 'Not ended', '0');
  rmSync(go);
  await page.getByText('No job failed last time it ran.', { exact: true }).waitFor();
  await page.getByText('No dead letters: no run that failed for good is left to see to.', { exact: true }).waitFor();
  const failed = await site.trigger('frail');
  await site.ended(failed);
  const letters = page.locator('.panel').filter({ has: page.getByRole('heading', { name: 'Newest dead letters', exact: true }) });
  await letters.locator(`a[href="/runs/${failed}"]`).waitFor();
  const failing = page.locator('.panel').filter({ has: page.getByRole('heading', { name: 'Failing now', exact: true }) });
  await failing.getByText('1 failure, 0 completed since the start', { exact: true }).waitFor();
  await becomes(page, 'Succeeded', '75.0 %');
  await page.getByText('No job fires by itself within a day.', { exact: true }).waitFor();
  await site.shell('soon', 'true', { schedule: [{ every: '1h' }] });
  await page.locator('.fires').getByRole('link', { name: 'soon' }).waitFor();
  const [worker] = (await site.api('GET', '/api/v1/workers')).items;
  await site.api('POST', `/api/v1/workers/${worker.name}/drain`);
  const fleet = page.locator('.panel').filter({ has: page.getByRole('heading', { name: 'Workers', exact: true }) });
  await fleet.getByText('Draining', { exact: true }).waitFor();
  await site.api('POST', `/api/v1/workers/${worker.name}/resume`);
  await fleet.getByText('Online', { exact: true }).waitFor();
  expect(await page.evaluate(() => (window as unknown as { same?: boolean }).same)).toBe(true);
  await page.context().close();
});
