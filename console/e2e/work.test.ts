// What people come to the console for: make a job, see it run, find out why one failed, act on many.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { writeFileSync } from 'node:fs';
import { Site, counted, eventually } from './site';

let site: Site;
beforeAll(async () => {
  site = await Site.start();
});
afterAll(() => site.stop());

it('a first job is made in the form and seen running', async () => {
  const page = await site.open('/');
  await page.getByRole('link', { name: 'Make a job', exact: true }).click();
  await page.getByLabel('Name', { exact: true }).fill('first-job');
  await page.getByLabel('What to run', { exact: true }).selectOption('shell');
  await page.getByLabel('Shell line', { exact: true }).last().fill('echo made in the form; sleep 2');
  await page.getByLabel('Every', { exact: true }).last().fill('1s');
  // The form writes the text.
  const yaml = page.getByRole('textbox', { name: 'YAML', exact: true });
  await eventually('the text has what the form says', async () => (await yaml.inputValue()).includes('name: first-job'));
  expect(await yaml.inputValue()).toContain('shell: echo made in the form; sleep 2');
  // Ten times are foreseen.
  await page.getByText('It would be taken').waitFor();
  await counted(page.getByRole('table', { name: 'It would fire', exact: true }).getByRole('row'), 10);
  await page.getByRole('button', { name: 'Apply', exact: true }).click();
  await page.getByRole('heading', { name: 'first-job', exact: true }).waitFor();
  await page.getByRole('link', { name: 'Runs', exact: true }).last().click();
  await page.getByText('Running').first().waitFor();
  await page.getByText('Completed').first().waitFor();
  await site.api('POST', '/api/v1/namespaces/default/jobs/first-job/pause');
  await page.close();
});

it('what is typed is tried by the server at once, and the text writes the form', async () => {
  const page = await site.open('/jobs/new');
  const yaml = page.getByRole('textbox', { name: 'YAML', exact: true });
  await yaml.fill('kind: Job\nname: typed\nschedule:\n  - cron: "61 * * * *"\ntask:\n  exec:\n    argv: [echo, hi]\n');
  site.expected.push(/422/);
  await page.getByText('It would be refused').waitFor();
  expect(await page.getByRole('button', { name: 'Apply', exact: true }).isDisabled()).toBe(true);
  await yaml.fill('kind: Job\nname: [typed\n');
  await page.getByText('This is not YAML').waitFor();
  await yaml.fill('kind: Job\nname: typed # mine\nschedule:\n  - cron: "30 2 * * *"\n    timezone: Europe/Berlin\ntask:\n  exec:\n    argv: [echo, hi]\n');
  await page.getByText('every day at 02:30, Europe/Berlin').waitFor();
  expect(await page.getByLabel('Time zone', { exact: true }).inputValue()).toBe('Europe/Berlin');
  await page.getByLabel('Attempts', { exact: true }).fill('7');
  await eventually('the text has it', async () => (await yaml.inputValue()).includes('max_attempts: 7'));
  expect(await yaml.inputValue()).toContain('# mine');
  await page.close();
});

it('a log is followed while it is written, and searched', async () => {
  // It writes on when it is told to: however slow the page is, what is looked for is in sight.
  const until = (name: string) => `while [ ! -e ${site.data}/${name} ]; do sleep 0.05; done`;
  const told = (name: string) => writeFileSync(`${site.data}/${name}`, '');
  const lines = (from: number, to: number) => `i=${from}; while [ $i -le ${to} ]; do echo "line $i"; i=$((i+1)); done`;
  await site.shell('talker', [lines(1, 3), until('more'), lines(4, 12), until('end'), "printf '\\033[1;32mall done\\033[0m\\n'"].join('; '));
  const run = await site.trigger('talker');
  const page = await site.open(`/runs/${run}`);
  const log = page.getByRole('log');
  await log.getByText('line 3', { exact: true }).waitFor();
  expect(await log.getByText('line 4', { exact: true }).count()).toBe(0);
  told('more');
  // More came by itself while the run has not ended.
  await log.getByText('line 12', { exact: true }).waitFor();
  expect((await site.api('GET', `/api/v1/runs/${run}`)).state).toBe('RUNNING');
  told('end');
  const last = log.getByText('all done', { exact: true });
  await last.waitFor();
  expect(await last.getAttribute('class')).toBe('a-bold a-f2');
  await page.getByText('Completed').first().waitFor();
  await page.getByLabel('Find in the output', { exact: true }).fill('line 1');
  await log.locator('mark').first().waitFor();
  await counted(log.getByText('line 2', { exact: true }), 0);
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download', exact: true }).click()]);
  expect(download.suggestedFilename()).toBe(`${run}.log`);
  await page.close();
});

