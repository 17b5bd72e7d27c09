// Calls of the API, typed by its own description. What is refused is thrown as a Refusal with the server's words.
import { CALLS, type Operations, type Problem } from './schema';

export type OperationId = keyof Operations;
export type Answer<O extends OperationId> = Operations[O]['answer'];

type Given<O extends OperationId> = (Operations[O]['path'] extends Record<string, unknown>
  ? { path: Operations[O]['path'] }
  : { path?: undefined }) & {
  query?: Operations[O]['query'];
  body?: Operations[O]['body'];
  /** The revision that was read: refused when it has changed since. */
  match?: string;
  /** Only makes, never changes. */
  absent?: boolean;
  signal?: AbortSignal;
};

/** A refusal in the server's words, or that there was no answer at all (status 0). */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly title: string,
    readonly detail: string,
    readonly field: string | null = null,
  ) {
    super(detail || title);
  }
}

/** Told when the session is over, wherever that is noticed. */
export const sessionEnded = new EventTarget();

export function address<O extends OperationId>(operation: O, path?: object, query?: object): string {
  const places = (path ?? {}) as Record<string, unknown>;
  const filled = CALLS[operation][1].replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(places[name])));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null && one !== '') search.append(name, String(one));
    }
  }
  const text = search.toString();
  return text ? `${filled}?${text}` : filled;
}

export async function send<O extends OperationId>(operation: O, given: Given<O>, headers: Record<string, string> = {}): Promise<Response> {
  const method = CALLS[operation][0];
  const all: Record<string, string> = { ...headers };
  // Shows the server that no other site made the browser send this.
  if (method !== 'GET') all['X-Drumtower-Console'] = '1';
  if (given.body !== undefined) all['Content-Type'] = 'application/json';
  if (given.match) all['If-Match'] = given.match;
  if (given.absent) all['If-None-Match'] = '*';
  let response: Response;
  try {
    response = await fetch(address(operation, given.path, given.query), {
      method,
      headers: all,
      body: given.body === undefined ? undefined : JSON.stringify(given.body),
      signal: given.signal,
      cache: 'no-store',
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new Refusal(0, 'unreachable', 'The server does not answer', '');
  }
  if (response.ok) return response;
  const refusal = await read(response);
  if (refusal.status === 401 && operation !== 'signIn') sessionEnded.dispatchEvent(new Event('ended'));
  throw refusal;
}

export async function call<O extends OperationId>(operation: O, given: Given<O>): Promise<Answer<O>> {
  const response = await send(operation, given);
  if (response.status === 204) return undefined as Answer<O>;
  return (await response.json()) as Answer<O>;
}

/** An answer and the tag that `If-Match` takes. */
export async function callTagged<O extends OperationId>(operation: O, given: Given<O>): Promise<{ value: Answer<O>; tag: string }> {
  const response = await send(operation, given);
  return { value: (await response.json()) as Answer<O>, tag: response.headers.get('etag') ?? '' };
}

async function read(response: Response): Promise<Refusal> {
  try {
    const problem = (await response.json()) as Problem;
    return new Refusal(response.status, problem.code, problem.title, problem.detail, problem.field ?? null);
  } catch {
    return new Refusal(response.status, 'unreadable', `${response.status} ${response.statusText}`, '');
  }
}
