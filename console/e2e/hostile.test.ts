// Strings that other programs write: harmless, wherever they are shown.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Site, eventually } from './site';

const SCRIPT = '<script>window.hacked=1</script><img src=x onerror="window.hacked=2">';
const RTL = '\u202Egnihton\u202C שלום';

let site: Site;
beforeAll(async () => {
  site = await Site.start();
});
afterAll(() => site.stop());

it('markup, control characters, a line of a megabyte and right-to-left text do nothing but be shown', async () => {
  const lines = [
    `printf '%s\\n' '${SCRIPT}'`,
    `printf '\\033[31mred\\033[0m \\033]0;title\\007 \\033[2J\\033]8;;javascript:alert(1)\\033\\\\link\\n'`,
    `head -c 1000000 /dev/zero | tr '\\0' x; echo`,
    `printf '%s\\n' '${RTL}'`,
    `printf '%s\\n' '${SCRIPT}' >&2`,
    'exit 3',
  ];
  await site.shell('hostile', lines.join('\n'), {
    retry: { max_attempts: 1 },
    description: `${SCRIPT} ${RTL}`,
    labels: { evil: SCRIPT.slice(0, 60) },
    params: { html: SCRIPT },
  });
  const owner = `${SCRIPT} ${RTL}`;
  await site.api('POST', '/api/v1/namespaces/default/locks/evil/acquire', { owner, ttl: '5m' });
  await site.worker('evil-worker', { evil: SCRIPT });
  const run = await site.trigger('hostile', { params: { html: SCRIPT, rtl: RTL } });
  await site.ended(run);
  const page = await site.open(`/runs/${run}`);
  const log = page.getByRole('log');
  await log.getByText(SCRIPT).first().waitFor();
  expect(await log.locator('.a-f1').first().textContent()).toBe('red');
  expect(await log.locator('a').count()).toBe(0);
  // The long line is cut, and all of it can be seen.
  const cut = log.getByRole('button', { name: /more in this line/ });
  await cut.waitFor();
  const before = await log.evaluate((element) => element.textContent?.length ?? 0);
  expect(before).toBeLessThan(20_000);
  await cut.click();
  await eventually('all of it is there', async () => (await log.evaluate((element) => element.textContent?.length ?? 0)) > 1_000_000);
  // What must be seen there, as it was written.
  const shown: Record<string, string> = { '/locks': owner, '/workers': `evil=${SCRIPT}`, '/workers/evil-worker': `evil=${SCRIPT}` };
  for (const path of [`/runs/${run}`, '/jobs', '/jobs/default/hostile', '/jobs/default/hostile/definition', '/letters', '/runs', '/', '/audit', ...Object.keys(shown)]) {
    await page.goto(`${site.url}${path}`);
    await page.locator('h1').first().waitFor();
    await eventually('everything is loaded', async () => (await page.getByText('Loading…').count()) === 0);
    if (shown[path]) await page.getByText(shown[path]).first().waitFor();
    expect(await page.evaluate(() => (window as any).hacked), path).toBeUndefined();
    expect(await page.locator('img[src="x"], script:not([src])').count(), path).toBe(0);
    expect(await page.title()).toBe('Drumtower');
  }
  await page.goto(`${site.url}/runs?state=%3Cscript%3E&job=%3Cscript%3E`);
  site.expected.push(/400/);
  await page.getByRole('alert').waitFor();
  await page.context().close();
});
