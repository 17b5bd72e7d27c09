// The command palette: a run by its id, pages, jobs by part of their name, what one does for oneself.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { useLocation } from 'wouter';
import { call } from './api/call';
import { useMay } from './api/session';
import { useT } from './i18n';
import { GOES } from './keys';
import { PLACES, useChoices } from './layout';
import { beginsWord } from './match';
import { useNamespace } from './namespace';
import { Sheet } from './ui/parts';
import { useSettled } from './ui/settled';

interface Choice {
  key: string;
  label: string;
  kind: string;
  isAction?: boolean;
  take: () => void;
}

const MOST = 40;
const RUN = /^run_[0-9a-z]{13}$/;

export function Palette({ onClose }: { onClose: () => void }) {
  const t = useT();
  const may = useMay();
  const [, go] = useLocation();
  const [namespace] = useNamespace();
  const [text, setText] = useState('');
  const [at, setAt] = useState<string | null>(null);
  const wanted = text.trim().toLowerCase();
  const settled = useSettled(wanted);
  const jobs = useQuery({
    queryKey: ['jobs', 'palette', namespace, settled],
    queryFn: () => call('listJobs', { query: { limit: MOST, namespace: namespace || undefined, search: settled.slice(0, 128) || undefined } }),
    staleTime: 30_000,
    placeholderData: keepPreviousData,
  });
  const isLooking = wanted !== settled || jobs.isFetching;
  const key = (to: string) => Object.entries(GOES).find(([, place]) => place === to)?.[0];
  const pages = PLACES.filter((place) => may(place.needs)).map((place) => ({
    key: place.to,
    label: t.nav[place.key],
    kind: key(place.to) ? `g ${key(place.to)}` : t.search.page,
    take: () => go(place.to),
  }));
  const actions = [...(may('PutJob') ? [{ key: 'new', label: t.jobs.new, act: () => go('/jobs/new') }] : []), ...useChoices()].map(({ key: name, label, act }) => ({ key: `do ${name}`, label, kind: t.search.action, isAction: true, take: act }));
  const named = (jobs.data?.items ?? []).map((job) => ({ key: job.id, label: job.name, kind: job.namespace, take: () => go(`/jobs/${job.namespace}/${job.name}`) }));
  const run: Choice[] = RUN.test(wanted) ? [{ key: wanted, label: wanted, kind: t.search.run, take: () => go(`/runs/${wanted}`) }] : [];
  const fits = (choice: Choice) => choice.label.toLowerCase().includes(wanted);
  const first = [...run, ...pages.filter(fits)];
  // After all that one only looks at; signing out is the last of them.
  const last = actions.filter((choice) => beginsWord(choice.label, wanted));
  const choices: Choice[] = [...first, ...named.filter(fits).slice(0, MOST - first.length - last.length), ...last];
  const chosen = Math.max(
    choices.findIndex((choice) => choice.key === at),
    0,
  );
  const pick = (index: number) => setAt(choices[index]?.key ?? null);
  const take = (choice: Choice) => {
    onClose();
    choice.take();
  };
  // Whoever types fast presses Enter before anything is found.
  const [isAsked, ask] = useState(false);
  const wished = choices[chosen];
  useEffect(() => {
    // What they mean may be a job that is still looked for: nothing is done in its place.
    if (isAsked && wished && !wished.isAction) take(wished);
    else if (isAsked && !isLooking) ask(false);
  });
  return (
    <Sheet className="palette" title={t.search.hint} onClose={onClose}>
      <input
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={wished ? `palette-${chosen}` : undefined}
        aria-label={t.search.hint}
        placeholder={t.search.hint}
        autoFocus
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setAt(null);
          ask(false);
        }}
        onKeyDown={(event) => {
          if (event.key === 'ArrowDown') pick(Math.min(chosen + 1, choices.length - 1));
          else if (event.key === 'ArrowUp') pick(Math.max(chosen - 1, 0));
          else if (event.key === 'Enter' && wished?.isAction && !isLooking) take(wished);
          else if (event.key === 'Enter') ask(true);
          else return;
          event.preventDefault();
        }}
      />
      <ul id="palette-list" role="listbox" aria-label={t.search.hint} aria-busy={isLooking}>
        {choices.map((choice, index) => (
          <li key={choice.key} id={`palette-${index}`} role="option" aria-selected={index === chosen} onClick={() => take(choice)} onPointerMove={() => setAt(choice.key)}>
            <span className="cut">{choice.label}</span>
            <span className="quiet nowrap">{choice.kind}</span>
          </li>
        ))}
      </ul>
      {choices.length === 0 && <p className="loading">{t.search.nothing}</p>}
    </Sheet>
  );
}
