// Who changed what, newest first.
import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useSearchParams } from 'wouter';
import { call } from '../api/call';
import type { AuditEntry, AuditKind } from '../api/schema';
import { useT } from '../i18n';
import { useNamespace } from '../namespace';
import { Button, Empty, Fault, Loading, PageHead, Panel } from '../ui/parts';
import { When } from '../ui/time';
import { Changes } from './job_versions';
import { Link } from '../ui/link';

const KINDS: AuditKind[] = ['job', 'run', 'calendar', 'queue', 'worker', 'lock', 'token', 'setting', 'backfill'];

export default function AuditPage() {
  const t = useT();
  const [namespace] = useNamespace();
  const [search, setSearch] = useSearchParams();
  const kind = KINDS.find((one) => one === search.get('kind'));
  const entries = useInfiniteQuery({
    queryKey: ['audit', namespace, kind],
    queryFn: ({ pageParam }) => call('listAudit', { query: { namespace: namespace || undefined, kind, limit: 100, cursor: pageParam } as never }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
  });
  const items = (entries.data?.pages ?? []).flatMap((page) => page.items);
  return (
    <div className="page">
      <PageHead title={t.audit.title}>
        <select className="select" aria-label={t.audit.kind} value={kind ?? ''} onChange={(event) => setSearch(event.target.value ? { kind: event.target.value } : {})}>
          <option value="">
            {t.audit.kind}: {t.all}
          </option>
          {KINDS.map((one) => (
            <option key={one} value={one}>
              {t.audit.kinds[one]}
            </option>
          ))}
        </select>
      </PageHead>
      {entries.isPending ? (
        <Loading />
      ) : entries.isError && items.length === 0 ? (
        <Fault error={entries.error} retry={() => void entries.refetch()} />
      ) : items.length === 0 ? (
        <Empty title={t.audit.emptyTitle}>
          <p>{t.audit.emptyText}</p>
        </Empty>
      ) : (
        <Panel flush>
          <table className="table">
            <thead>
              <tr>
                <th>{t.audit.when}</th>
                <th>{t.audit.who}</th>
                <th>{t.audit.what}</th>
              </tr>
            </thead>
            <tbody>
              {items.map((entry) => (
                <Entry key={entry.id} entry={entry} />
              ))}
            </tbody>
          </table>
        </Panel>
      )}
      {entries.hasNextPage && (
        <div>
          <Button disabled={entries.isFetchingNextPage} onClick={() => void entries.fetchNextPage()}>
            {t.more}
          </Button>
        </div>
      )}
    </div>
  );
}

function targetOf(entry: AuditEntry): string | null {
  if (entry.kind === 'job' && entry.action !== 'deleted') return `/jobs/${entry.namespace}/${entry.name}`;
  if (entry.kind === 'backfill') return `/backfills/${entry.name}`;
  if (entry.kind === 'run') return `/runs/${entry.name}`;
  return entry.kind === 'worker' ? `/workers/${entry.name}` : null;
}

function Entry({ entry }: { entry: AuditEntry }) {
  const t = useT();
  const [open, setOpen] = useState(false);
  const target = targetOf(entry);
  return (
    <tr>
      <td className="fit">
        <When at={entry.at} />
      </td>
      <td className="fit name">{entry.actor}</td>
      <td>
        <div className="row">
          <span>
            {t.audit.kinds[entry.kind]} {entry.namespace && <span className="quiet">{entry.namespace} / </span>}
            {target ? (
              <Link href={target} className="name">
                {entry.name}
              </Link>
            ) : (
              <span className="name">{entry.name}</span>
            )}{' '}
            {t.audit.actions[entry.action]}
          </span>
          {entry.changes.length > 0 && (
            <Button size="small" kind="plain" aria-expanded={open} onClick={() => setOpen(!open)}>
              {t.audit.changes} ({entry.changes.length})
            </Button>
          )}
        </div>
        {open && <Changes changes={entry.changes} />}
      </td>
    </tr>
  );
}
