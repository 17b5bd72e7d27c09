// The course of each worker's load, from what pages ask for while they are open; kept when one goes to another page.
import { useMemo } from 'react';
import type { Worker } from '../api/schema';

export interface Sample {
  /** In milliseconds since 1970. */
  at: number;
  /** From 0 to 1. */
  cpu: number;
  memory: number;
}

const SAMPLES = 60;
/** Two pages that ask at once give one sample. */
const APART_MS = 1000;
const FORGET_MS = 10 * 60_000;
const COURSES = new Map<string, Sample[]>();

export const memoryShare = (worker: Worker) => worker.load.memory_used_bytes / Math.max(worker.load.memory_total_bytes, 1);
export const cpuShare = (worker: Worker) => worker.load.cpu_permille / 1000;

/** Each connection of a worker has a course of its own. */
export const keyOf = (worker: Worker) => `${worker.name} ${worker.connected}`;

/** What is taken of its capacity: as the server counts while it gives work, as the worker says when it does not. */
export function takenOf(worker: Worker): number {
  const isGiven = worker.state === 'ONLINE' || worker.state === 'BUSY';
  return isGiven ? worker.capacity - worker.credit : worker.load.running_weight;
}

export function sampled(course: Sample[], sample: Sample): Sample[] {
  const last = course.at(-1);
  return last && sample.at - last.at < APART_MS ? course : [...course, sample].slice(-SAMPLES);
}

/** Adds what was answered at `at`, and forgets those of whom nothing was heard for long. */
export function useCourses(workers: Worker[] | undefined, at: number): ReadonlyMap<string, Sample[]> {
  return useMemo(() => {
    for (const worker of workers ?? []) {
      const key = keyOf(worker);
      COURSES.set(key, sampled(COURSES.get(key) ?? [], { at, cpu: cpuShare(worker), memory: memoryShare(worker) }));
    }
    for (const [key, course] of COURSES) if (at - (course.at(-1)?.at ?? 0) > FORGET_MS) COURSES.delete(key);
    return new Map(COURSES);
  }, [workers, at]);
}
