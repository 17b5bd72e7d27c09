// Forms of queues, calendars, locks, tokens, notifications and drains: made, changed, taken away, and refused at the field.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Site, counted, eventually } from './site';

let site: Site;
beforeAll(async () => {
  site = await Site.start();
  // What is refused is told with a status that the browser reports.
  site.expected.push(/422/, /400/, /409/);
});
afterAll(() => site.stop());

const button = (place: Page | Locator, name: string) => place.getByRole('button', { name, exact: true });
const field = (place: Page | Locator, name: string) => place.getByLabel(name, { exact: true });
/** Waits until these words are said below the field of that name. */
async function refused(place: Page | Locator, name: string, words: string): Promise<void> {
  const page = 'goto' in place ? place : place.page();
  const own = place.locator('.field').filter({ has: page.getByLabel(name, { exact: true }) });
  await own.getByRole('alert').getByText(words).waitFor();
}

it('a queue is made, refused at the field, edited, paused and deleted', async () => {
  const page = await site.open('/queues');
  await button(page, 'New queue').click();
  const dialog = page.getByRole('dialog');
  await field(dialog, 'Queue').fill('Mail room');
  await button(dialog, 'Save').click();
  await refused(dialog, 'Queue', 'is not a queue name');
  await field(dialog, 'Queue').fill('mail');
  await field(dialog, 'Rate').fill('lots');
  await field(dialog, 'Runs at once').fill('3');
  await button(dialog, 'Save').click();
  await refused(dialog, 'Rate', '`lots` is not a rate');
  await field(dialog, 'Rate').fill('100/1m');
  await field(dialog, 'Runs at once').fill('0');
  await button(dialog, 'Save').click();
  await refused(dialog, 'Runs at once', 'is not between 1 and');
  // The field that was mended is not complained about any more.
  expect(await dialog.getByText('is not a rate').count()).toBe(0);
  await field(dialog, 'Runs at once').fill('3');
  await button(dialog, 'Save').click();
  const row = page.getByRole('row').filter({ hasText: 'mail' });
  const limits = (...words: string[]) => Promise.all(words.map((text) => row.getByText(text, { exact: true }).waitFor()));
  await limits('3 at once', '100/1m');
  await button(row, 'Edit').click();
  await field(dialog, 'Runs at once').fill('5');
  await button(dialog, 'Save').click();
  await limits('5 at once', '100/1m');
  const spec = async () => (await site.api('GET', '/api/v1/namespaces/default/queues/mail')).spec;
  expect((await spec()).concurrency).toBe(5);
  await button(row, 'Pause').click();
  await button(row, 'Resume').click();
  await button(row, 'Pause').waitFor();
  await button(row, 'Delete').click();
  await button(dialog, 'Delete').click();
  await page.getByText('No queue is defined', { exact: true }).waitFor();
  await page.context().close();
});

it('a calendar is made, refused at the field, edited, kept while a job uses it, and deleted', async () => {
  const page = await site.open('/calendars');
  await button(page, 'New calendar').click();
  const dialog = page.getByRole('dialog');
  await field(dialog, 'Calendar').fill('holidays');
  await field(dialog, 'These days').fill('12-25\n13-45');
  await button(dialog, 'Save').click();
  await refused(dialog, 'These days', '`13-45` is not a day of any year');
  await field(dialog, 'These days').fill('12-25\n01-01');
  await button(dialog, 'Save').click();
  await page.getByText('12-25, 01-01', { exact: true }).waitFor();
  await button(page, 'Edit').click();
  await button(dialog, 'Sat').click();
  await field(dialog, 'Not these').fill('2027-01-02');
  await button(dialog, 'Save').click();
  // The field of the form holds the same words; the card has them when it is saved.
  await page.getByRole('definition').getByText('2027-01-02', { exact: true }).waitFor();
  const shown = await site.api('GET', '/api/v1/namespaces/default/calendars/holidays');
  expect([shown.spec.weekly, shown.spec.exclude, shown.version]).toEqual([['sat'], ['2027-01-02'], 2]);
  await site.shell('rests', 'true', { schedule: [{ cron: '0 9 * * *' }], calendar: { minus: ['holidays'] } });
  await button(page, 'Delete').click();
  await button(dialog, 'Delete').click();
  await dialog.getByRole('alert').getByText('holidays').waitFor();
  await site.api('DELETE', '/api/v1/namespaces/default/jobs/rests');
  await button(dialog, 'Delete').click();
  await page.getByText('No calendar is defined', { exact: true }).waitFor();
  await page.context().close();
});

it('a lock is taken away from its holder', async () => {
  await site.api('POST', '/api/v1/namespaces/default/locks/import/acquire', { owner: 'importer-2', ttl: '10m' });
  const page = await site.open('/locks');
  const row = page.getByRole('row').filter({ hasText: 'import' });
  await row.getByText('importer-2').waitFor();
  await button(row, 'Take away').click();
  await button(page.getByRole('dialog'), 'Cancel').click();
  expect((await site.api('GET', '/api/v1/locks')).items.length).toBe(1);
  await button(row, 'Take away').click();
  await button(page.getByRole('dialog'), 'Take away').click();
  await page.getByText('No lock is held', { exact: true }).waitFor();
  expect((await site.api('GET', '/api/v1/locks')).items).toEqual([]);
  await page.context().close();
});

