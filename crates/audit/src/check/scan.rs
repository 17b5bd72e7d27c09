//! One pass over every run of the store: each is checked on its own, and what must be compared across runs is kept.

use std::collections::BTreeMap;

use drumtower_core::model::{JobId, NamespaceName, Origin, Run, RunId, RunState, WallMs};
use drumtower_store::{Read, RunFilter};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::PAGE;
use super::automaton::ends;
use super::backfills::{self, Backfilled};
use super::evidence::{Evidence, key_hash, of_run};
use super::options::{Journaled, Options};
use super::report::{Class, Report};
use super::run::Subject;
use super::tallies::Tally;
use super::tries::Definitions;
use crate::Error;

/// A scheduled run by the time it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Occurrence {
    pub job: JobId,
    pub nominal: WallMs,
    pub run: RunId,
    pub due: WallMs,
    pub created: WallMs,
    /// [`Occurrence::LIVE`] when it has not.
    pub ended: WallMs,
    pub version: u32,
}

impl Occurrence {
    /// Later than every end.
    pub const LIVE: WallMs = WallMs(i64::MAX);
}

/// What is compared across runs.
#[derive(Default)]
pub(super) struct Scan {
    /// Sorted.
    pub ids: Vec<RunId>,
    pub occurrences: Vec<Occurrence>,
    pub backfilled: Vec<Backfilled>,
    /// (job and idempotency key, run), sorted.
    pub keys: Vec<(u64, RunId)>,
    pub tallies: BTreeMap<NamespaceName, Tally>,
    /// The newest time that any run speaks of.
    pub latest: Option<WallMs>,
    starts: BTreeMap<JobId, Starts>,
}

/// Whether the runs of a job started, as far as journals tell.
#[derive(Default)]
struct Starts {
    journaled: u64,
    completed_without: u64,
    example: Option<RunId>,
}

impl Scan {
    pub fn live(&self) -> u64 {
        self.tallies.values().map(|tally| tally.live).sum()
    }
}

pub(super) fn scan(
    store: &dyn Read,
    evidence: &Evidence,
    options: &Options,
    report: &mut Report,
) -> Result<Scan, Error> {
    let mut scan = Scan::default();
    let mut definitions = Definitions::default();
    let mut before = None;
    loop {
        let page = store.runs(&RunFilter::default(), before, PAGE)?;
        for run in &page.runs {
            scan.take(run, evidence, options, report);
            if run.attempts.len() > 1
                && let Some(allowed) = definitions.of(store, run)?
            {
                allowed.check(run, options, report);
            }
        }
        // A cursor that does not move would never end.
        match page.next {
            Some(next) if Some(next) != before => before = Some(next),
            _ => break,
        }
    }
    scan.finish(options, report);
    Ok(scan)
}

impl Scan {
    fn take(&mut self, run: &Run, evidence: &Evidence, options: &Options, report: &mut Report) {
        report.checked += 1;
        let starts = of_run(&evidence.starts, run.id, |start| start.run);
        let ends = of_run(&evidence.ends, run.id, |end| end.run);
        Subject {
            run,
            starts,
            ends,
            options,
        }
        .check(report);
        self.ids.push(run.id);
        self.latest = self.latest.max(run.transitions.last().map(|step| step.at));
        self.tallies
            .entry(run.namespace.clone())
            .or_default()
            .count(run.state, report);
        self.note_start(run, !starts.is_empty());
        self.note_occurrence(run, report);
        if let Some(key) = &run.idempotency_key {
            self.keys
                .push((xxh3_64_with_seed(key.as_bytes(), run.job.0), run.id));
            check_key(run, key, evidence, report);
        }
    }

    fn note_start(&mut self, run: &Run, journaled: bool) {
        let starts = self.starts.entry(run.job).or_default();
        if journaled {
            starts.journaled += 1;
        } else if run.state == RunState::Completed {
            starts.completed_without += 1;
            starts.example = Some(run.id);
        }
    }

    fn note_occurrence(&mut self, run: &Run, report: &mut Report) {
        match (run.origin, run.nominal) {
            (Origin::Schedule, Some(nominal)) => {
                self.occurrences.push(Occurrence {
                    job: run.job,
                    nominal,
                    run: run.id,
                    due: run.due,
                    created: run.created,
                    ended: end_of(run),
                    version: run.job_version,
                });
            }
            (Origin::Backfill, _) => match backfills::of(run) {
                Some(made) => self.backfilled.push(made),
                None => report.add(Class::Other, "V2", run.id, || {
                    "it does not say which backfill made it, or of what time".to_owned()
                }),
            },
            (Origin::Api | Origin::After, None) => {}
            (Origin::After, Some(nominal)) => report.add(Class::Other, "V2", run.id, || {
                format!(
                    "it was made after another run and claims the scheduled time {}",
                    nominal.0
                )
            }),
            // A repetition stands for the same time as the run it repeats.
            (Origin::Api, Some(_)) if run.rerun_of.is_some() => {}
            (Origin::Schedule, None) => report.add(Class::Other, "V2", run.id, || {
                "it was made by a schedule and stands for no time of it".to_owned()
            }),
            (Origin::Api, Some(nominal)) => report.add(Class::Other, "V2", run.id, || {
                format!(
                    "it was triggered and claims the scheduled time {}",
                    nominal.0
                )
            }),
        }
    }

    fn finish(&mut self, options: &Options, report: &mut Report) {
        self.ids.sort_unstable();
        self.keys.sort_unstable();
        for pair in self.ids.windows(2).filter(|pair| pair[0] == pair[1]) {
            report.add(Class::Duplicated, "V7", pair[0], || {
                "the store holds it twice".to_owned()
            });
        }
        for (job, starts) in &self.starts {
            let journaled = match options.journaled {
                Journaled::All => true,
                Journaled::Seen => starts.journaled > 0,
                Journaled::None => false,
            };
            if let Some(example) = starts.example.filter(|_| journaled) {
                report.add_many(starts.completed_without, Class::Lost, "V9", example, || {
                    format!(
                        "{job} has {} runs COMPLETED that no task saw start, such as this",
                        starts.completed_without
                    )
                });
            }
        }
    }
}

/// When a run ended, by its own list of transitions.
pub(super) fn end_of(run: &Run) -> WallMs {
    match run.transitions.last() {
        Some(last) if ends(last.to) => last.at,
        _ => Occurrence::LIVE,
    }
}

/// What callers were told about a key agrees with the run that carries it.
fn check_key(run: &Run, key: &str, evidence: &Evidence, report: &mut Report) {
    let hash = key_hash(key);
    if evidence.refused.contains(&hash) {
        report.add(Class::Other, "V9", run.id, || {
            format!("key `{key}` was refused and made this run all the same")
        });
    }
    let answers = of_run(&evidence.answers, run.id, |answer| answer.run);
    if !answers.is_empty() && answers.iter().all(|answer| answer.key != hash) {
        report.add(Class::Duplicated, "V2", run.id, || {
            format!("it was made under key `{key}` and handed out as the answer to another key")
        });
    }
}
