// Backfills: runs of times that have passed, and how far each of them is.
import { useInfiniteQuery } from '@tanstack/react-query';
import { call } from '../api/call';
import type { Backfill, BackfillState } from '../api/schema';
import { useMay } from '../api/session';
import { useT, useWords } from '../i18n';
import { useNamespace } from '../namespace';
import { Button, Command, Empty, Fault, LinkButton, Loading, PageHead, Panel } from '../ui/parts';
import { When, count } from '../ui/time';
import { Link } from '../ui/link';

const TONES: Record<BackfillState, string> = { RUNNING: 'running', PAUSED: 'warning', COMPLETED: 'completed', CANCELLED: 'cancelled' };

export default function BackfillsPage() {
  const t = useT();
  const may = useMay();
  const [namespace] = useNamespace();
  const backfills = useInfiniteQuery({
    queryKey: ['backfills', 'list', namespace],
    queryFn: ({ pageParam }) => call('listBackfills', { query: { namespace: namespace || undefined, limit: 100, cursor: pageParam } }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
    refetchInterval: 10_000,
  });
  const items = (backfills.data?.pages ?? []).flatMap((page) => page.items);
  return (
    <div className="page">
      <PageHead title={t.backfills.title}>
        {may('CreateBackfill') && (
          <LinkButton to="/backfills/new" kind="main">
            {t.backfills.new}
          </LinkButton>
        )}
      </PageHead>
      {backfills.isPending ? (
        <Loading />
      ) : backfills.isError && items.length === 0 ? (
        <Fault error={backfills.error} retry={() => void backfills.refetch()} />
      ) : items.length === 0 ? (
        <Empty title={t.backfills.emptyTitle}>
          <p>{t.backfills.emptyText}</p>
          <Command text="drumtower backfill create NAME --from -14d --to now --dry-run" />
        </Empty>
      ) : (
        <Panel flush>
          <table className="table">
            <thead>
              <tr>
                <th>{t.backfills.job}</th>
                <th>{t.backfills.state}</th>
                <th>{t.backfills.interval}</th>
                <th>{t.backfills.progress}</th>
                <th className="number">{t.backfills.completed}</th>
                <th className="number">{t.backfills.failed}</th>
                <th>{t.backfills.created}</th>
              </tr>
            </thead>
            <tbody>
              {items.map((backfill) => (
                <Row key={backfill.id} backfill={backfill} />
              ))}
            </tbody>
          </table>
        </Panel>
      )}
      {backfills.hasNextPage && (
        <div>
          <Button disabled={backfills.isFetchingNextPage} onClick={() => void backfills.fetchNextPage()}>
            {t.more}
          </Button>
        </div>
      )}
    </div>
  );
}

function Row({ backfill }: { backfill: Backfill }) {
  const { t, language } = useWords();
  return (
    <tr>
      <td>
        <Link href={`/backfills/${backfill.id}`} className="name">
          {backfill.job}
        </Link>
        <div className="quiet">{backfill.namespace}</div>
      </td>
      <td>
        <BackfillStateLabel state={backfill.state} />
      </td>
      <td>
        <When at={backfill.from} dated /> – <When at={backfill.to} dated />
        <div className="quiet">{t.backfills.whichChoices[backfill.which]}</div>
      </td>
      <td>
        <Progress backfill={backfill} />
      </td>
      <td className="number">{count(backfill.completed, language)}</td>
      <td className="number">{count(backfill.failed, language)}</td>
      <td>
        <When at={backfill.created} /> <span className="quiet">{t.job.by(backfill.actor)}</span>
      </td>
    </tr>
  );
}

export function BackfillStateLabel({ state }: { state: BackfillState }) {
  const t = useT();
  return (
    <span className="tag" data-tone={TONES[state]}>
      {t.backfills.states[state]}
    </span>
  );
}

/** A time is settled when its run has ended, or when none is made of it. */
export function Progress({ backfill }: { backfill: Backfill }) {
  const t = useT();
  const settled = backfill.completed + backfill.failed + backfill.cancelled + backfill.skipped;
  const share = backfill.times === 0 ? 100 : (100 * settled) / backfill.times;
  return (
    <>
      <span className="meter" data-tone={TONES[backfill.state]} role="progressbar" aria-label={t.backfills.progress} aria-valuemin={0} aria-valuemax={backfill.times} aria-valuenow={settled}>
        <span style={{ width: `${Math.min(share, 100)}%` }} />
      </span>
      <span className="quiet nowrap">{t.backfills.progressText(settled, backfill.times)}</span>
    </>
  );
}
