//! Backfills: each time once, never more runs at once than allowed, and rows that tell what they made.

use drumtower_core::model::{BackfillId, BackfillRow, Run, RunId, RunState, WallMs};
use drumtower_store::{BackfillFilter, Read};

use super::options::Options;
use super::report::{Class, Report};
use super::scan::{Occurrence, end_of};
use crate::Error;

const PAGE: usize = 1000;

/// A run that a backfill made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Backfilled {
    backfill: BackfillId,
    nominal: WallMs,
    run: RunId,
    created: WallMs,
    /// [`Occurrence::LIVE`] when it has not.
    ended: WallMs,
    state: RunState,
}

/// What a run says of the backfill that made it; `None` when it says too little.
pub(super) fn of(run: &Run) -> Option<Backfilled> {
    Some(Backfilled {
        backfill: run.backfill?.backfill,
        nominal: run.nominal?,
        run: run.id,
        created: run.created,
        ended: end_of(run),
        state: run.state,
    })
}

/// `pruned` runs were removed by retention: then a row may have made more than there are.
pub(super) fn check(
    store: &dyn Read,
    runs: &mut [Backfilled],
    pruned: u64,
    options: &Options,
    report: &mut Report,
) -> Result<(), Error> {
    runs.sort_unstable();
    for pair in runs.windows(2) {
        let (one, other) = (pair[0], pair[1]);
        if (one.backfill, one.nominal) == (other.backfill, other.nominal) {
            report.add(Class::Duplicated, "V2", other.run, || {
                let (backfill, at) = (one.backfill, one.nominal.0);
                format!("{backfill} made it of {at}, and {} too", one.run)
            });
        }
    }
    for made in runs.chunk_by_mut(|one, other| one.backfill == other.backfill) {
        let id = made[0].backfill;
        match store.backfill(id)? {
            Some(row) => check_row(&row, made, pruned, options, report),
            // Rows that are over go after their time, and so do runs, by another.
            None if made.iter().any(|it| it.ended == Occurrence::LIVE) => {
                report.add(Class::Other, "V2", made[0].run, || {
                    format!("{id}, which made it, is not there")
                });
            }
            None => {}
        }
    }
    check_without_runs(store, runs, pruned, report)
}

/// Rows that no run is there of have made none.
fn check_without_runs(
    store: &dyn Read,
    runs: &[Backfilled],
    pruned: u64,
    report: &mut Report,
) -> Result<(), Error> {
    let mut before = None;
    loop {
        let page = store.backfills(&BackfillFilter::default(), before, PAGE)?;
        for row in &page {
            let any = runs.binary_search_by_key(&row.id, |it| it.backfill).is_ok();
            if !any && row.made > 0 && pruned == 0 {
                report.add(Class::Lost, "V2", row.id, || {
                    format!("it made {} runs, and none is there", row.made)
                });
            }
        }
        match page.last() {
            Some(last) if page.len() >= PAGE => before = Some(last.id),
            _ => return Ok(()),
        }
    }
}

fn check_row(
    row: &BackfillRow,
    made: &mut [Backfilled],
    pruned: u64,
    options: &Options,
    report: &mut Report,
) {
    for it in made.iter() {
        if !(row.from..row.to).contains(&it.nominal) {
            report.add(Class::Other, "V2", it.run, || {
                format!("{} lies outside the interval of {}", it.nominal.0, row.id)
            });
        }
    }
    let count = |state: RunState| made.iter().filter(|it| it.state == state).count() as u64;
    let ended = [
        (RunState::Completed, row.completed),
        (RunState::Failed, row.failed),
        (RunState::Cancelled, row.cancelled),
    ];
    let live = made.iter().filter(|it| it.ended == Occurrence::LIVE);
    let mut live: Vec<RunId> = live.map(|it| it.run).collect();
    let mut named = row.live.clone();
    live.sort_unstable();
    named.sort_unstable();
    if live != named {
        report.add(Class::Other, "V8", row.id, || {
            format!("it names {named:?} as live, and these are: {live:?}")
        });
    }
    let told = row.completed + row.failed + row.cancelled + row.live.len() as u64;
    let there = made.len() as u64;
    if told != row.made || there > row.made || (pruned == 0 && there < row.made) {
        report.add(Class::Other, "V8", row.id, || {
            format!(
                "it made {}, of which it tells {told}; {there} are there",
                row.made
            )
        });
    }
    for (state, told) in ended.into_iter().filter(|_| pruned == 0) {
        if count(state) != told {
            report.add(Class::Other, "V8", row.id, || {
                let (there, state) = (count(state), state.as_str());
                format!("it counts {told} runs {state}, and {there} are there")
            });
        }
    }
    check_at_once(row, made, options, report);
}

/// How many were under way at any time, by the server's own word; its clock may have been set back in between.
fn check_at_once(
    row: &BackfillRow,
    made: &mut [Backfilled],
    options: &Options,
    report: &mut Report,
) {
    // An end comes before what it makes room for.
    let mut steps: Vec<(WallMs, i64)> = Vec::with_capacity(2 * made.len());
    for it in made.iter() {
        let ended = match it.ended {
            Occurrence::LIVE => Occurrence::LIVE,
            ended => ended.plus(-options.clock_back_ms).max(it.created),
        };
        if ended > it.created {
            steps.push((it.created, 1));
            steps.push((ended, -1));
        }
    }
    steps.sort_unstable();
    let (mut now, mut most) = (0, 0);
    for (_, step) in steps {
        now += step;
        most = most.max(now);
    }
    if most > i64::from(row.max_active) {
        report.add(Class::Other, "V11", row.id, || {
            format!(
                "{most} of its runs were under way at once, {} may be",
                row.max_active
            )
        });
    }
}
