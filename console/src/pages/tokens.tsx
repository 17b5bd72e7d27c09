// Who may call: tokens are made, shown once, and revoked.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../api/call';
import type { Role, Token } from '../api/schema';
import { useSession } from '../api/session';
import { useT } from '../i18n';
import { useSending } from '../ui/form';
import { Button, Command, Confirm, Fault, Field, Loading, PageHead, Panel, Sheet } from '../ui/parts';
import { When } from '../ui/time';

const ROLES: Role[] = ['viewer', 'operator', 'admin', 'worker'];

export default function TokensPage() {
  const t = useT();
  const client = useQueryClient();
  const [makes, setMakes] = useState(false);
  const [revokes, setRevokes] = useState<Token | null>(null);
  const tokens = useQuery({ queryKey: ['tokens'], queryFn: () => call('listTokens', {}) });
  const again = () => void client.invalidateQueries({ queryKey: ['tokens'] });
  return (
    <div className="page">
      <PageHead title={t.tokens.title}>
        <Button kind="main" onClick={() => setMakes(true)}>
          {t.tokens.new}
        </Button>
      </PageHead>
      {tokens.isPending ? (
        <Loading />
      ) : !tokens.data ? (
        <Fault error={tokens.error} retry={() => void tokens.refetch()} />
      ) : (
        <Panel flush>
          <table className="table">
            <thead>
              <tr>
                <th>{t.tokens.name}</th>
                <th>{t.tokens.role}</th>
                <th>{t.tokens.namespace}</th>
                <th>{t.tokens.created}</th>
                <th />
              </tr>
            </thead>
            <tbody>
              {tokens.data.items.map((token) => (
                <tr key={token.id}>
                  <td className="name">{token.name}</td>
                  <td>
                    {t.tokens.roles[token.role]} <span className="quiet">{t.tokens.roleText[token.role]}</span>
                  </td>
                  <td>{token.namespace ?? <span className="quiet">{t.tokens.allNamespaces}</span>}</td>
                  <td>
                    <When at={token.created} /> <span className="quiet">{t.job.by(token.actor)}</span>
                  </td>
                  <td className="fit">
                    <Button size="small" kind="danger" onClick={() => setRevokes(token)}>
                      {t.tokens.revoke}
                    </Button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Panel>
      )}
      {makes && <NewToken onClose={() => setMakes(false)} onMade={again} />}
      {revokes && <Confirm danger title={t.tokens.revoke} text={`${revokes.name}. ${t.tokens.revokeText}`} act={() => call('revokeToken', { path: { id: revokes.id } })} onDone={again} onClose={() => setRevokes(null)} />}
    </div>
  );
}

function NewToken({ onClose, onMade }: { onClose: () => void; onMade: () => void }) {
  const t = useT();
  const { namespace: bound } = useSession();
  const [name, setName] = useState('');
  const [role, setRole] = useState<Role>('operator');
  const [namespace, setNamespace] = useState(bound ?? '');
  const [made, setMade] = useState<Token | null>(null);
  const { busy, fault, rest, send } = useSending(['name', 'role', 'namespace'], { token_name_taken: 'name' });
  const make = () =>
    send(async () => {
      setMade(await call('createToken', { body: { name, role, namespace: namespace || null } }));
      onMade();
    });
  if (made) {
    return (
      <Sheet title={t.tokens.secretTitle} onClose={onClose}>
        <p>{t.tokens.secretText}</p>
        <Command text={made.secret ?? ''} />
        <Button onClick={onClose}>{t.close}</Button>
      </Sheet>
    );
  }
  return (
    <Sheet title={t.tokens.new} onClose={onClose}>
      <Field label={t.tokens.name} hint={t.editor.nameHint} fault={fault('name')}>
        {(id) => <input id={id} className="input" value={name} onChange={(event) => setName(event.target.value)} />}
      </Field>
      <Field label={t.tokens.role} hint={t.tokens.roleText[role]}>
        {(id) => (
          <select id={id} className="select" value={role} onChange={(event) => setRole(event.target.value as Role)}>
            {ROLES.map((one) => (
              <option key={one} value={one}>
                {t.tokens.roles[one]}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field label={t.tokens.namespace} fault={fault('namespace')}>
        {(id) => <input id={id} className="input" value={namespace} disabled={bound !== null} placeholder={t.tokens.allNamespaces} onChange={(event) => setNamespace(event.target.value)} />}
      </Field>
      {rest !== null && <Fault error={rest} />}
      <div className="row">
        <Button kind="main" disabled={!name || busy} onClick={() => void make()}>
          {t.tokens.new}
        </Button>
        <Button kind="plain" onClick={onClose}>
          {t.cancel}
        </Button>
      </div>
    </Sheet>
  );
}
