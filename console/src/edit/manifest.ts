// A manifest as text and as a form: the text is the truth, the form reads it and writes into it, comments stay.
import { Document, isMap, parseDocument, stringify } from 'yaml';
import type { After, JobSpec, ScheduleEntry } from '../api/schema';
import type { Dictionary } from '../i18n/en';

export type Spec = Partial<JobSpec> & Record<string, unknown>;

export interface Reading {
  document: Document;
  spec: Spec | null;
  /** What is wrong with it as YAML, and on which line. */
  fault: { text: string; line: number } | null;
}

export function read(text: string): Reading {
  const document = parseDocument(text, { prettyErrors: true });
  const [error] = document.errors;
  if (error) {
    const [message = ''] = error.message.split('\n');
    return { document, spec: null, fault: { text: message, line: error.linePos?.[0].line ?? 1 } };
  }
  const value = document.toJS() as unknown;
  if (!isMap(document.contents) || value === null) return { document, spec: null, fault: { text: 'kind: Job …', line: 1 } };
  return { document, spec: value as Spec, fault: null };
}

/** The text with one value changed; `undefined` takes the key away, and what is empty without it. */
export function written(text: string, path: string[], value: unknown): string {
  const { document, fault } = read(text);
  if (fault) return text;
  if (value === undefined) {
    document.deleteIn(path);
    const above = path.slice(0, -1);
    const rest = above.length > 0 ? document.getIn(above) : undefined;
    if (isMap(rest) && rest.items.length === 0) document.deleteIn(above);
  } else {
    document.setIn(path, document.createNode(value));
  }
  return document.toString({ lineWidth: 120 });
}

/** What stands first in a manifest; the rest follows as it comes. */
const ORDER = ['kind', 'name', 'namespace', 'description', 'labels', 'schedule', 'after', 'calendar', 'task', 'params'];

export function textOf(spec: JobSpec): string {
  const place = (key: string) => (ORDER.includes(key) ? ORDER.indexOf(key) : ORDER.length);
  const pairs = Object.entries(spec).sort(([a], [b]) => place(a) - place(b));
  return stringify(Object.fromEntries(pairs), { lineWidth: 120 });
}

/** When a job that runs after others does so, in words. */
export function afterRule(t: Dictionary, after: After): string {
  const jobs = Array.isArray(after.jobs) ? after.jobs : [];
  const rule = t.job.afterRule[jobs.length === 1 ? 'one' : (after.need ?? 'all')];
  return rule?.[after.on ?? 'success'] ?? '';
}

export type TaskKind = 'command' | 'shell' | 'script' | 'http' | 'handler';

interface AnyTask {
  exec?: { argv?: string[]; shell?: string | null };
  script?: { body: string };
  http?: { url: string; method?: string };
  handler?: { name: string };
}

export function taskOf(spec: Spec): AnyTask {
  return (spec.task ?? {}) as AnyTask;
}

export function kindOf(task: AnyTask): TaskKind {
  if (task.script) return 'script';
  if (task.http) return 'http';
  if (task.handler) return 'handler';
  return task.exec?.shell !== undefined && task.exec.shell !== null ? 'shell' : 'command';
}

/** A task of another kind, with something in it that can be edited. */
export function taskLike(kind: TaskKind): unknown {
  switch (kind) {
    case 'command':
      return { exec: { argv: ['echo', 'hello'] } };
    case 'shell':
      return { exec: { shell: 'echo hello' } };
    case 'script':
      return { script: { body: '#!/bin/sh\necho hello\n' } };
    case 'http':
      return { http: { url: 'https://example.com/' } };
    case 'handler':
      return { handler: { name: 'my-handler' } };
  }
}

export type WhenKind = 'manual' | 'cron' | 'every' | 'at' | 'after_end';

export function whenOf(entry: ScheduleEntry | undefined): WhenKind {
  if (!entry) return 'manual';
  if (entry.cron) return 'cron';
  if (entry.at) return 'at';
  if (entry.after_end) return 'after_end';
  return 'every';
}

export function whenLike(kind: WhenKind): ScheduleEntry[] | undefined {
  switch (kind) {
    case 'manual':
      return undefined;
    case 'cron':
      return [{ cron: '0 9 * * *', timezone: Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC' }];
    case 'every':
      return [{ every: '5m' }];
    case 'after_end':
      return [{ after_end: '1m' }];
    case 'at':
      return [{ at: new Date(Date.now() + 3_600_000).toISOString().replace(/\.\d+/, '') }];
  }
}

/** Words as a terminal would part them: blanks part, quotes keep together, a backslash keeps the next character. */
export function words(line: string): string[] {
  const found: string[] = [];
  let word: string | null = null;
  let quote = '';
  for (let at = 0; at < line.length; at++) {
    const char = line[at]!;
    if (char === '\\' && quote !== "'" && at + 1 < line.length) word = (word ?? '') + line[++at]!;
    else if (quote) {
      if (char === quote) quote = '';
      else word = (word ?? '') + char;
    } else if (char === '"' || char === "'") {
      quote = char;
      word ??= '';
    } else if (/\s/.test(char)) {
      if (word !== null) found.push(word);
      word = null;
    } else word = (word ?? '') + char;
  }
  if (word !== null) found.push(word);
  return found;
}

export function line(argv: string[]): string {
  return argv.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(' ');
}

export function labelsOf(text: string): Record<string, string> | undefined {
  const pairs = text
    .split(',')
    .map((pair) => pair.trim())
    .filter(Boolean)
    .map((pair) => [pair.split('=')[0]!.trim(), pair.split('=').slice(1).join('=').trim()] as const);
  return pairs.length > 0 ? Object.fromEntries(pairs) : undefined;
}
