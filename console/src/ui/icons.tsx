// The marks of pages and commands, drawn in one weight.
const PATHS = {
  overview: 'M2.5 12.5v-4m4 4v-9m4 9v-6m4 6V5',
  jobs: 'M3 3.5h2v2H3zm0 4h2v2H3zm0 4h2v2H3zM8 4.5h5.5M8 8.5h5.5M8 12.5h5.5',
  runs: 'M5 3.5v9l7-4.5z',
  letters: 'M2.5 4.5h11v7.5h-11zm0 .5L8 9l5.5-4',
  backfills: 'M3.5 8a4.5 4.5 0 1 0 1.6-3.4M3 3v2.5h2.5M8 5.5V8l1.8 1.2',
  workers: 'M3 3h10v4H3zm0 6h10v4H3zm2.5-4h.01m0 6h.01',
  queues: 'M2.5 5.5h2.6v5H2.5zm4 0h2.6v5H6.5zm4.2-1L14 8l-3.3 3.5',
  cluster: 'M8 2.5 13 5v6L8 13.5 3 11V5zM3 5l5 2.5L13 5M8 7.5v6',
  calendars: 'M3 4.5h10v8.5H3zm0 3h10M5.5 3v3m5-3v3',
  locks: 'M4 7.5h8V13H4zm1.8 0V5.6a2.2 2.2 0 0 1 4.4 0v1.9',
  tokens: 'M10.5 8.5a3 3 0 1 0-3-3 3 3 0 0 0 3 3M8.4 7.6 2.8 13.2m1.6-1.6 1.7 1.7m.5-3.9 1.4 1.4',
  notifications: 'M4 11.5V7.3a4 4 0 0 1 8 0v4.2zm2.8 1.7h2.4',
  audit: 'M4 2.5h6l2.5 2.5v8.5H4zm2 5h4.5m-4.5 3h4.5',
  menu: 'M2.5 4.5h11m-11 3.5h11m-11 3.5h11',
  sun: 'M8 5.2a2.8 2.8 0 1 1 0 5.6 2.8 2.8 0 0 1 0-5.6M8 1.5v1.4m0 10.2v1.4M1.5 8h1.4m10.2 0h1.4M3.4 3.4l1 1m7.2 7.2 1 1m0-9.2-1 1m-7.2 7.2-1 1',
  moon: 'M13 9.5A5.5 5.5 0 1 1 6.5 3a4.4 4.4 0 0 0 6.5 6.5z',
  leave: 'M9.5 3H3.5v10h6m-2-5h6m-2-2.2L13.5 8l-2 2.2',
} as const;

export type Icon = keyof typeof PATHS;

export function Mark({ name }: { name: Icon }) {
  return (
    <svg width="16" height="16" viewBox="0 0 16 16" fill="none" stroke="currentColor" strokeWidth="1.4" strokeLinecap="round" strokeLinejoin="round" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
