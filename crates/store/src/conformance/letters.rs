//! Dead letters: rows of their own, whatever becomes of the runs.

use drumtower_core::change::{ChangeSet, LetterChange, Prune};
use drumtower_core::model::{JobId, JsonText, Limits, Reason, Run, RunId, RunState, WallMs};

use super::World;
use super::sample::{self, T0};
use crate::LetterFilter;

fn letter(number: i64, job: u64) -> Run {
    let run = sample::run(T0.0 + number * 1_000, number as u64, JobId(job));
    let mut run = sample::ended(run, RunState::Failed, 10);
    let long = format!("\"{}\"", "x".repeat(2 * Limits::INLINE_PAYLOAD_BYTES));
    if number % 2 == 0 {
        run.params = Some(JsonText::parse("params", &long).expect("JSON"));
        run.result = Some(JsonText::parse("result", &long).expect("JSON"));
    }
    if number % 3 == 0
        && let Some(last) = run.transitions.last_mut()
    {
        last.reason = Reason::TimedOut;
    }
    run
}

fn set(changes: impl IntoIterator<Item = (RunId, LetterChange)>) -> ChangeSet {
    ChangeSet {
        letters: changes.into_iter().collect(),
        ..ChangeSet::default()
    }
}

fn keep(letters: &[Run]) -> ChangeSet {
    let rows = letters.iter().cloned();
    set(rows.map(|run| (run.id, LetterChange::Insert(Box::new(run)))))
}

fn died(run: &Run) -> WallMs {
    run.finished().expect("it ended")
}

fn listed(world: &World, filter: &LetterFilter, limit: usize) -> Vec<Run> {
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let page = world.read().letters(filter, before, limit);
        let page = page.expect("it is read");
        assert!(page.runs.len() <= limit);
        found.extend(page.runs);
        match page.next {
            Some(next) => before = Some(next),
            None => return found,
        }
    }
}

pub fn letters(world: &mut World) {
    let all: Vec<Run> = (0..12).map(|n| letter(n, 1 + n as u64 % 2)).collect();
    world.commit(keep(&all[..5]));
    world.commit(keep(&all[5..]));
    let newest: Vec<Run> = all.iter().rev().cloned().collect();
    for limit in [1, 5, 12, 100] {
        assert_eq!(listed(world, &LetterFilter::default(), limit), newest);
    }
    let only = |takes: &dyn Fn(&Run) -> bool| -> Vec<Run> {
        newest.iter().filter(|run| takes(run)).cloned().collect()
    };
    let of_job = LetterFilter {
        job: Some(JobId(2)),
        namespace: Some(all[0].namespace.clone()),
        ..LetterFilter::default()
    };
    assert_eq!(listed(world, &of_job, 2), only(&|run| run.job == JobId(2)));
    let (since, until) = (died(&all[3]), died(&all[9]));
    let timed = LetterFilter {
        reason: Some(Reason::TimedOut),
        since: Some(since),
        until: Some(until),
        ..LetterFilter::default()
    };
    assert_eq!(listed(world, &timed, 1), [all[6].clone(), all[3].clone()]);
    let strange = LetterFilter {
        namespace: Some(sample::namespace("nobody")),
        ..LetterFilter::default()
    };
    assert_eq!(listed(world, &strange, 9), []);
    let one = world.read().letter(all[4].id).expect("it is read");
    assert_eq!(one, Some(all[4].clone()));
    world.refuse(keep(&all[4..5]));
    world.commit(set([(all[4].id, LetterChange::Remove)]));
    assert_eq!(world.read().letter(all[4].id).expect("it is read"), None);
    world.refuse(set([(all[4].id, LetterChange::Remove)]));
}

pub fn old_letters_go(world: &mut World) {
    let all: Vec<Run> = (0..5).map(|n| letter(n, 1)).collect();
    world.commit(keep(&all));
    let prune = |now: WallMs, limit| ChangeSet {
        prune: Some(Prune { now, limit }),
        ..ChangeSet::default()
    };
    let over = died(&all[2]).plus(Limits::DEAD_LETTER_MS);
    world.commit(prune(over, 1));
    let left = |world: &World| listed(world, &LetterFilter::default(), 9).len();
    assert_eq!(left(world), 4, "one step removes as many as it may");
    world.commit(prune(over, 9));
    assert_eq!(left(world), 3);
    world.commit(prune(over.plus(1), 9));
    assert_eq!(left(world), 2);
}
