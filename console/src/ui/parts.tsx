// The few parts that pages are made of.
import { useEffect, useId, useRef, useState, type ButtonHTMLAttributes, type ReactNode } from 'react';
import { useT } from '../i18n';
import { faultWords } from './fault';
import { Link } from './link';

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & {
  kind?: 'main' | 'danger' | 'plain';
  size?: 'small';
};

export function Button({ kind, size, ...rest }: ButtonProps) {
  return <button type="button" className="button" data-kind={kind} data-size={size} {...rest} />;
}

export function LinkButton({ to, kind, children }: { to: string; kind?: 'main' | 'plain'; children: ReactNode }) {
  return (
    <Link href={to} className="button" data-kind={kind}>
      {children}
    </Link>
  );
}

export function PageHead({ title, crumbs, children, note }: { title: ReactNode; crumbs?: ReactNode; note?: ReactNode; children?: ReactNode }) {
  return (
    <header className="page-head">
      <div>
        {crumbs && <nav className="crumbs">{crumbs}</nav>}
        <h1>{title}</h1>
        {note && <div className="quiet">{note}</div>}
      </div>
      {children && <div className="row">{children}</div>}
    </header>
  );
}

export function Panel({ title, aside, children, flush }: { title?: ReactNode; aside?: ReactNode; children: ReactNode; flush?: boolean }) {
  return (
    <section className="panel">
      {(title || aside) && (
        <div className="panel-head">
          <h2>{title}</h2>
          {aside && <div className="row">{aside}</div>}
        </div>
      )}
      {flush ? <div className="scroll-x">{children}</div> : <div className="panel-body">{children}</div>}
    </section>
  );
}

/** One number that matters, in a row of them. */
export function Figure({ title, value, note, tone }: { title: string; value: string; note: string; tone?: string }) {
  return (
    <div className="figure" data-tone={tone}>
      <dt>{title}</dt>
      <dd style={tone ? { color: 'var(--tone)' } : undefined}>{value}</dd>
      {note && (
        <dd className="only-small">
          <small>{note}</small>
        </dd>
      )}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Loading() {
  return (
    <p className="loading" role="status">
      {useT().loading}
    </p>
  );
}

/** What went wrong, and what to do. */
export function Fault({ error, retry }: { error: unknown; retry?: () => void }) {
  const t = useT();
  const { title, text } = faultWords(t, error);
  return (
    <div className="notice" data-tone="failed" role="alert">
      <strong>{title}</strong>
      {text && <span>{text}</span>}
      {retry && (
        <div>
          <Button size="small" onClick={retry}>
            {t.again}
          </Button>
        </div>
      )}
    </div>
  );
}

export function Field({ label, hint, fault, children }: { label: string; hint?: ReactNode; fault?: string | null; children: (id: string) => ReactNode }) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children(id)}
      {fault ? (
        <span className="fault" role="alert">
          {fault}
        </span>
      ) : (
        hint && <span className="hint">{hint}</span>
      )}
    </div>
  );
}

/** A dialog of the platform: it keeps the focus, and Escape leaves it. */
export function Sheet({ title, onClose, children, className }: { title?: string; onClose: () => void; children: ReactNode; className?: string }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current;
    if (element && !element.open) element.showModal();
  }, []);
  return (
    <dialog
      ref={dialog}
      className={`sheet ${className ?? ''}`}
      aria-label={title}
      onClose={onClose}
      onClick={(event) => event.target === dialog.current && onClose()}
    >
      {className ? (
        children
      ) : (
        <div className="stack">
          {title && <h2>{title}</h2>}
          {children}
        </div>
      )}
    </dialog>
  );
}

/** Asks before something that cannot be taken back. */
export function Confirm({ title, text, act, onDone, onClose, danger }: { title: string; text: ReactNode; act: () => Promise<unknown>; onDone?: () => void; onClose: () => void; danger?: boolean }) {
  const t = useT();
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const go = async () => {
    setBusy(true);
    try {
      await act();
      onClose();
      onDone?.();
    } catch (caught) {
      setError(caught);
      setBusy(false);
    }
  };
  return (
    <Sheet title={title} onClose={onClose}>
      <div>{text}</div>
      {error !== null && <Fault error={error} />}
      <div className="row">
        <Button kind={danger ? 'danger' : 'main'} disabled={busy} onClick={() => void go()}>
          {title}
        </Button>
        <Button kind="plain" onClick={onClose}>
          {t.cancel}
        </Button>
      </div>
    </Sheet>
  );
}

/** A page that came without TLS from another machine has no clipboard of its own, but may copy what is selected. */
async function toClipboard(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement('textarea');
  field.value = text;
  // Inside of a dialog, which keeps the focus.
  (document.querySelector('dialog[open]') ?? document.body).append(field);
  field.select();
  document.execCommand('copy');
  field.remove();
}

export function Copy({ text }: { text: string }) {
  const t = useT();
  const [done, setDone] = useState(false);
  const copy = async () => {
    await toClipboard(text);
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return (
    <Button size="small" kind="plain" onClick={() => void copy()}>
      {done ? t.copied : t.copy}
    </Button>
  );
}

export function Command({ text }: { text: string }) {
  return (
    <div className="command">
      <code>{text}</code>
      <Copy text={text} />
    </div>
  );
}

export function Tabs({ tabs, current }: { tabs: { to: string; key: string; label: string }[]; current: string }) {
  return (
    <nav className="tabs">
      {tabs.map((tab) => (
        <Link key={tab.key} href={tab.to} aria-current={tab.key === current ? 'page' : undefined}>
          {tab.label}
        </Link>
      ))}
    </nav>
  );
}

export function Labels({ labels }: { labels: Record<string, string> | undefined }) {
  const pairs = Object.entries(labels ?? {});
  if (pairs.length === 0) return null;
  return (
    <span className="chips">
      {pairs.map(([key, value]) => (
        <span key={key} className="tag cut" title={`${key}=${value}`}>
          {key}={value}
        </span>
      ))}
    </span>
  );
}

/** The server's words: what stands between backticks is code. */
export function Quoted({ text }: { text: string }) {
  return text.split('`').map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part));
}
