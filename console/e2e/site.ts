// A server of one's own with a worker, in a directory of its own, and a browser that looks at it.
//
// Whatever a page does wrong by the way fails the test that looks at it: an error of a script, a breach of the policy of
// the page, a request to another host.
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type Browser, type BrowserContextOptions, type Locator, type Page, type Route } from 'playwright-core';

const BINARY = process.env.DRUMTOWER_BIN ?? join(import.meta.dirname, '../../target/debug/drumtower');
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
/** Only a hang reaches it. */
export const PATIENCE_MS = 60_000;

export interface Json {
  [key: string]: any;
}

export class Site {
  url = '';
  private child: ChildProcess | null = null;
  private readonly workers: ChildProcess[] = [];
  private browser: Browser | null = null;
  private complaints: string[] = [];
  private foreign = false;
  /** Words of complaints that a test provokes on purpose. */
  expected: RegExp[] = [];

  private constructor(
    private readonly verb: 'dev' | 'serve',
    readonly data: string,
  ) {}

  /** `dev` has a worker, `serve` has none. */
  static async start(verb: 'dev' | 'serve' = 'dev'): Promise<Site> {
    const site = new Site(verb, mkdtempSync(join(tmpdir(), 'drumtower-console-')));
    await site.up('127.0.0.1:0');
    return site;
  }

  /** A server that runs already, by its data directory; it is left running. */
  static async attach(data: string): Promise<Site> {
    const site = new Site('dev', data);
    site.url = readFileSync(join(data, 'server.url'), 'utf8').trim();
    site.foreign = true;
    return site;
  }

  /** A port of one's own that others took meanwhile becomes free again: a browser's connection held it. */
  private async up(listen: string): Promise<void> {
    const until = Date.now() + PATIENCE_MS;
    for (;;) {
      try {
        return await this.serve(listen);
      } catch (error) {
        if (!/in use/i.test(String(error)) || Date.now() > until) throw error;
        await new Promise((resolve) => setTimeout(resolve, 250));
      }
    }
  }

