// Named sets of days that schedules share.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../api/call';
import type { CalendarSpecByPath, CalendarSummary, Weekday } from '../api/schema';
import { useMay } from '../api/session';
import { useT, useWords } from '../i18n';
import { useNamespace } from '../namespace';
import { useSending } from '../ui/form';
import { Button, Confirm, Empty, Fault, Field, Loading, PageHead, Panel, Sheet } from '../ui/parts';
import { When } from '../ui/time';

const WEEK: Weekday[] = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];

export default function CalendarsPage() {
  const t = useT();
  const may = useMay();
  const [namespace] = useNamespace();
  const [edits, setEdits] = useState<CalendarSummary | 'new' | null>(null);
  const calendars = useQuery({ queryKey: ['calendars', namespace], queryFn: () => call('listCalendars', { query: { namespace: namespace || undefined, limit: 1000 } }) });
  return (
    <div className="page">
      <PageHead title={t.calendars.title}>
        {may('PutCalendar') && (
          <Button kind="main" onClick={() => setEdits('new')}>
            {t.calendars.new}
          </Button>
        )}
      </PageHead>
      {calendars.isPending ? (
        <Loading />
      ) : !calendars.data ? (
        <Fault error={calendars.error} retry={() => void calendars.refetch()} />
      ) : calendars.data.items.length === 0 ? (
        <Empty title={t.calendars.emptyTitle}>
          <p>{t.calendars.emptyText}</p>
        </Empty>
      ) : (
        <div className="columns">
          {calendars.data.items.map((calendar) => (
            <CalendarCard key={`${calendar.namespace}/${calendar.name}`} calendar={calendar} onEdit={() => setEdits(calendar)} />
          ))}
        </div>
      )}
      {edits && <CalendarSheet calendar={edits === 'new' ? null : edits} onClose={() => setEdits(null)} />}
    </div>
  );
}

function useDays(): (day: Weekday) => string {
  const { language } = useWords();
  // A Monday.
  return (day) => new Intl.DateTimeFormat(language === 'zh' ? 'zh-CN' : 'en-GB', { weekday: 'short' }).format(new Date(2024, 0, 1 + WEEK.indexOf(day)));
}

function CalendarCard({ calendar, onEdit }: { calendar: CalendarSummary; onEdit: () => void }) {
  const t = useT();
  const may = useMay();
  const client = useQueryClient();
  const dayName = useDays();
  const [asks, setAsks] = useState(false);
  const path = { namespace: calendar.namespace, name: calendar.name };
  const whole = useQuery({ queryKey: ['calendar', calendar.namespace, calendar.name, calendar.version], queryFn: () => call('showCalendar', { path }) });
  const { spec } = calendar;
  return (
    <Panel
      title={<span className="name">{calendar.name}</span>}
      aside={
        <>
          {may('PutCalendar') && (
            <Button size="small" onClick={onEdit}>
              {t.calendars.edit}
            </Button>
          )}
          {may('DeleteCalendar') && (
            <Button size="small" kind="danger" onClick={() => setAsks(true)}>
              {t.calendars.remove}
            </Button>
          )}
        </>
      }
    >
      <dl className="facts">
        {spec.weekly && spec.weekly.length > 0 && (
          <>
            <dt>{t.calendars.weekly}</dt>
            <dd>{spec.weekly.map(dayName).join(' ')}</dd>
          </>
        )}
        {spec.include && spec.include.length > 0 && (
          <>
            <dt>{t.calendars.include}</dt>
            <dd className="mono">{spec.include.join(', ')}</dd>
          </>
        )}
        {spec.exclude && spec.exclude.length > 0 && (
          <>
            <dt>{t.calendars.exclude}</dt>
            <dd className="mono">{spec.exclude.join(', ')}</dd>
          </>
        )}
        {whole.data && (
          <>
            <dt>{t.calendars.ahead}</dt>
            <dd className="chips">
              {whole.data.days_ahead.map((day) => (
                <span key={day} className="tag">
                  {day}
                </span>
              ))}
            </dd>
            <dt>{t.calendars.jobs}</dt>
            <dd>{whole.data.jobs}</dd>
          </>
        )}
        <dt>{t.calendars.changed}</dt>
        <dd>
          <When at={calendar.created} />{' '}
          <span className="quiet">
            {t.job.by(calendar.actor)}, {t.calendars.version} {calendar.version}
          </span>
        </dd>
      </dl>
      {calendar.replan && !calendar.replan.finished && <p className="quiet">{t.calendars.replanning}</p>}
      {asks && (
        <Confirm danger title={t.calendars.remove} text={t.calendars.removeText} act={() => call('deleteCalendar', { path })} onDone={() => void client.invalidateQueries({ queryKey: ['calendars'] })} onClose={() => setAsks(false)} />
      )}
    </Panel>
  );
}

