// The protocol of the peers for Node: tasks come as JSON in the first argument, answers leave as lines of JSON.

import fs from "node:fs";
import readline from "node:readline";

export const task = JSON.parse(process.argv[2]);
export const nowUs = () => Math.round((performance.timeOrigin + performance.now()) * 1000);
export const answer = (line) => fs.writeSync(1, JSON.stringify(line) + "\n");

/** Called by the handler in its first line: which job it is and when it was meant to be enqueued. */
export function started({ n, meant }) {
  const at = String(nowUs());
  starts ??= fs.openSync(task.starts, "a");
  fs.writeSync(starts, `${String(n).padStart(9)} ${String(meant).padStart(16)} ${at.padStart(16)}\n`);
}
let starts;

/** Jobs by number, for enqueueing beforehand: chunks of `size`. */
export function* chunks(count, size) {
  for (let from = 0; from < count; from += size) {
    yield Array.from({ length: Math.min(size, count - from) }, (_, i) => ({ n: from + i, meant: 0 }));
  }
}

/** Offers `rate` jobs a second in an open loop: what is due on a tick is one call of `send`, eight are under way at most. */
export async function offer(send) {
  const begin = nowUs() + 1_000_000;
  const total = task.rate * task.seconds;
  const meant = (n) => begin + Math.round((n * 1e6) / task.rate);
  const under = new Set();
  let next = 0;
  let failed = 0;
  while (next < total) {
    const now = nowUs();
    const due = [];
    if (under.size < 8) for (; next < total && meant(next) <= now; next++) due.push({ n: next, meant: meant(next) });
    if (due.length > 0) {
      const sent = send(due)
        .catch((error) => { failed += due.length; console.error(error); })
        .finally(() => under.delete(sent));
      under.add(sent);
    }
    await new Promise((resolve) => setTimeout(resolve, 4));
  }
  await Promise.all(under);
  answer({ offered: total - failed });
}

/** Waits until the harness closes our input. */
export const told = () => new Promise((resolve) => process.stdin.on("end", resolve).on("close", resolve).resume());

/** Answers each line of our input with how many jobs are not done, by the peer's own books. */
export async function counting(count) {
  for await (const _ of readline.createInterface({ input: process.stdin })) {
    answer({ left: Number(await count()), at_us: nowUs() });
  }
}

/** Runs the task that was asked for; each takes and gives what bench/peers/README.md says. */
export async function main(tasks) {
  await tasks[task.do]();
  process.exit(0);
}