it("a failing job's cause is found and it is run again with other parameters", async () => {
  await site.shell('fragile', 'echo "cannot open /srv/report.csv" >&2; test "$DRUMTOWER_PARAMS" = \'{"ok":true}\'', { retry: { max_attempts: 1 }, params: { ok: false } });
  const run = await site.trigger('fragile');
  await site.ended(run);
  const page = await site.open('/');
  const lately = page.getByRole('link', { name: 'fragile', exact: true }).first();
  await lately.waitFor();
  await page.goto(`${site.url}/runs?state=FAILED`);
  await page.getByRole('link', { name: run, exact: true }).click();
  await page.getByText('cannot open /srv/report.csv').first().waitFor();
  await page.getByText('exit code 1').first().waitFor();
  await page.getByText('Why it is where it is').waitFor();
  await page.getByRole('button', { name: 'Run again with other parameters', exact: true }).click();
  await page.getByRole('dialog').getByLabel('Parameters', { exact: true }).fill('{"ok": true}');
  await page.getByRole('dialog').getByRole('button', { name: 'Run again', exact: true }).click();
  await page.getByText('Repeats', { exact: true }).waitFor();
  await page.getByText('Completed').first().waitFor();
  // It lies among the dead letters until somebody sees to it.
  await page.goto(`${site.url}/letters`);
  await page.getByText('The task failed', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Discard', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Discard', exact: true }).click();
  await page.getByText('No dead letters', { exact: true }).waitFor();
  await page.close();
});

it('a dead letter is made once more, and its run goes well', async () => {
  const mended = `${site.data}/mended`;
  await site.shell('patient', `test -e ${mended}`, { retry: { max_attempts: 1 } });
  const failed = await site.trigger('patient');
  await site.ended(failed);
  const page = await site.open('/letters');
  const group = page.locator('.panel').filter({ has: page.locator('a[href="/jobs/default/patient"]') });
  await group.getByRole('button', { name: 'Show the runs', exact: true }).click();
  await group.getByRole('link', { name: failed, exact: true }).waitFor();
  writeFileSync(mended, '');
  await group.getByRole('button', { name: 'Run again', exact: true }).click();
  await page.getByText('1 run made once more', { exact: true }).waitFor();
  await counted(group, 0);
  const [again] = (await site.api('GET', '/api/v1/runs?job=patient&limit=1')).items;
  expect(again.id).not.toBe(failed);
  expect((await site.ended(again.id)).state).toBe('COMPLETED');
  await page.goto(`${site.url}/runs/${again.id}`);
  await page.getByRole('link', { name: failed, exact: true }).waitFor();
  await page.close();
});

it('a run is cancelled, or left alone by who thinks better of it', async () => {
  await site.shell('endless', 'exec sleep 600');
  const run = await site.trigger('endless');
  const page = await site.open(`/runs/${run}`);
  const cancel = page.getByRole('button', { name: 'Cancel the run', exact: true });
  const dialog = page.getByRole('dialog');
  await page.getByText('Running').first().waitFor();
  await cancel.click();
  await dialog.getByRole('button', { name: 'Cancel', exact: true }).click();
  await counted(dialog, 0);
  expect(['SCHEDULED', 'RUNNING']).toContain((await site.api('GET', `/api/v1/runs/${run}`)).state);
  await cancel.first().click();
  await dialog.getByRole('button', { name: 'Cancel the run', exact: true }).click();
  expect((await site.ended(run)).state).toBe('CANCELLED');
  await page.getByText('Cancelled').first().waitFor();
  await page.getByRole('button', { name: 'Run again', exact: true }).waitFor();
  await counted(cancel, 0);
  await page.close();
});

