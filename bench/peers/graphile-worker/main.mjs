// graphile-worker: local queue and batched completion, as its page on performance recommends for high throughput.

import { Logger, makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";
import { answer, chunks, counting, main, nowUs, offer, started, task, told } from "./peer.mjs";

const { settings } = task;
const logger = new Logger(() => (level, message) => level === "error" && console.error(message));
const utils = () => makeWorkerUtils({ connectionString: task.url, logger });
const specs = (jobs) => jobs.map((payload) => ({ identifier: "noop", payload }));

await main({
  async prepare() {
    const queue = await utils();
    await queue.migrate();
    for (const jobs of chunks(task.jobs, settings.enqueueBatch)) await queue.addJobs(specs(jobs));
    answer({ prepared: task.jobs });
  },
  async offer() {
    const queue = await utils();
    await offer((jobs) => queue.addJobs(specs(jobs)));
  },
  async work() {
    answer({ began_us: nowUs() });
    const runner = await run({
      preset: {
        worker: {
          connectionString: task.url,
          maxPoolSize: settings.maxPoolSize,
          concurrentJobs: settings.concurrentJobs,
          localQueue: { size: settings.localQueueSize },
          completeJobBatchDelay: settings.completeJobBatchDelay,
          failJobBatchDelay: settings.failJobBatchDelay,
          logger,
        },
      },
      noHandleSignals: true,
      taskList: { noop: async (payload) => started(payload) },
    });
    await told();
    await runner.stop();
    answer({ stopped: true });
  },
  async left() {
    const client = new pg.Client(task.url);
    await client.connect();
    const query = "select count(*) from graphile_worker.jobs";
    await counting(async () => (await client.query(query)).rows[0].count);
  },
});
