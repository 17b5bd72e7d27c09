// The door: a token is shown once, the server answers with a cookie that scripts cannot read.
import { useState, type FormEvent } from 'react';
import { Refusal, send } from '../api/call';
import type { Session } from '../api/schema';
import mark from '../design/mark.svg';
import { useWords } from '../i18n';
import type { Dictionary } from '../i18n/en';
import { faultWords } from '../ui/fault';
import { Button, Field } from '../ui/parts';

function wordsOf(t: Dictionary, error: unknown): string {
  if (error instanceof Refusal && error.status === 401) return t.signIn.wrong;
  const { title, text } = faultWords(t, error);
  return `${title}. ${text}`;
}

export function SignIn({ expired, onDone }: { expired: boolean; onDone: (session: Session) => void }) {
  const { t, language, speak } = useWords();
  const [token, setToken] = useState('');
  const [fault, setFault] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      const response = await send('signIn', {}, { Authorization: `Bearer ${token.trim()}` });
      onDone((await response.json()) as Session);
    } catch (error) {
      setFault(wordsOf(t, error));
      setBusy(false);
    }
  };
  return (
    <main className="centre">
      <form className="sign-in" onSubmit={(event) => void submit(event)}>
        <img src={mark} alt="" />
        <h1>Drumtower</h1>
        {expired && (
          <div className="notice" data-tone="warning" role="status">
            {t.signIn.expired}
          </div>
        )}
        <Field label={t.signIn.token} fault={fault}>
          {(id) => (
            <input
              id={id}
              className="input"
              type="password"
              autoComplete="current-password"
              autoFocus
              placeholder="drt_…"
              value={token}
              aria-invalid={fault !== null}
              onChange={(event) => setToken(event.target.value)}
            />
          )}
        </Field>
        <Button type="submit" kind="main" disabled={busy || token.trim() === ''}>
          {t.signIn.act}
        </Button>
        <div className="stack-tight quiet">
          <span>{t.signIn.hint}</span>
          <pre className="command">drumtower token create ann --role operator</pre>
          <span>{t.signIn.first}</span>
        </div>
        <div>
          <Button kind="plain" size="small" onClick={() => speak(language === 'zh' ? 'en' : 'zh')}>
            {t.brand.language}
          </Button>
        </div>
      </form>
    </main>
  );
}