  private async serve(listen: string): Promise<void> {
    const child = spawn(BINARY, [this.verb, '--data', this.data, '--listen', listen], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.child = child;
    let said = '';
    this.url = await new Promise<string>((resolve, reject) => {
      const hear = (chunk: Buffer) => {
        said += chunk.toString();
        const found = /drumtower serves (http:\/\/\S+)/.exec(said);
        if (found?.[1]) resolve(found[1]);
      };
      child.stdout?.on('data', hear);
      child.stderr?.on('data', hear);
      child.on('exit', (code) => reject(new Error(`the server ended with ${code}: ${said}`)));
      child.on('error', reject);
    });
  }

  private async down(): Promise<void> {
    const { child } = this;
    this.child = null;
    if (child) await stopped(child);
  }

  /** One more worker of that name, which ends with the site. */
  async worker(name: string, labels: Record<string, string> = {}, capacity = 8): Promise<void> {
    const told = Object.entries(labels).flatMap(([key, value]) => ['--label', `${key}=${value}`]);
    const size = ['--capacity', String(capacity), '--scratch', join(this.data, `scratch-${name}`), '--drain', '1s'];
    const env = { ...process.env, DRUMTOWER_TOKEN: await this.newToken(`worker-${name}`, 'worker') };
    const child = spawn(BINARY, ['work', '--url', this.url, '--name', name, ...size, ...told], { stdio: 'ignore', env });
    this.workers.push(child);
    const isThere = async () => (await this.api('GET', '/api/v1/workers')).items.some((worker: Json) => worker.name === name);
    await eventually(`${name} is there`, async () => {
      if (child.exitCode !== null) throw new Error(`worker ${name} ended with ${child.exitCode}`);
      return isThere();
    });
  }

  /** Stops the server, does something, and starts it again on the same port. */
  async restart(meanwhile: () => Promise<void>): Promise<void> {
    const listen = new URL(this.url).host;
    await this.down();
    await meanwhile();
    await this.up(listen);
  }

  get token(): string {
    return readFileSync(join(this.data, 'local.token'), 'utf8').trim();
  }

  async api(method: string, path: string, body?: unknown): Promise<Json> {
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: { Authorization: `Bearer ${this.token}`, 'Content-Type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text ? (JSON.parse(text) as Json) : {};
  }

  async job(name: string, more: Json): Promise<Json> {
    return this.api('PUT', `/api/v1/namespaces/${more.namespace ?? 'default'}/jobs/${name}`, { kind: 'Job', name, ...more });
  }

  async shell(name: string, line: string, more: Json = {}): Promise<Json> {
    return this.job(name, { task: { exec: { argv: ['sh', '-c', line] } }, ...more });
  }

  async trigger(name: string, body: Json = {}): Promise<string> {
    return (await this.api('POST', `/api/v1/namespaces/default/jobs/${name}/runs`, body)).id as string;
  }

  async ended(run: string): Promise<Json> {
    return this.api('GET', `/api/v1/runs/${run}/wait?timeout=60s`);
  }

  /** A job that fires twice by itself, and has: nothing of it is under way any more. */
  async firedTwice(name: string): Promise<void> {
    await this.shell(name, 'true', { schedule: [{ every: '1s' }], bounds: { max_fires: 2 }, overlap: 'allow' });
    await eventually(`${name} has run twice`, async () => (await this.api('GET', `/api/v1/runs?job=${name}&state=COMPLETED`)).items.length === 2);
  }

  async newToken(name: string, role: string, namespace: string | null = null): Promise<string> {
    return (await this.api('POST', '/api/v1/tokens', { name, role, namespace })).secret as string;
  }

  /** A fresh browser profile, signed in with `token`, at `path`. */
  async open(path: string, token: string = this.token, options: BrowserContextOptions = {}): Promise<Page> {
    this.browser ??= await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
    const context = await this.browser.newContext({ viewport: { width: 1280, height: 860 }, locale: 'en-GB', timezoneId: 'UTC', ...options });
    if (process.env.CONSOLE_FROM_DISK) await context.route((url) => !url.pathname.startsWith('/api/'), fromDisk);
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    this.watch(page);
    if (token) {
      const signedIn = await context.request.post(`${this.url}/api/v1/session`, { headers: { Authorization: `Bearer ${token}` } });
      if (!signedIn.ok()) throw new Error(`cannot sign in: ${await signedIn.text()}`);
    }
    await page.goto(`${this.url}${path}`);
    return page;
  }

  private watch(page: Page): void {
    const own = new URL(this.url).host;
    page.on('pageerror', (error) => this.complaints.push(`script: ${error.stack ?? error.message}`));
    page.on('console', (message) => message.type() === 'error' && this.complaints.push(`console: ${message.text()}`));
    page.on('request', (request) => {
      const { host, protocol } = new URL(request.url());
      if (host !== own && protocol !== 'blob:') this.complaints.push(`request to ${request.url()}`);
    });
  }

  async stop(): Promise<void> {
    await this.browser?.close();
    await Promise.all(this.workers.map(stopped));
    await this.down();
    if (!this.foreign) rmSync(this.data, { recursive: true, force: true });
    const real = this.complaints.filter((text) => !this.expected.some((known) => known.test(text)));
    if (real.length > 0) throw new Error(`pages did wrong:\n${real.join('\n')}`);
  }
}

async function stopped(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const over = new Promise((resolve) => child.on('exit', resolve));
  child.kill('SIGTERM');
  await over;
}

const KINDS: Record<string, string> = { html: 'text/html', js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml' };

/** With CONSOLE_FROM_DISK=1 the last build of the console is tried without building the server again. */
async function fromDisk(route: Route): Promise<void> {
  const { pathname } = new URL(route.request().url());
  const name = pathname.startsWith('/assets/') ? pathname.slice('/assets/'.length) : 'index.html';
  const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'";
  const answer = {
    body: readFileSync(join(import.meta.dirname, '../embedded', name)),
    headers: { 'content-type': KINDS[name.split('.').pop() ?? ''] ?? 'text/plain', 'content-security-policy': policy },
  };
  // A page that is closed meanwhile wants no answer.
  await route.fulfill(answer).catch(() => undefined);
}

/** How many there are, as soon as there are that many. */
export async function counted(found: Locator, count: number): Promise<void> {
  await eventually(`there are ${count} of ${String(found)}`, async () => (await found.count()) === count);
}

/** Asks again and again until it is true. */
export async function eventually(what: string, ask: () => Promise<boolean>): Promise<void> {
  const until = Date.now() + PATIENCE_MS;
  while (!(await ask())) {
    if (Date.now() > until) throw new Error(`it never came true that ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
