// BullMQ: addBulk to enqueue, one worker a process with the concurrency that its docs name for work without computing.

import { Queue, Worker } from "bullmq";
import { answer, chunks, counting, main, nowUs, offer, started, task, told } from "./peer.mjs";

const QUEUE = "noop";
const { settings } = task;
const { hostname: host, port } = new URL(task.url);
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const queue = () => new Queue(QUEUE, { connection, defaultJobOptions: { removeOnComplete: settings.removeOnComplete } });
const add = (to, jobs) => to.addBulk(jobs.map((data) => ({ name: "noop", data })));

await main({
  async prepare() {
    const to = queue();
    for (const jobs of chunks(task.jobs, settings.enqueueBatch)) await add(to, jobs);
    answer({ prepared: task.jobs });
  },
  async offer() {
    const to = queue();
    await offer((jobs) => add(to, jobs));
  },
  async work() {
    const worker = new Worker(QUEUE, async (job) => started(job.data), {
      connection, concurrency: settings.concurrency, autorun: false,
    });
    worker.on("error", console.error);
    await worker.waitUntilReady();
    answer({ began_us: nowUs() });
    worker.run();
    await told();
    await worker.close();
    answer({ stopped: true });
  },
  async left() {
    const of = queue();
    await counting(() => of.getJobCountByTypes("wait", "active", "delayed", "prioritized", "paused", "failed"));
  },
});