it('a token is made, shown once, refused under a taken name, and revoked', async () => {
  const page = await site.open('/tokens');
  const dialog = page.getByRole('dialog');
  const make = async (name: string) => {
    await field(dialog, 'Name').fill(name);
    await button(dialog, 'New token').click();
  };
  await button(page, 'New token').click();
  await field(dialog, 'Role').selectOption('viewer');
  await make('Gra fana');
  await refused(dialog, 'Name', "a token's name has 1 to 128 characters");
  await make('grafana');
  await dialog.getByText('Keep this secret now', { exact: true }).waitFor();
  const secret = (await dialog.locator('code').textContent()) ?? '';
  expect(secret).toMatch(/^drt_/);
  const seen = await fetch(`${site.url}/api/v1/session`, { headers: { Authorization: `Bearer ${secret}` } });
  expect(((await seen.json()) as { role: string }).role).toBe('viewer');
  await button(dialog, 'Close').click();
  await button(page, 'New token').click();
  await make('grafana');
  await refused(dialog, 'Name', 'there is already a token named `grafana`');
  await button(dialog, 'Cancel').click();
  expect(await page.content()).not.toContain(secret);
  const row = page.getByRole('row').filter({ has: page.getByRole('cell', { name: 'grafana', exact: true }) });
  await button(row, 'Revoke').click();
  await button(dialog, 'Revoke').click();
  await counted(row, 0);
  const gone = await fetch(`${site.url}/api/v1/session`, { headers: { Authorization: `Bearer ${secret}` } });
  expect(gone.status).toBe(401);
  await page.context().close();
});

it('rules of notifications are saved or refused at the field, and a test says what became of it', async () => {
  const heard: string[] = [];
  const server = createServer((request, response) => {
    heard.push(request.url ?? '');
    response.end('ok');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const hook = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  const page = await site.open('/notifications');
  const rules = field(page, 'Rules as JSON');
  await eventually('the rules are read', async () => (await rules.inputValue()).includes('webhook'));
  await rules.fill('{"rules": [{"on": ["failure"], "webhook": "nowhere"}]}');
  await button(page, 'Save the rules').click();
  await refused(page, 'Rules as JSON', '`nowhere` is not an address');
  await rules.fill('{"rules": [');
  await rules.blur();
  await refused(page, 'Rules as JSON', 'This is not JSON.');
  expect(await button(page, 'Save the rules').isDisabled()).toBe(true);
  await rules.fill(JSON.stringify({ rules: [{ on: ['failure'], webhook: 'https://hooks.example.com/a' }] }));
  await button(page, 'Save the rules').click();
  await page.getByText('Saved', { exact: true }).waitFor();
  const kept = async () => (await site.api('GET', '/api/v1/namespaces/default/settings/notify')).value.rules;
  expect((await kept())[0].webhook).toBe('https://hooks.example.com/a');
  await page.getByRole('listitem').filter({ hasText: 'https://hooks.example.com/a' }).getByText('failure', { exact: true }).waitFor();
  await rules.fill('{"rules": []}');
  await page.getByText('Nobody is told.', { exact: true }).waitFor();
  await button(page, 'Save the rules').click();
  await eventually('none are left', async () => (await kept()).length === 0);
  await field(page, 'Webhook or e-mail address').fill('nowhere');
  await button(page, 'Send a test').click();
  await refused(page, 'Webhook or e-mail address', '`nowhere` is not an address');
  await field(page, 'Webhook or e-mail address').fill(hook);
  await button(page, 'Send a test').click();
  // Whether an address of this machine may be told is for the server to say; the page says what it said.
  await page.getByRole('status').getByText(/^(Delivered|Not delivered)$/).waitFor();
  await page.context().close();
  await new Promise((resolve) => server.close(resolve));
});

it('a drain has a deadline: a wrong one is refused at the field, a right one is kept', async () => {
  const [worker] = (await site.api('GET', '/api/v1/workers')).items;
  const page = await site.open(`/workers/${worker.name}`);
  const dialog = page.getByRole('dialog');
  await button(page, 'Drain').click();
  await field(dialog, 'Stop what still runs after').fill('soon');
  await button(dialog, 'Drain').click();
  await refused(dialog, 'Stop what still runs after', 'duration `soon`');
  expect((await site.api('GET', `/api/v1/workers/${worker.name}`)).maintenance).toBeNull();
  await field(dialog, 'Stop what still runs after').fill('10m');
  await button(dialog, 'Drain').click();
  await button(page, 'Return to service').waitFor();
  const { maintenance } = await site.api('GET', `/api/v1/workers/${worker.name}`);
  const left = Date.parse(maintenance.deadline) - Date.parse(maintenance.since);
  expect(left).toBe(600_000);
  await button(page, 'Return to service').click();
  await button(page, 'Drain').waitFor();
  await page.context().close();
});
