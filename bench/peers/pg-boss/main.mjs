// pg-boss: batches that are fetched one after the other while they come back full, and LISTEN/NOTIFY to be woken.

import pg from "pg";
import { PgBoss } from "pg-boss";
import { answer, chunks, counting, main, nowUs, offer, started, task, told } from "./peer.mjs";

const QUEUE = "noop";
const { settings } = task;
const insert = (boss, jobs) => boss.insert(QUEUE, jobs.map((data) => ({ data })));

async function start(more = {}) {
  const boss = new PgBoss({ connectionString: task.url, ...more });
  boss.on("error", console.error);
  await boss.start();
  return boss;
}

await main({
  async prepare() {
    const boss = await start();
    await boss.createQueue(QUEUE, { notify: settings.useListenNotify });
    for (const jobs of chunks(task.jobs, settings.enqueueBatch)) await insert(boss, jobs);
    answer({ prepared: task.jobs });
  },
  async offer() {
    const boss = await start({ supervise: false, schedule: false });
    await offer((jobs) => insert(boss, jobs));
  },
  async work() {
    const boss = await start({ useListenNotify: settings.useListenNotify });
    answer({ began_us: nowUs() });
    const { batchSize, localConcurrency, burstWhenBatchFull, pollingIntervalSeconds } = settings;
    await boss.work(QUEUE, { batchSize, localConcurrency, burstWhenBatchFull, pollingIntervalSeconds }, async (jobs) => {
      for (const { data } of jobs) started(data);
    });
    await told();
    await boss.stop({ graceful: true, timeout: 20_000 });
    answer({ stopped: true });
  },
  async left() {
    const client = new pg.Client(task.url);
    await client.connect();
    const query = `select count(*) from pgboss.job where name = '${QUEUE}' and state <> 'completed'`;
    await counting(async () => (await client.query(query)).rows[0].count);
  },
});
