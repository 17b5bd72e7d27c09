// Who is told of failures, and what became of the messages.
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../api/call';
import { useMay } from '../api/session';
import { useT } from '../i18n';
import { useNamespace } from '../namespace';
import { useSending } from '../ui/form';
import { Button, Empty, Fault, Field, Loading, PageHead, Panel } from '../ui/parts';
import { When } from '../ui/time';
import { NotifyRules } from './notify_rules';

export default function NotificationsPage() {
  const t = useT();
  const may = useMay();
  const [chosen] = useNamespace();
  const namespace = chosen || 'default';
  const sent = useQuery({ queryKey: ['notifications', namespace], queryFn: () => call('listNotifications', { query: { namespace, limit: 100 } }), refetchInterval: 5000 });
  const tones = { delivered: 'completed', pending: 'running', failed: 'failed', dropped: 'cancelled' } as const;
  return (
    <div className="page">
      <PageHead title={t.notifications.title} note={namespace} />
      {may('PutSetting') && (
        <div className="columns-wide">
          <NotifyRules key={namespace} namespace={namespace} />
          <Test namespace={namespace} />
        </div>
      )}
      <Panel title={t.notifications.sent} flush={Boolean(sent.data?.items.length)}>
        {sent.isPending ? (
          <Loading />
        ) : !sent.data ? (
          <Fault error={sent.error} />
        ) : sent.data.items.length === 0 ? (
          <Empty title={t.notifications.emptyTitle}>
            <p>{t.notifications.emptyText}</p>
          </Empty>
        ) : (
          <table className="table">
            <thead>
              <tr>
                <th>{t.notifications.state}</th>
                <th>{t.notifications.type}</th>
                <th>{t.notifications.to}</th>
                <th>{t.notifications.when}</th>
              </tr>
            </thead>
            <tbody>
              {sent.data.items.map((message) => (
                <tr key={message.id}>
                  <td className="fit">
                    <span className="tag" data-tone={tones[message.state]}>
                      {t.notifications.states[message.state]}
                    </span>
                  </td>
                  <td>
                    {message.summary}
                    {message.error && <div className="quiet">{message.error}</div>}
                  </td>
                  <td>
                    {message.channel} <span className="quiet">{message.target}</span>
                  </td>
                  <td className="fit">
                    <When at={message.updated} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Panel>
    </div>
  );
}

function Test({ namespace }: { namespace: string }) {
  const t = useT();
  const [to, setTo] = useState('');
  const [answer, setAnswer] = useState<{ delivered: boolean; error: string | null } | null>(null);
  const { busy, fault, rest, send } = useSending(['webhook', 'email']);
  const test = () => {
    setAnswer(null);
    return send(async () => {
      const target = to.includes('@') && !to.includes('://') ? { email: to } : { webhook: to };
      const tested = await call('testNotification', { body: { namespace, ...target } });
      setAnswer(tested.items[0] ?? null);
    });
  };
  return (
    <Panel title={t.notifications.test}>
      <div className="stack">
        <Field label={t.notifications.testTo} fault={fault('webhook') ?? fault('email')}>
          {(id) => <input id={id} className="input" value={to} onChange={(event) => setTo(event.target.value)} />}
        </Field>
        <div>
          <Button disabled={!to.trim() || busy} onClick={() => void test()}>
            {t.notifications.test}
          </Button>
        </div>
        {answer && (
          <div className="notice" data-tone={answer.delivered ? 'completed' : 'failed'} role="status">
            <strong>{answer.delivered ? t.notifications.tested : t.notifications.testFailed}</strong>
            {answer.error && <span>{answer.error}</span>}
          </div>
        )}
        {rest !== null && <Fault error={rest} />}
      </div>
    </Panel>
  );
}
