// Who holds which lock.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../api/call';
import type { Lock } from '../api/schema';
import { useMay } from '../api/session';
import { useT } from '../i18n';
import { useNamespace } from '../namespace';
import { Button, Command, Confirm, Empty, Fault, Loading, PageHead, Panel } from '../ui/parts';
import { When, duration } from '../ui/time';

export default function LocksPage() {
  const t = useT();
  const may = useMay();
  const client = useQueryClient();
  const [namespace] = useNamespace();
  const [asks, setAsks] = useState<Lock | null>(null);
  const locks = useQuery({ queryKey: ['locks', namespace], queryFn: () => call('listLocks', { query: { namespace: namespace || undefined, limit: 1000 } }), refetchInterval: 3000 });
  return (
    <div className="page">
      <PageHead title={t.locks.title} />
      {locks.isPending ? (
        <Loading />
      ) : !locks.data ? (
        <Fault error={locks.error} retry={() => void locks.refetch()} />
      ) : locks.data.items.length === 0 ? (
        <Empty title={t.locks.emptyTitle}>
          <p>{t.locks.emptyText}</p>
          <Command text="drumtower lock run import -- ./import.sh" />
        </Empty>
      ) : (
        <Panel flush>
          <table className="table">
            <thead>
              <tr>
                <th>{t.locks.name}</th>
                <th>{t.namespace.label}</th>
                <th>{t.locks.owner}</th>
                <th>{t.locks.since}</th>
                <th className="number">{t.locks.ttl}</th>
                <th className="number">{t.locks.fence}</th>
                <th />
              </tr>
            </thead>
            <tbody>
              {locks.data.items.map((lock) => (
                <tr key={`${lock.namespace}/${lock.name}`}>
                  <td className="name">{lock.name}</td>
                  <td>{lock.namespace}</td>
                  <td>
                    {lock.owner} <span className="quiet">{t.job.by(lock.actor)}</span>
                  </td>
                  <td>
                    <When at={lock.acquired} />
                  </td>
                  <td className="number">{duration(lock.ttl_ms)}</td>
                  <td className="number mono">{lock.fence}</td>
                  <td className="fit">
                    {may('BreakLock') && (
                      <Button size="small" kind="danger" onClick={() => setAsks(lock)}>
                        {t.locks.take}
                      </Button>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Panel>
      )}
      {asks && (
        <Confirm
          danger
          title={t.locks.take}
          text={t.locks.takeText}
          act={() => call('breakLock', { path: { namespace: asks.namespace, name: asks.name } })}
          onDone={() => void client.invalidateQueries({ queryKey: ['locks'] })}
          onClose={() => setAsks(null)}
        />
      )}
    </div>
  );
}
