// What stands around every page: where one is, whether it is live, and the keys.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState, type ReactNode } from 'react';
import { useLocation } from 'wouter';
import { call } from './api/call';
import { useLive } from './api/live';
import type { Operation } from './api/schema';
import { beSignedIn, useMay, useSession } from './api/session';
import mark from './design/mark.svg';
import { useWords } from './i18n';
import type { Dictionary } from './i18n/en';
import { useKeys } from './keys';
import { useNamespace } from './namespace';
import { Palette } from './palette';
import { chooseTheme, useTheme } from './theme';
import { Mark, type Icon } from './ui/icons';
import { Button } from './ui/parts';
import { useToasts } from './ui/toast';
import { Link } from './ui/link';

interface Place {
  key: Icon & keyof Dictionary['nav'];
  to: string;
  needs: Operation;
}

const GROUPS: { title: 'watch' | 'fleet' | 'rules' | 'admin'; places: Place[] }[] = [
  {
    title: 'watch',
    places: [
      { key: 'overview', to: '/', needs: 'ShowOverview' },
      { key: 'jobs', to: '/jobs', needs: 'ListJobs' },
      { key: 'runs', to: '/runs', needs: 'ListRuns' },
      { key: 'letters', to: '/letters', needs: 'ListLetters' },
      { key: 'backfills', to: '/backfills', needs: 'ListBackfills' },
    ],
  },
  {
    title: 'fleet',
    places: [
      { key: 'workers', to: '/workers', needs: 'ListWorkers' },
      { key: 'queues', to: '/queues', needs: 'ListQueues' },
      { key: 'cluster', to: '/cluster', needs: 'ShowCluster' },
    ],
  },
  {
    title: 'rules',
    places: [
      { key: 'calendars', to: '/calendars', needs: 'ListCalendars' },
      { key: 'locks', to: '/locks', needs: 'ListLocks' },
    ],
  },
  {
    title: 'admin',
    places: [
      { key: 'tokens', to: '/tokens', needs: 'ListTokens' },
      { key: 'notifications', to: '/notifications', needs: 'ListNotifications' },
      { key: 'audit', to: '/audit', needs: 'ListAudit' },
    ],
  },
];

export const PLACES: Place[] = GROUPS.flatMap((group) => group.places);

function isHere(to: string, here: string): boolean {
  return to === '/' ? here === '/' : here === to || here.startsWith(`${to}/`);
}

export function Shell({ children }: { children: ReactNode }) {
  const { t } = useWords();
  const [here, go] = useLocation();
  const [menu, setMenu] = useState(false);
  const [palette, setPalette] = useState(false);
  useKeys({ palette: () => setPalette(true), go });
  useEffect(() => setMenu(false), [here]);
  return (
    <div className="shell" data-menu={menu ? 'open' : 'closed'}>
      <a className="only-heard" href="#content">
        {t.brand.skip}
      </a>
      <Side here={here} />
      {menu && <button type="button" className="shade" aria-label={t.close} onClick={() => setMenu(false)} />}
      <div className="main">
        <Top onMenu={() => setMenu(true)} onSearch={() => setPalette(true)} />
        <Lost />
        <main id="content" className="main" tabIndex={-1}>
          {children}
        </main>
      </div>
      {palette && <Palette onClose={() => setPalette(false)} />}
    </div>
  );
}

function Side({ here }: { here: string }) {
  const { t } = useWords();
  const may = useMay();
  const session = useSession();
  return (
    <aside className="side">
      <Link href="/" className="brand">
        <img src={mark} alt="" />
        Drumtower
      </Link>
      {GROUPS.map((group) => {
        const places = group.places.filter((place) => may(place.needs));
        if (places.length === 0) return null;
        return (
          <nav key={group.title} className="nav" aria-label={t.nav[group.title]}>
            <span className="nav-title">{t.nav[group.title]}</span>
            {places.map((place) => (
              <Link key={place.key} href={place.to} aria-current={isHere(place.to, here) ? 'page' : undefined}>
                <Mark name={place.key} />
                {t.nav[place.key]}
              </Link>
            ))}
          </nav>
        );
      })}
      <div className="side-foot">
        <span className="narrow-only">
          <Choices />
        </span>
        <span className="cut" title={session.name}>
          {session.name} · {t.tokens.roles[session.role]}
        </span>
        <span>
          {session.server} {session.version}
        </span>
      </div>
    </aside>
  );
}