it('the palette does as well as goes: a new job, the other theme and language, signing out', async () => {
  const page = await site.open('/');
  await page.getByRole('heading', { name: 'Overview', exact: true }).waitFor();
  const choose = async (what: string, hint = 'Go to a page, a job or a run') => {
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: hint, exact: true }).fill(what);
    await page.locator('[role=listbox][aria-busy=false]').getByRole('option').filter({ hasText: what }).first().waitFor();
    await page.keyboard.press('Enter');
    await counted(page.getByRole('dialog'), 0);
  };
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  await choose('New job');
  const yaml = page.getByRole('textbox', { name: 'YAML', exact: true });
  await yaml.fill('kind: Job\nname: half-written\ntask:\n  exec:\n    argv: [echo, hi]\n');
  await choose('Dark or light');
  await eventually('it is dark', async () => (await theme()) === 'dark');
  await choose('中文');
  await eventually('it speaks Chinese', async () => (await page.evaluate(() => document.documentElement.lang)) === 'zh-CN');
  expect(await yaml.inputValue()).toContain('half-written');
  await choose('English', '前往页面、作业或运行');
  await choose('Sign out');
  await page.getByLabel('Token', { exact: true }).waitFor();
  await page.context().close();
});

it('the palette does nothing in place of a job that is still looked for', async () => {
  await site.shell('outgoing-mail', 'true');
  const page = await site.open('/');
  await page.getByRole('heading', { name: 'Overview', exact: true }).waitFor();
  let answer = () => {};
  const hold = () => {
    const answered = new Promise<void>((resolve) => (answer = resolve));
    return page.route(/search=/, (route) => answered.then(() => route.continue()));
  };
  const input = page.getByRole('combobox', { name: 'Go to a page, a job or a run', exact: true });
  const options = page.locator('[role=listbox][aria-busy=false]').getByRole('option');
  const type = async (what: string) => {
    await page.unroute(/search=/);
    await hold();
    await input.fill(what);
    await page.getByRole('option').filter({ hasText: 'Sign out' }).waitFor();
    await page.keyboard.press('Enter');
  };
  await page.keyboard.press('Control+k');
  await options.filter({ hasText: 'outgoing-mail' }).waitFor();
  expect(await options.last().textContent()).toContain('Sign out');
  // No job is called that: what was pressed too early is forgotten.
  await type('sign');
  answer();
  await options.filter({ hasText: 'Sign out' }).waitFor();
  expect(await options.count()).toBe(1);
  expect(await page.getByRole('dialog').count()).toBe(1);
  await type('out');
  answer();
  await page.getByRole('heading', { name: 'outgoing-mail', exact: true }).waitFor();
  await page.context().close();
});

it('many jobs are paused at once, by a label, and resumed', async () => {
  for (const name of ['bulk-a', 'bulk-b', 'bulk-c']) await site.shell(name, 'true', { schedule: [{ every: '1h' }], labels: { team: name === 'bulk-c' ? 'red' : 'blue' } });
  const page = await site.open('/jobs');
  await page.getByLabel('Label', { exact: true }).selectOption('team=blue');
  await eventually('only those are listed', async () => (await page.getByRole('link', { name: 'bulk-c', exact: true }).count()) === 0 && (await page.getByRole('link', { name: /^bulk-/ }).count()) === 2);
  await page.getByLabel('Choose all that are listed', { exact: true }).check();
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  await page.getByText('Pause: 2 of 2 jobs').waitFor();
  const paused = async (name: string) => (await site.api('GET', `/api/v1/namespaces/default/jobs/${name}`)).paused !== null;
  expect([await paused('bulk-a'), await paused('bulk-b'), await paused('bulk-c')]).toEqual([true, true, false]);
  await counted(page.locator('.tag', { hasText: 'Paused' }), 2);
  await page.getByLabel('Choose all that are listed', { exact: true }).check();
  await page.getByRole('button', { name: 'Resume', exact: true }).click();
  await page.getByText('Resume: 2 of 2 jobs').waitFor();
  expect(await paused('bulk-a')).toBe(false);
  await page.close();
});

it('jobs are found by the server, by name or label, also from the palette', async () => {
  await site.shell('needle-one', 'true', { labels: { team: 'hay' } });
  await site.shell('other-two', 'true', { labels: { team: 'Needlework' } });
  await site.shell('third', 'true');
  const page = await site.open('/jobs');
  await page.getByRole('link', { name: 'third', exact: true }).waitFor();
  const asked = page.waitForRequest((request) => request.url().includes('search=needle'));
  await page.getByLabel('Part of a name or label', { exact: true }).fill('needle');
  await asked;
  await counted(page.getByRole('link', { name: 'third', exact: true }), 0);
  await page.getByRole('link', { name: 'needle-one', exact: true }).waitFor();
  await page.getByRole('link', { name: 'other-two', exact: true }).waitFor();
  await page.getByLabel('Part of a name or label', { exact: true }).fill('nobody at all');
  await page.getByText('No job fits', { exact: true }).waitFor();
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Go to a page, a job or a run', exact: true }).fill('needle-o');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'needle-one', exact: true }).waitFor();
  await page.close();
});

