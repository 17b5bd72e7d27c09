//! Backfills: a row moves only from the step it stands at.

use drumtower_core::change::{BackfillChange, ChangeSet, Prune, RunChange};
use drumtower_core::model::{
    BackfillHold, BackfillId, BackfillMark, BackfillRow, BackfillState, JobId, JsonText, Limits,
    Obedience, Origin, RunId, WallMs,
};

use super::World;
use super::sample::{self, T0};
use crate::{BackfillFilter, RunFilter};

fn change(expected: Option<u64>, row: &BackfillRow) -> ChangeSet {
    let row = row.clone();
    ChangeSet {
        backfills: [(row.id, BackfillChange { expected, row })].into(),
        ..ChangeSet::default()
    }
}

fn get(world: &World, id: BackfillId) -> Option<BackfillRow> {
    world.read().backfill(id).expect("it is read")
}

fn listed(world: &World, filter: &BackfillFilter, limit: usize) -> Vec<BackfillRow> {
    let mut found: Vec<BackfillRow> = Vec::new();
    loop {
        let before = found.last().map(|row| row.id);
        let page = world.read().backfills(filter, before, limit);
        let page = page.expect("they are read");
        assert!(page.len() <= limit);
        let last = page.len() < limit;
        found.extend(page);
        if last {
            return found;
        }
    }
}

pub fn steps(world: &mut World) {
    let mut row = sample::backfill(1, 1);
    row.params = Some(JsonText::parse("params", r#"{"day": 1}"#).expect("JSON"));
    assert_eq!(get(world, row.id), None);
    world.refuse(change(Some(1), &row));
    world.commit(change(None, &row));
    assert_eq!(get(world, row.id), Some(row.clone()));
    world.refuse(change(None, &row));
    let moved = BackfillRow {
        cursor: Some(T0.plus(5)),
        live: vec![RunId(7), RunId(9)],
        made: 2,
        overlap: Obedience::Obey,
        force: true,
        held: Some(BackfillHold::Breaker),
        step: 2,
        ..row.clone()
    };
    for wrong in [0, 2, 3] {
        world.refuse(change(Some(wrong), &moved));
    }
    world.commit(change(Some(1), &moved));
    assert_eq!(get(world, row.id), Some(moved));
    let foreign = BackfillRow {
        id: BackfillId(row.id.0 + 1),
        ..row.clone()
    };
    let mut set = change(None, &foreign);
    if let Some(change) = set.backfills.remove(&foreign.id) {
        set.backfills.insert(row.id, change);
    }
    world.refuse(set);
    assert_eq!(get(world, BackfillId(u64::MAX)), None);
}

pub fn lists(world: &mut World) {
    let states = BackfillState::ALL;
    let all: Vec<BackfillRow> = (0..8)
        .map(|n| {
            let mut row = sample::backfill(n, 1 + n as u64 % 2);
            row.state = states[n as usize % 4];
            // One that was cancelled while a run of it is under way is still open.
            let live = row.state != BackfillState::Completed && n < 4;
            row.live = if live { vec![RunId(1)] } else { Vec::new() };
            row.ended = row.state.is_over().then_some(T0);
            row
        })
        .collect();
    for row in &all {
        world.commit(change(None, row));
    }
    let newest = |takes: &dyn Fn(&BackfillRow) -> bool| -> Vec<BackfillRow> {
        all.iter().rev().filter(|row| takes(row)).cloned().collect()
    };
    let everything = BackfillFilter::default();
    for limit in [1, 3, 8, 100] {
        assert_eq!(listed(world, &everything, limit), newest(&|_| true));
    }
    let open = BackfillFilter {
        open: true,
        ..everything.clone()
    };
    assert_eq!(listed(world, &open, 2), newest(&BackfillRow::is_open));
    assert_eq!(listed(world, &open, 9).len(), 5);
    let states = vec![BackfillState::Paused, BackfillState::Cancelled];
    let some = BackfillFilter {
        namespace: Some(all[0].namespace.clone()),
        job: Some(JobId(2)),
        states: states.clone(),
        open: false,
        within: None,
    };
    let wanted = newest(&|row| row.job == JobId(2) && states.contains(&row.state));
    assert!(!wanted.is_empty());
    assert_eq!(listed(world, &some, 1), wanted);
    let strange = BackfillFilter {
        namespace: Some(sample::namespace("nobody")),
        ..everything
    };
    assert_eq!(listed(world, &strange, 9), []);
}

pub fn old_ones_go(world: &mut World) {
    for n in 0..6 {
        let mut row = sample::backfill(n, 1);
        row.state = BackfillState::Cancelled;
        row.ended = Some(T0.plus(n));
        row.live = if n == 0 { vec![RunId(1)] } else { Vec::new() };
        world.commit(change(None, &row));
    }
    let prune = |now: WallMs, limit| ChangeSet {
        prune: Some(Prune { now, limit }),
        ..ChangeSet::default()
    };
    let left = |world: &World| listed(world, &BackfillFilter::default(), 9).len();
    let over = T0.plus(4 + Limits::BACKFILL_MS);
    world.commit(prune(over, 1));
    assert_eq!(left(world), 5, "one step removes as many as it may");
    world.commit(prune(over, 9));
    assert_eq!(left(world), 3, "one is open, two are young");
}

pub fn runs(world: &mut World) {
    let (mine, other) = (BackfillId(40), BackfillId(41));
    let run = |number, backfill: Option<BackfillId>| {
        let mut run = sample::run(0, number, JobId(1));
        run.origin = Origin::Backfill;
        run.nominal = Some(T0.plus(-86_400_000));
        run.backfill = backfill.map(|backfill| BackfillMark {
            backfill,
            priority: 3,
        });
        run
    };
    let all = [run(1, Some(mine)), run(2, None), run(3, Some(other))];
    world.commit(sample::runs(
        all.clone().map(|run| RunChange::Insert(Box::new(run))),
    ));
    let filter = RunFilter {
        backfill: Some(mine),
        ..RunFilter::default()
    };
    assert_eq!(super::all_runs(world.read(), &filter, 2), all[..1]);
    let filter = RunFilter {
        origin: Some(Origin::Backfill),
        ..RunFilter::default()
    };
    assert_eq!(super::all_runs(world.read(), &filter, 2).len(), 3);
}

/// What one namespace has beyond its bound is no other's loss.
pub fn each_namespace_has_its_own_bound(world: &mut World) {
    let most = Limits::BACKFILLS_KEPT as i64;
    let over = |n: i64, namespace: &str| {
        let mut row = sample::backfill(n, 1);
        row.namespace = sample::namespace(namespace);
        row.state = BackfillState::Cancelled;
        row.ended = Some(T0.plus(n));
        row
    };
    let few: Vec<BackfillRow> = (0..3).map(|n| over(n, "few")).collect();
    let many: Vec<BackfillRow> = (3..most + 5).map(|n| over(n, "many")).collect();
    for rows in few.chunks(9).chain(many.chunks(2_000)) {
        let mut set = ChangeSet::default();
        for row in rows {
            set.backfills.extend(change(None, row).backfills);
        }
        world.commit(set);
    }
    // It is counted now and then only.
    for _ in 0..64 {
        world.commit(ChangeSet {
            prune: Some(Prune {
                now: T0,
                limit: 1_000,
            }),
            ..ChangeSet::default()
        });
    }
    assert!(few.iter().all(|row| get(world, row.id).is_some()));
    let there = many.iter().map(|row| get(world, row.id).is_some());
    let there: Vec<bool> = there.take(4).collect();
    assert_eq!(there, [false, false, true, true]);
}
