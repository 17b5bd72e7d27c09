// Runs that failed for good, grouped by what they died of.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { call } from '../api/call';
import type { Letter } from '../api/schema';
import { useMay } from '../api/session';
import { useT } from '../i18n';
import { useNamespace } from '../namespace';
import { Button, Confirm, Empty, Fault, Loading, PageHead, Panel } from '../ui/parts';
import { When } from '../ui/time';
import { useToasts } from '../ui/toast';
import { Link } from '../ui/link';

const MOST = 1000;
const SHOWN = 20;

export default function LettersPage() {
  const t = useT();
  const [namespace] = useNamespace();
  return (
    <div className="page">
      <PageHead title={t.letters.title} />
      <LetterGroups namespace={namespace} />
    </div>
  );
}

interface Group {
  key: string;
  namespace: string;
  job: string | null;
  reason: string;
  cause: string;
  letters: Letter[];
}

/** Numbers and ids differ from run to run; what is left says what went wrong. */
export function causeOf(error: string | null): string {
  const [first = ''] = (error ?? '').split('\n');
  return first.replace(/\b[0-9a-f]{8,}\b/gi, '…').replace(/\d+/g, '#').trim();
}

function grouped(letters: Letter[]): Group[] {
  const groups = new Map<string, Group>();
  for (const letter of letters) {
    const cause = causeOf(letter.error);
    const key = `${letter.job_id} ${letter.reason} ${cause}`;
    const group = groups.get(key) ?? { key, namespace: letter.namespace, job: letter.job, reason: letter.reason ?? '', cause: (letter.error ?? '').split('\n')[0] ?? '', letters: [] };
    group.letters.push(letter);
    groups.set(key, group);
  }
  return [...groups.values()].sort((a, b) => b.letters.length - a.letters.length);
}

/** The empty text stands for every namespace that the token may see. */
export function LetterGroups({ namespace, job }: { namespace: string; job?: string }) {
  const t = useT();
  const letters = useQuery({
    queryKey: ['letters', namespace, job],
    queryFn: () => (job ? call('listLetters', { path: { namespace }, query: { job, limit: MOST } }) : call('listAllLetters', { query: { namespace: namespace || undefined, limit: MOST } })),
    refetchInterval: 10_000,
  });
  const groups = useMemo(() => grouped(letters.data?.items ?? []), [letters.data]);
  if (letters.isPending) return <Loading />;
  if (!letters.data) return <Fault error={letters.error} retry={() => void letters.refetch()} />;
  if (groups.length === 0) {
    return (
      <Empty title={t.letters.emptyTitle}>
        <p>{t.letters.emptyText}</p>
      </Empty>
    );
  }
  return (
    <div className="stack">
      {letters.data.next && <p className="quiet">{t.letters.more}</p>}
      {groups.map((group) => (
        <LetterGroup key={group.key} group={group} />
      ))}
    </div>
  );
}

function LetterGroup({ group }: { group: Group }) {
  const t = useT();
  const may = useMay();
  const client = useQueryClient();
  const { say, complain } = useToasts();
  const [open, setOpen] = useState(false);
  const [asks, setAsks] = useState(false);
  const { letters, namespace } = group;
  const settle = async (operation: 'requeueLetters' | 'discardLetters') => {
    try {
      const answer = await call(operation, { path: { namespace }, body: { runs: letters.map((letter) => letter.run) } });
      say(operation === 'requeueLetters' ? t.letters.requeued(answer.changed) : t.letters.discarded(answer.changed));
    } catch (error) {
      complain(error);
    }
    await client.invalidateQueries({ queryKey: ['letters'] });
  };
  return (
    <Panel
      title={
        <span className="row">
          <span className="tag" data-tone="failed">
            {t.letters.group(letters.length)}
          </span>
          {namespace !== 'default' && <span className="quiet">{namespace} /</span>}
          {group.job ? <Link href={`/jobs/${namespace}/${group.job}`}>{group.job}</Link> : t.run.jobGone}
          <span className="quiet">{t.reason[group.reason] ?? group.reason}</span>
        </span>
      }
      aside={
        <>
          {may('RequeueLetters') && group.job && <Button onClick={() => void settle('requeueLetters')}>{t.letters.requeue}</Button>}
          {may('DiscardLetters') && (
            <Button kind="danger" onClick={() => setAsks(true)}>
              {t.letters.discard}
            </Button>
          )}
        </>
      }
    >
      <div className="stack-tight">
        <code>{group.cause || t.letters.noError}</code>
        <span className="quiet">
          {t.letters.newest} <When at={letters[0]?.died} /> · {t.letters.oldest} <When at={letters.at(-1)?.died} />
        </span>
        {open ? (
          <ul className="chips">
            {letters.slice(0, SHOWN).map((letter) => (
              <li key={letter.run}>
                <Link href={`/runs/${letter.run}`} className="tag">
                  {letter.run}
                </Link>
              </li>
            ))}
          </ul>
        ) : (
          <div>
            <Button size="small" kind="plain" onClick={() => setOpen(true)}>
              {t.letters.show}
            </Button>
          </div>
        )}
      </div>
      {asks && <Confirm danger title={t.letters.discard} text={t.letters.discardText(letters.length)} act={() => settle('discardLetters')} onClose={() => setAsks(false)} />}
    </Panel>
  );
}