it('dead letters of every namespace are shown together, and each is seen to where it is', async () => {
  for (const namespace of ['default', 'north']) {
    await site.shell('doomed', 'exit 4', { namespace, retry: { max_attempts: 1 } });
    const run = await site.api('POST', `/api/v1/namespaces/${namespace}/jobs/doomed/runs`, {});
    await site.ended(run.id as string);
  }
  const page = await site.open('/letters');
  const group = page.locator('.panel').filter({ has: page.locator('a[href="/jobs/north/doomed"]') });
  await group.getByText('north /', { exact: true }).waitFor();
  await page.locator('.panel a[href="/jobs/default/doomed"]').waitFor();
  await group.getByRole('button', { name: 'Discard', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Discard', exact: true }).click();
  await counted(group, 0);
  expect((await site.api('GET', '/api/v1/deadletters')).items.map((letter: { namespace: string }) => letter.namespace)).toEqual(['default']);
  await site.api('POST', '/api/v1/namespaces/default/deadletters:discard', { all: true });
  await page.close();
});

it('a version is compared and restored', async () => {
  await site.shell('versioned', 'true', { timeout: '5m' });
  await site.shell('versioned', 'true', { timeout: '9m' });
  const page = await site.open('/jobs/default/versioned/versions');
  await page.getByRole('cell', { name: '9m' }).waitFor();
  await page.getByRole('button', { name: 'Restore this version', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Restore this version', exact: true }).click();
  await page.getByRole('heading', { name: /Version 3/ }).waitFor();
  expect((await site.api('GET', '/api/v1/namespaces/default/jobs/versioned')).spec.timeout).toBe('5m');
  await page.close();
});

it('a stale edit is refused and says so, and what was typed stays until it is given up', async () => {
  await site.shell('contested', 'true', { timeout: '5m' });
  const page = await site.open('/jobs/default/contested/definition');
  const limit = page.getByLabel('Time limit', { exact: true });
  const apply = page.getByRole('button', { name: 'Apply', exact: true });
  const kept = async () => (await site.api('GET', '/api/v1/namespaces/default/jobs/contested')).spec.timeout as string;
  await limit.fill('6m');
  await site.api('PATCH', '/api/v1/namespaces/default/jobs/contested', { description: 'by another' });
  await page.getByText('Someone changed the job while you edited it.').waitFor();
  expect(await limit.inputValue()).toBe('6m');
  site.expected.push(/412/);
  await apply.click();
  await page.getByText('It has changed', { exact: true }).waitFor();
  expect(await kept()).toBe('5m');
  await page.getByRole('button', { name: 'Drop mine and load theirs', exact: true }).click();
  await eventually('theirs is shown', async () => (await limit.inputValue()) === '5m');
  await limit.fill('7m');
  await apply.click();
  await eventually('mine is kept', async () => (await kept()) === '7m');
  // Where nothing was typed, what others do is shown at once.
  await page.getByText('Nothing is changed', { exact: true }).waitFor();
  await site.api('PATCH', '/api/v1/namespaces/default/jobs/contested', { timeout: '8m' });
  await eventually('theirs is shown by itself', async () => (await limit.inputValue()) === '8m');
  await page.close();
});

it('every due time has its fate', async () => {
  await site.firedTwice('fated');
  const page = await site.open('/jobs/default/fated/fate');
  const hour = page.locator('.heat button[data-tone="completed"]');
  await hour.first().waitFor();
  await hour.first().click();
  await page.locator('table a[data-state="COMPLETED"]').first().waitFor();
  await page.close();
});

it('a worker is drained and returned', async () => {
  const [worker] = (await site.api('GET', '/api/v1/workers')).items;
  const page = await site.open('/workers');
  await page.getByRole('link', { name: worker.name, exact: true }).click();
  await page.getByRole('button', { name: 'Drain', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Drain', exact: true }).click();
  await page.getByText('Draining').first().waitFor();
  await page.getByRole('button', { name: 'Return to service', exact: true }).click();
  await page.getByText('Online').first().waitFor();
  await page.close();
});