function CalendarSheet({ calendar, onClose }: { calendar: CalendarSummary | null; onClose: () => void }) {
  const t = useT();
  const { busy, fault, rest, send } = useSending(['name', 'include', 'exclude'], { invalid_parameter: 'name' });
  const client = useQueryClient();
  const [chosen] = useNamespace();
  const dayName = useDays();
  const spec = calendar?.spec;
  const [name, setName] = useState(calendar?.name ?? '');
  const [weekly, setWeekly] = useState<Weekday[]>(spec?.weekly ?? []);
  const [include, setInclude] = useState((spec?.include ?? []).join('\n'));
  const [exclude, setExclude] = useState((spec?.exclude ?? []).join('\n'));
  const days = (text: string) => text.split(/[\n,]/).map((day) => day.trim()).filter(Boolean);
  const save = async () => {
    const body: CalendarSpecByPath = { ...spec, kind: 'Calendar', weekly, include: days(include), exclude: days(exclude) };
    const path = { namespace: calendar?.namespace ?? (chosen || 'default'), name };
    const done = await send(() => call('putCalendar', { path, body, absent: !calendar, match: calendar ? `"v${calendar.version}"` : undefined }), t.editor.applied);
    await client.invalidateQueries({ queryKey: ['calendars'] });
    if (done) onClose();
  };
  return (
    <Sheet title={calendar ? calendar.name : t.calendars.new} onClose={onClose}>
      {!calendar && (
        <Field label={t.calendars.name} hint={t.editor.nameHint} fault={fault('name')}>
          {(id) => <input id={id} className="input" value={name} onChange={(event) => setName(event.target.value)} />}
        </Field>
      )}
      <div className="field">
        <span className="label">{t.calendars.weekly}</span>
        <span className="chips" role="group" aria-label={t.calendars.weekly}>
          {WEEK.map((day) => (
            <button key={day} type="button" className="chip" aria-pressed={weekly.includes(day)} onClick={() => setWeekly(weekly.includes(day) ? weekly.filter((one) => one !== day) : WEEK.filter((one) => one === day || weekly.includes(one)))}>
              {dayName(day)}
            </button>
          ))}
        </span>
      </div>
      <Field label={t.calendars.include} hint={t.calendars.daysHint} fault={fault('include')}>
        {(id) => <textarea id={id} className="area" rows={4} value={include} aria-invalid={fault('include') !== null} onChange={(event) => setInclude(event.target.value)} />}
      </Field>
      <Field label={t.calendars.exclude} hint={t.calendars.daysHint} fault={fault('exclude')}>
        {(id) => <textarea id={id} className="area" rows={4} value={exclude} aria-invalid={fault('exclude') !== null} onChange={(event) => setExclude(event.target.value)} />}
      </Field>
      {rest !== null && <Fault error={rest} />}
      <div className="row">
        <Button kind="main" disabled={!name || busy} onClick={() => void save()}>
          {t.save}
        </Button>
        <Button kind="plain" onClick={onClose}>
          {t.cancel}
        </Button>
      </div>
    </Sheet>
  );
}
