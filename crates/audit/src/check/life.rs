//! The life of one job: its versions, the times of each, and until when they need a fate.

use drumtower_core::model::{CalendarRef, JobRecord, JobVersion, Misfire, MisfirePolicy, WallMs};
use drumtower_store::Read;

use super::options::Options;
use super::scan::Occurrence;
use crate::Error;
use crate::expand::{Calendars, Plan, milliseconds};

/// A time of the schedule. One that is not required lies on the edge of an edit, a pause or the present: it may have a
/// fate, and need not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Time {
    pub at: WallMs,
    pub required: bool,
}

/// How many times a window holds, for each entry of the schedule.
const WINDOW_TIMES: i64 = 10_000;

pub(super) struct Life {
    /// Oldest first, at least one.
    pub chapters: Vec<Chapter>,
    /// Nothing is said about times before.
    pub floor: WallMs,
    /// So near to an edit a clock that was set leaves open which version of the job or of a calendar a time belongs to.
    edge_ms: i64,
}

/// What one version of the job says, and from when to when it was in force.
pub(super) struct Chapter {
    pub version: u32,
    pub from: WallMs,
    pub until: WallMs,
    /// Times after this need no fate, or not yet.
    pub required_through: WallMs,
    pub plan: Plan,
    pub misfire: CatchUp,
    pub on_resume: CatchUp,
}

/// What may be made up for at one decision.
#[derive(Clone, Copy, Debug)]
pub(super) struct CatchUp {
    pub runs: u64,
    pub window_ms: i64,
    pub gap_ms: i64,
}

/// What the life is read from.
pub(super) struct Source<'a> {
    pub store: &'a dyn Read,
    pub options: &'a Options,
    pub now: WallMs,
}

impl Source<'_> {
    pub fn life(&self, record: &JobRecord, fired: &[Occurrence]) -> Result<Life, Error> {
        let versions = self.versions(record)?;
        let mut floor = self.floor(&versions);
        let mut chapters = Vec::new();
        for (index, version) in versions.iter().enumerate() {
            let next = versions.get(index + 1);
            let (calendars, known_from) = self.calendars(version)?;
            floor = floor.max(known_from);
            let plan = Plan::new(version, &calendars)?;
            let misfire = CatchUp::read(&version.spec.misfire, MisfirePolicy::Latest);
            let on_resume = CatchUp::read(&version.spec.on_resume, MisfirePolicy::Skip);
            let mut chapter = Chapter {
                version: version.version,
                from: version.created,
                until: next.map_or(WallMs(i64::MAX), |next| next.created),
                required_through: WallMs(i64::MAX),
                plan,
                misfire,
                on_resume,
            };
            chapter.required_through = self.required_through(record, fired, &chapter);
            chapters.push(chapter);
        }
        Ok(Life {
            chapters,
            floor,
            edge_ms: self.options.clock_step_ms,
        })
    }

    fn versions(&self, record: &JobRecord) -> Result<Vec<JobVersion>, Error> {
        let mut versions = Vec::new();
        for number in 1..record.row.version {
            versions.extend(self.store.job_version(record.row.id, number)?);
        }
        versions.push(record.version.clone());
        Ok(versions)
    }

    /// Before this, retention may have taken what there was.
    fn floor(&self, versions: &[JobVersion]) -> WallMs {
        let kept = versions
            .iter()
            .filter_map(|version| version.spec.retention().age_ms())
            .min();
        kept.map_or(WallMs(i64::MIN), |age| {
            self.now.plus(self.options.grace_ms - age)
        })
    }

    /// The calendars that a version uses, and from when on it is known what was in them.
    fn calendars(&self, version: &JobVersion) -> Result<(Calendars, WallMs), Error> {
        let mut calendars = Calendars::new();
        let mut known_from = WallMs(i64::MIN);
        let Some(used) = &version.spec.calendar else {
            return Ok((calendars, known_from));
        };
        for name in used.only.iter().chain(&used.minus) {
            let versions = self.store.calendar_versions(&CalendarRef {
                namespace: version.spec.namespace.clone(),
                name: name.clone(),
            })?;
            if let Some(oldest) = versions.first().filter(|oldest| oldest.version > 1) {
                known_from = known_from.max(oldest.created);
            }
            calendars.insert(name.clone(), versions);
        }
        Ok((calendars, known_from))
    }

    /// A time put off by jitter has no fate before it is due, and one that waits behind others to be made up for none
    /// before its turn, or until it is too old. A pause that is over has left its range; one that is not, and a deletion,
    /// leave open what became of times that nobody waits for. A schedule that has made all its runs has no more times.
    fn required_through(
        &self,
        record: &JobRecord,
        fired: &[Occurrence],
        chapter: &Chapter,
    ) -> WallMs {
        let jitter = chapter.plan.jitter_ms();
        let turn = chapter.misfire.turn_ms().max(chapter.on_resume.turn_ms());
        let grace = self.options.grace_ms;
        let edge = jitter.saturating_add(self.options.clock_step_ms);
        let decided = self.now.plus(-grace).plus(-jitter).plus(-turn);
        let mut through = decided.max(record.schedule.fired_through);
        if let Some(pause) = &record.row.paused {
            through = through.min(pause.at.plus(-edge).plus(-1));
        }
        if record.row.deleted {
            through = through.min(record.row.updated.plus(-edge).plus(-grace - 1));
        }
        if let Some(max) = chapter.plan.max_fires() {
            let goes_on = chapter.version == record.row.version && record.schedule.fires < max;
            let last = fired
                .iter()
                .rfind(|occurrence| occurrence.version == chapter.version);
            if !goes_on {
                through = through.min(last.map_or(chapter.from, |last| last.nominal));
            }
        }
        through
    }
}

