// The rules by which a namespace tells people: in words, and as the JSON that they are written in.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../api/call';
import type { Notify, NotifyRule } from '../api/schema';
import { useT } from '../i18n';
import { useSending } from '../ui/form';
import { JsonField, parsed } from '../ui/json';
import { Button, Fault, Panel } from '../ui/parts';

const START: Notify = { rules: [{ on: ['failure', 'recovery'], webhook: 'https://hooks.example.com/drumtower' }] };

export function NotifyRules({ namespace }: { namespace: string }) {
  const t = useT();
  const { busy, fault, rest, send } = useSending(['value']);
  const client = useQueryClient();
  const key = ['setting', namespace];
  const path = { namespace, name: 'notify' as const };
  const setting = useQuery({
    queryKey: key,
    queryFn: async () => (await call('listSettings', { path: { namespace } })).items.find((one) => one.name === 'notify') ?? null,
  });
  // What is typed stands until it is saved, whatever is read meanwhile.
  const [typed, setTyped] = useState<string | null>(null);
  const kept = setting.isSuccess ? JSON.stringify(setting.data?.value ?? START, null, 2) : '';
  const text = typed ?? kept;
  const { value, wrong } = parsed(text);
  const save = () =>
    send(async () => {
      const saved = await call('putSetting', { path, body: value as never, match: setting.data ? `"s${setting.data.revision}"` : undefined, absent: !setting.data });
      client.setQueryData(key, saved);
      setTyped((since) => (since === typed ? null : since));
    }, t.notifications.saved);
  return (
    <Panel title={t.notifications.rules}>
      <div className="stack">
        {!wrong && <InWords rules={value} isDraft={setting.isSuccess && setting.data === null} />}
        <JsonField label={t.notifications.rulesField} hint={t.notifications.rulesHint} text={text} onChange={setTyped} rows={Math.min(24, Math.max(8, text.split('\n').length + 1))} fault={fault('value')} />
        {rest !== null && <Fault error={rest} />}
        {setting.isError && <Fault error={setting.error} />}
        <div>
          <Button kind="main" disabled={wrong || value === undefined || busy} onClick={() => void save()}>
            {t.notifications.save}
          </Button>
        </div>
      </div>
    </Panel>
  );
}

/** What is typed may be anything; of what looks like rules each is a line. */
function rulesOf(value: unknown): NotifyRule[] {
  const rules = (value as Notify | null | undefined)?.rules;
  return Array.isArray(rules) ? rules.filter((rule) => Array.isArray(rule?.on)) : [];
}

function InWords({ rules: value, isDraft }: { rules: unknown; isDraft: boolean }) {
  const t = useT();
  const rules = rulesOf(value);
  if (isDraft) return <p className="quiet">{t.notifications.example}</p>;
  if (rules.length === 0) return <p className="quiet">{t.notifications.nobody}</p>;
  return (
    <ul className="rules">
      {rules.map((rule, index) => (
        <li key={index}>
          <span className="chips">
            {rule.on.map((on) => (
              <span key={on} className="tag" data-tone={{ failure: 'failed', recovery: 'completed', late: 'warning' }[on]}>
                {t.notifications.on[on] ?? on}
              </span>
            ))}
          </span>
          <span className="cut">{[rule.webhook, ...(rule.email ?? [])].filter(Boolean).join(', ')}</span>
          {rule.group_for && <span className="quiet nowrap">{t.notifications.gathered(rule.group_for)}</span>}
        </li>
      ))}
    </ul>
  );
}
