// What the server tells in codes is told in the language of the page: why, what happened, what to do, outcomes and fates.
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Site } from './site';

let site: Site;
let failed: string;
let waiting: string;
beforeAll(async () => {
  site = await Site.start();
  await site.shell('frail', 'echo no route >&2; exit 3', { retry: { max_attempts: 1 } });
  await site.job('lonely', { task: { handler: { name: 'nobody' } } });
  await site.firedTwice('ticks');
  failed = await site.trigger('frail');
  await site.ended(failed);
  waiting = await site.trigger('lonely');
});
afterAll(() => site.stop());

const says = async (page: Page, words: string[]) => {
  for (const one of words) await page.getByText(one, { exact: true }).first().waitFor();
};

it('a run that failed is explained in both languages', async () => {
  const english = await site.open(`/runs/${failed}`);
  await english.locator('.notice').getByText('allows no other try').waitFor();
  await says(english, ['See what the last attempt had to say:', 'Attempt 1 started.']);
  await english.getByRole('cell', { name: 'failed exit code 3' }).waitFor();
  await english.context().close();
  const chinese = await site.open(`/runs/${failed}`, undefined, { locale: 'zh-CN' });
  await chinese.locator('.notice').getByText('它失败了 1 次').waitFor();
  await says(chinese, ['查看最后一次尝试的输出：', '第 1 次尝试已启动。', `drumtower run logs ${failed} --attempt 1`]);
  await chinese.getByText(/^由 local 产生，采用作业的版本 1。$/).waitFor();
  await chinese.getByRole('cell', { name: '失败 退出码 3' }).waitFor();
  // The error is the task's own and stays as it is; nothing else is left in English.
  await chinese.locator('.notice').getByText('the command exited with code 3').waitFor();
  const course = (await chinese.locator('.course').innerText()).replace(/the command exited with code 3/g, '');
  expect(course).not.toMatch(/[A-Za-z]{3,} [a-z]{2,} [a-z]{2,}/);
  await chinese.context().close();
});

it('a run and a job that wait say in Chinese what for', async () => {
  const page = await site.open(`/runs/${waiting}`, undefined, { locale: 'zh-CN' });
  await page.locator('.notice').getByText('没有工作节点提供它所需要的执行方式或处理函数。', { exact: true }).waitFor();
  expect(await page.getByText('no worker offers').count()).toBe(0);
  await page.goto(`${site.url}/jobs/default/lonely`);
  await page.locator('.notice').getByText('没有工作节点提供它所需要的执行方式或处理函数', { exact: true }).waitFor();
  await page.context().close();
});

it('what became of due times is told in both languages', async () => {
  const look = async (locale: string, words: RegExp) => {
    const page = await site.open('/jobs/default/ticks/fate', undefined, { locale });
    const hour = page.locator('.heat button[data-tone="completed"]').last();
    await hour.waitFor();
    await hour.click();
    await page.getByRole('cell', { name: words }).first().waitFor();
    await page.context().close();
  };
  await look('en-GB', /^COMPLETED, started .* after its due time$/);
  await look('zh-CN', /^已完成，到期后 .* 启动$/);
});

it('what is refused has a Chinese title above the words of the server', async () => {
  site.expected.push(/404/, /409/, /401/);
  const page = await site.open('/jobs/default/nobody', undefined, { locale: 'zh-CN' });
  const alert = page.getByRole('alert');
  await alert.getByText('没有这个作业', { exact: true }).waitFor();
  await alert.getByText('there is no job').waitFor();
  await site.newToken('taken', 'viewer');
  await page.goto(`${site.url}/tokens`);
  await page.getByRole('button', { name: '新建令牌', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('名称', { exact: true }).fill('taken');
  await dialog.getByRole('button', { name: '新建令牌', exact: true }).click();
  await dialog.getByRole('alert').getByText(/^名称已被占用：there is already a token/).waitFor();
  await page.context().close();
  const door = await site.open('/', '', { locale: 'zh-CN' });
  await door.getByLabel('令牌', { exact: true }).fill('drt_wrong');
  await door.getByRole('button', { name: '登录', exact: true }).click();
  await door.getByText('这里没有这个令牌').waitFor();
  await door.context().close();
});

it('what the state of a worker rests on is told in both languages', async () => {
  const [worker] = (await site.api('GET', '/api/v1/workers')).items;
  await site.api('POST', `/api/v1/workers/${worker.name}/drain`, {});
  const english = await site.open('/workers');
  await english.getByText('drained by local: it runs nothing', { exact: true }).waitFor();
  await english.context().close();
  const chinese = await site.open('/workers', undefined, { locale: 'zh-CN' });
  await chinese.getByText('由 local 排空：没有正在执行的运行', { exact: true }).waitFor();
  await site.api('POST', `/api/v1/workers/${worker.name}/resume`);
  await chinese.getByText('在线', { exact: true }).waitFor();
  await chinese.context().close();
});

it('words that do not come leave the page in English, and are asked for again', async () => {
  site.expected.push(/Failed to load resource/);
  const page = await site.open('/', undefined, { locale: 'zh-CN' });
  await page.getByRole('heading', { name: '总览', exact: true }).waitFor();
  const words = /\/zh-[^/]*\.js$/;
  await page.route(words, (route) => route.abort());
  await page.reload();
  await page.getByRole('heading', { name: 'Overview', exact: true }).waitFor();
  await page.unroute(words);
  await page.getByRole('button', { name: '中文', exact: true }).first().click();
  await page.getByRole('heading', { name: '总览', exact: true }).waitFor();
  await page.context().close();
});
