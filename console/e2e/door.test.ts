// Who comes in, what each may do, and what happens when the server goes away and comes back.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Site, eventually } from './site';

let site: Site;
beforeAll(async () => {
  site = await Site.start();
  await site.shell('greet', 'echo hello', { schedule: [{ every: '1h' }] });
});
afterAll(() => site.stop());

it('a token opens the door, a wrong one is told so, and no script can read the session', async () => {
  const page = await site.open('/jobs', '');
  site.expected.push(/401/);
  await page.getByLabel('Token', { exact: true }).fill('drt_wrong');
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByText('the token is not known here').waitFor();
  await page.getByLabel('Token', { exact: true }).fill(await site.newToken('ann', 'operator'));
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  // It leads to where one wanted to go.
  await page.getByRole('link', { name: 'greet', exact: true }).waitFor();
  await page.getByText('ann · Operator').waitFor();
  expect(await page.evaluate(() => document.cookie)).toBe('');
  const [cookie] = await page.context().cookies();
  expect([cookie?.httpOnly, cookie?.sameSite]).toEqual([true, 'Strict']);
  expect(await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }))).not.toContain('drt_');
  const copied = `${cookie?.name}=${cookie?.value}`;
  const opens = async () => (await fetch(`${site.url}/api/v1/session`, { headers: { Cookie: copied } })).status;
  expect(await opens()).toBe(200);
  await page.getByRole('button', { name: 'Sign out', exact: true }).click();
  await page.getByLabel('Token', { exact: true }).waitFor();
  await page.reload();
  await page.getByLabel('Token', { exact: true }).waitFor();
  // Signed out for good: a copy of the cookie opens nothing.
  expect(await opens()).toBe(401);
  await page.context().close();
});

it('a viewer is offered nothing that it may not do, and refused when it tries', async () => {
  const run = await site.trigger('greet');
  await site.ended(run);
  const page = await site.open('/jobs', await site.newToken('val', 'viewer'));
  await page.getByRole('link', { name: 'greet', exact: true }).waitFor();
  expect(await page.getByRole('link', { name: 'New job', exact: true }).count()).toBe(0);
  expect(await page.getByRole('checkbox').count()).toBe(0);
  for (const hidden of ['Tokens', 'Audit log']) expect(await page.getByRole('link', { name: hidden, exact: true }).count()).toBe(0);
  const absent = async (path: string, shown: string, names: string[]) => {
    await page.goto(`${site.url}${path}`);
    await page.getByText(shown).first().waitFor();
    for (const name of names) expect(await page.getByRole('button', { name, exact: true }).count(), `${path} ${name}`).toBe(0);
  };
  await absent('/jobs/default/greet', 'Next times', ['Pause', 'Run now', 'Delete', 'Run with parameters']);
  await absent(`/runs/${run}`, 'What happened', ['Run again', 'Cancel the run', 'Run again with other parameters']);
  await absent('/jobs/default/greet/definition', 'It would be taken', ['Apply']);
  const worker = (await site.api('GET', '/api/v1/workers')).items[0].name;
  await absent(`/workers/${worker}`, 'What it holds', ['Drain']);
  // What is not offered is refused all the same.
  site.expected.push(/403/);
  const status = await page.evaluate(async () => (await fetch('/api/v1/namespaces/default/jobs/greet/pause', { method: 'POST', headers: { 'X-Drumtower-Console': '1' } })).status);
  expect(status).toBe(403);
  await page.context().close();
});

it('a token of one namespace sees that one only', async () => {
  await site.shell('elsewhere', 'true', { namespace: 'other', schedule: [{ every: '1h' }] });
  const page = await site.open('/jobs', await site.newToken('ned', 'operator', 'other'));
  await page.getByRole('link', { name: 'elsewhere', exact: true }).waitFor();
  expect(await page.getByRole('link', { name: 'greet', exact: true }).count()).toBe(0);
  await page.context().close();
});

it('a page that is open lives through a restart of the server, and says so', async () => {
  // The machine's own token is drawn anew at each start; a person's is not.
  const page = await site.open('/jobs', await site.newToken('rob', 'operator'));
  site.expected.push(/net::ERR_(CONNECTION|INCOMPLETE_CHUNKED|EMPTY_RESPONSE|NETWORK|SOCKET)/, /503/);
  await page.getByRole('link', { name: 'greet', exact: true }).waitFor();
  await eventually('it is live', async () => (await page.locator('.live').getAttribute('data-state')) === 'live');
  // The words go away by themselves: they are waited for from before they come.
  let again: Promise<void> | undefined;
  await site.restart(async () => {
    await page.getByRole('alert').getByText('No connection').waitFor();
    again = page.getByText('Connected again').waitFor();
  });
  await again;
  await eventually('it is live again', async () => (await page.locator('.live').getAttribute('data-state')) === 'live');
  // What happens now is seen without a reload.
  await site.shell('after-restart', 'true');
  await page.getByRole('link', { name: 'after-restart', exact: true }).waitFor();
  await page.context().close();
});

it('a revoked token ends the session that stands for it', async () => {
  const made = await site.api('POST', '/api/v1/tokens', { name: 'gone', role: 'viewer' });
  const page = await site.open('/runs', made.secret as string);
  await page.getByRole('heading', { name: 'Runs', exact: true }).waitFor();
  await site.api('DELETE', `/api/v1/tokens/${made.id}`);
  await page.getByText('Your session has ended').waitFor();
  await page.context().close();
});