impl CatchUp {
    /// What was refused when it was written is not here; whatever else cannot be read allows anything.
    fn read(misfire: &Misfire, usual: MisfirePolicy) -> Self {
        let duration = |text: &Option<String>, usual| match text {
            Some(text) => milliseconds(text).unwrap_or(i64::MAX),
            None => usual,
        };
        Self {
            runs: match misfire.policy.unwrap_or(usual) {
                MisfirePolicy::Skip => 0,
                MisfirePolicy::Latest => 1,
                MisfirePolicy::All => misfire.max.unwrap_or(100).into(),
            },
            window_ms: duration(&misfire.window, 3_600_000),
            gap_ms: duration(&misfire.gap, 0),
        }
    }

    /// How long a missed time may wait for its turn.
    fn turn_ms(self) -> i64 {
        if self.gap_ms == 0 || self.runs < 2 {
            return 0;
        }
        self.window_ms.saturating_add(self.gap_ms)
    }
}

impl Life {
    /// All times in `[from, through]`, in order.
    pub fn times(&self, from: WallMs, through: WallMs) -> Vec<Time> {
        let mut times = Vec::new();
        for chapter in &self.chapters {
            let (first, last) = self.held_in(chapter);
            let (first, last) = (first.max(from), last.min(through));
            if first > last {
                continue;
            }
            let required = self.required_in(chapter);
            let all = chapter.plan.times_decided(first, last, self.edge_ms);
            times.extend(all.into_iter().map(|(at, certain)| Time {
                at,
                required: certain && required.0 <= at && at <= required.1,
            }));
        }
        times.sort_unstable();
        // A time that two versions hold is required if either of them requires it: sorted last, kept.
        times.reverse();
        times.dedup_by_key(|time| time.at);
        times.reverse();
        times
    }

    /// The first and the last moment of a version's times, those on its edges included.
    fn held_in(&self, chapter: &Chapter) -> (WallMs, WallMs) {
        let edge = self.edge_ms;
        (chapter.from.plus(-edge), chapter.until.plus(edge))
    }

    /// The first and the last moment at which a version's times need a fate.
    pub fn required_in(&self, chapter: &Chapter) -> (WallMs, WallMs) {
        let edge = self.edge_ms + 1;
        let last = chapter.until.plus(-edge).min(chapter.required_through);
        (chapter.from.plus(edge), last)
    }

    /// The times of one version in `[from, through]` that it holds by whatever its calendars may have been.
    pub fn certain_times(&self, chapter: &Chapter, from: WallMs, through: WallMs) -> Vec<WallMs> {
        let all = chapter.plan.times_decided(from, through, self.edge_ms);
        let certain = all.into_iter().filter(|(_, certain)| *certain);
        certain.map(|(at, _)| at).collect()
    }

    pub fn has(&self, at: WallMs) -> bool {
        !self.times(at, at).is_empty()
    }

    /// A span that can be listed.
    pub fn window_ms(&self) -> i64 {
        let windows = self
            .chapters
            .iter()
            .map(|chapter| chapter.plan.window_ms(WINDOW_TIMES));
        windows.min().unwrap_or(1)
    }

    pub fn chapter(&self, version: u32) -> Option<&Chapter> {
        self.chapters
            .iter()
            .find(|chapter| chapter.version == version)
    }

    /// The versions that a time may belong to: two on the edge of an edit.
    pub fn chapters_at(&self, at: WallMs) -> impl Iterator<Item = &Chapter> {
        self.chapters.iter().filter(move |chapter| {
            let (first, last) = self.held_in(chapter);
            first <= at && at <= last
        })
    }

    /// Whether a time may belong to a schedule that counts from the end of the last run.
    pub fn follows_ends(&self, at: WallMs) -> bool {
        self.chapters_at(at)
            .any(|chapter| chapter.plan.after_end_ms().is_some())
    }
}