function Top({ onMenu, onSearch }: { onMenu: () => void; onSearch: () => void }) {
  const { t } = useWords();
  const { connection } = useLive();
  return (
    <header className="top">
      <span className="burger">
        <Button kind="plain" aria-label={t.brand.menu} onClick={onMenu}>
          <Mark name="menu" />
        </Button>
      </span>
      <NamespaceChoice />
      <button type="button" className="search input cut" onClick={onSearch}>
        <span className="quiet">{t.search.place}</span>
        <kbd className="wide-only">/</kbd>
      </button>
      <span className="grow" />
      <span className="live" data-state={connection} role="status">
        <span className="wide-only">{t.live[connection]}</span>
      </span>
      <span className="wide-only">
        <Choices />
      </span>
    </header>
  );
}

/** What a person chooses for itself, as words and as deeds. */
export function useChoices(): { key: 'language' | 'theme' | 'leave'; label: string; act: () => void }[] {
  const { t, language, speak } = useWords();
  const theme = useTheme();
  const queries = useQueryClient();
  const leave = async () => {
    await call('signOut', {}).catch(() => undefined);
    beSignedIn(queries, null);
  };
  return [
    { key: 'language', label: t.brand.language, act: () => speak(language === 'zh' ? 'en' : 'zh') },
    { key: 'theme', label: t.brand.theme, act: () => chooseTheme(theme === 'dark' ? 'light' : 'dark') },
    { key: 'leave', label: t.brand.signOut, act: () => void leave() },
  ];
}

/** On a phone they stand in the menu. */
function Choices() {
  const theme = useTheme();
  return useChoices().map(({ key, label, act }) =>
    key === 'language' ? (
      <Button key={key} kind="plain" onClick={act}>
        {label}
      </Button>
    ) : (
      <Button key={key} kind="plain" aria-label={label} title={label} onClick={act}>
        <Mark name={key === 'leave' ? 'leave' : theme === 'dark' ? 'sun' : 'moon'} />
      </Button>
    ),
  );
}

/** Namespaces are known from the jobs in them. */
function NamespaceChoice() {
  const { t } = useWords();
  const { namespace: bound } = useSession();
  const [namespace, choose] = useNamespace();
  const jobs = useQuery({ queryKey: ['jobs', 'namespaces'], queryFn: () => call('listJobs', { query: { limit: 1000 } }), enabled: !bound, staleTime: 60_000 });
  if (bound) return <span className="tag">{bound}</span>;
  const known = new Set((jobs.data?.items ?? []).map((job) => job.namespace));
  known.add('default');
  if (namespace) known.add(namespace);
  return (
    <select className="select" aria-label={t.namespace.label} value={namespace} onChange={(event) => choose(event.target.value)}>
      <option value="">{t.namespace.all}</option>
      {[...known].sort().map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
}

/** Says that the server is away, and that it is back. */
function Lost() {
  const { t } = useWords();
  const { connection } = useLive();
  const { say } = useToasts();
  const was = useRef(connection);
  useEffect(() => {
    if (was.current === 'lost' && connection === 'live') say(t.live.back, t.live.backText);
    was.current = connection;
  }, [connection, say, t]);
  if (connection !== 'lost') return null;
  return (
    <div className="notice" data-tone="failed" role="alert">
      <span>
        <strong>{t.live.lost}</strong> {t.live.banner}
      </span>
    </div>
  );
}
