//! Progress and checkpoints: who may save one, that none goes back, and what the next attempt is told.

use proptest::prelude::*;

use super::super::*;
use super::world::*;
use crate::model::*;

fn checkpoint(number: u64, body: &[u8]) -> Checkpoint {
    Checkpoint {
        number,
        body: body.into(),
    }
}

fn save(world: &mut World, stream: u64, attempt: AttemptRef, number: u64) -> Vec<(u64, bool)> {
    let checkpoint = checkpoint(number, format!("at {number}").as_bytes());
    let event = WorkerEvent::Checkpoint {
        attempt,
        checkpoint,
    };
    world.event(stream, event);
    acks(&world.commit())
}

fn acks(effects: &[Effect]) -> Vec<(u64, bool)> {
    let acks = effects.iter().filter_map(|effect| match effect {
        Effect::Send {
            message: ToWorker::CheckpointAck { number, kept, .. },
            ..
        } => Some((*number, *kept)),
        _ => None,
    });
    acks.collect()
}

fn marks(effects: &[Effect]) -> Vec<Option<u64>> {
    let marks = effects.iter().filter_map(|effect| match effect {
        Effect::Send {
            message: ToWorker::Assign(assign),
            ..
        } => Some(assign.checkpoint.map(|mark| mark.number)),
        _ => None,
    });
    marks.collect()
}

fn progress(attempt: AttemptRef, percent: u8) -> WorkerEvent {
    WorkerEvent::Progress {
        attempt,
        percent,
        message: Some("copying".to_owned()),
    }
}

/// A run of a job on the one worker there is.
fn running(world: &mut World) -> AttemptRef {
    let mut spec = noop("a");
    spec["retry"] = serde_json::json!({"max_lost": 100});
    world.put(spec);
    world.trigger("a", None, None).expect("made");
    let (_, attempt) = assignments(&world.worker(1, 10, 1, Vec::new(), 1))[0];
    attempt
}

#[test]
fn a_checkpoint_is_kept_before_it_is_acknowledged() {
    let mut world = World::new();
    let attempt = running(&mut world);
    assert_eq!(save(&mut world, 10, attempt, 1), [(1, true)]);
    assert_eq!(&*world.tables.checkpoints[&attempt.run].body, b"at 1");
    let mark = world.tables.active[&attempt.run]
        .checkpoint
        .expect("marked");
    assert_eq!((mark.number, mark.attempt, mark.bytes), (1, 1, 4));
    assert_eq!(mark.at, world.now.wall);
}

#[test]
fn two_in_one_commit_leave_the_newer() {
    let mut world = World::new();
    let attempt = running(&mut world);
    for number in [2, 5] {
        let checkpoint = checkpoint(number, b"x");
        world.event(
            10,
            WorkerEvent::Checkpoint {
                attempt,
                checkpoint,
            },
        );
    }
    assert_eq!(acks(&world.commit()), [(2, true), (5, true)]);
    assert_eq!(world.tables.checkpoints[&attempt.run].number, 5);
    assert_eq!(save(&mut world, 10, attempt, 4), [(4, true)], "a late copy");
    assert_eq!(world.tables.checkpoints[&attempt.run].number, 5);
}

#[test]
fn the_next_attempt_is_told_and_goes_on_from_there() {
    let mut world = World::new();
    let attempt = running(&mut world);
    save(&mut world, 10, attempt, 3);
    world.event(
        10,
        WorkerEvent::Refused {
            attempt,
            reason: "no room".to_owned(),
        },
    );
    world.event(10, WorkerEvent::Granted { total: 2 });
    let effects = world.commit();
    assert_eq!(marks(&effects), [Some(3)]);
    let (_, next) = assignments(&effects)[0];
    assert_eq!(save(&mut world, 10, attempt, 4), [(4, false)], "overtaken");
    assert_eq!(world.tables.checkpoints[&attempt.run].number, 3);
    assert_eq!(save(&mut world, 10, next, 4), [(4, true)]);
    let mark = world.tables.active[&attempt.run]
        .checkpoint
        .expect("marked");
    assert_eq!((mark.number, mark.attempt), (4, 2));
}

#[test]
fn failed_and_lost_attempts_leave_it_to_the_next() {
    let mut world = World::new();
    let first = running(&mut world);
    save(&mut world, 10, first, 3);
    world.finish(10, first, AttemptOutcome::Failed);
    world.event(10, WorkerEvent::Granted { total: 2 });
    let effects = world.tick_through(2_000, 500);
    assert_eq!(marks(&effects), [Some(3)], "tried again");
    let (_, second) = assignments(&effects)[0];
    save(&mut world, 10, second, 4);
    // The worker falls silent; another is there when its lease is over.
    world.tick_through(40_000, 1_000);
    let mut effects = world.worker(2, 20, 1, Vec::new(), 1);
    effects.extend(world.tick_through(2_000, 500));
    assert_eq!(marks(&effects), [Some(4)], "another worker");
    let (stream, third) = assignments(&effects)[0];
    assert_eq!(save(&mut world, 10, second, 5), [], "its stream is closed");
    assert_eq!(save(&mut world, stream, third, 5), [(5, true)]);
    assert_eq!(world.tables.checkpoints[&first.run].number, 5);
}

#[test]
fn only_the_holder_saves_and_never_after_the_end() {
    let mut world = World::new();
    let attempt = running(&mut world);
    world.worker(2, 20, 1, Vec::new(), 1);
    assert_eq!(save(&mut world, 20, attempt, 1), [(1, false)]);
    let forged = AttemptRef {
        fence: Fence(attempt.fence.0 + 1),
        ..attempt
    };
    assert_eq!(save(&mut world, 10, forged, 1), [(1, false)]);
    save(&mut world, 10, attempt, 1);
    world.finish(10, attempt, AttemptOutcome::Succeeded);
    assert_eq!(save(&mut world, 10, attempt, 2), [(2, false)]);
    assert!(world.tables.checkpoints.is_empty(), "nobody needs it");
    assert_eq!(world.tables.history[&attempt.run].checkpoint, None);
}

#[test]
fn a_checkpoint_survives_a_restart_of_the_server() {
    let mut world = World::new();
    let attempt = running(&mut world);
    save(&mut world, 10, attempt, 7);
    world.restart();
    world.worker(1, 11, 1, vec![attempt], 2);
    assert_eq!(save(&mut world, 11, attempt, 6), [(6, true)], "a late copy");
    assert_eq!(world.tables.checkpoints[&attempt.run].number, 7);
    assert_eq!(save(&mut world, 11, attempt, 8), [(8, true)]);
    assert_eq!(world.tables.checkpoints[&attempt.run].number, 8);
}

#[test]
fn a_repetition_begins_where_the_run_was() {
    let mut world = World::new();
    let id = world.put(noop("a"));
    let rerun = Rerun {
        of: RunId(7),
        job: id,
        nominal: None,
        params: None,
        version: None,
        checkpoint: Some(checkpoint(9, b"page 4")),
        letter: false,
    };
    let trigger = Trigger {
        rerun: Some(Box::new(rerun)),
        ..Trigger::of(job_ref("a"))
    };
    let triggers = vec![trigger];
    world
        .command(Command::TriggerRuns { triggers })
        .expect("made");
    let effects = world.worker(1, 10, 1, Vec::new(), 1);
    assert_eq!(marks(&effects), [Some(9)]);
    let (_, attempt) = assignments(&effects)[0];
    assert_eq!(&*world.tables.checkpoints[&attempt.run].body, b"page 4");
    assert_eq!(save(&mut world, 10, attempt, 10), [(10, true)]);
}

#[test]
fn progress_is_written_at_once_and_then_now_and_then() {
    let mut world = World::new();
    let attempt = running(&mut world);
    let written = |world: &World| {
        let progress = world.tables.active[&attempt.run].progress.as_ref();
        progress.map(|progress| progress.percent)
    };
    world.event(10, progress(attempt, 1));
    world.commit();
    assert_eq!(written(&world), Some(1));
    for percent in 2..5 {
        world.pass(200);
        world.event(10, progress(attempt, percent));
        world.commit();
        assert_eq!(written(&world), Some(1), "not each of them");
    }
    let due = world.engine.next_wakeup(world.now).expect("a wish");
    world.pass(due.0 - world.now.mono.0);
    world.commit();
    assert_eq!(written(&world), Some(4));
    world.pass(10_000);
    world.beat(10, 2, 1, vec![attempt]);
    world.commit();
    world.event(20, progress(attempt, 50));
    world.commit();
    assert_eq!(written(&world), Some(4), "from the holder only");
    world.event(10, progress(attempt, 60));
    world.commit();
    assert_eq!(written(&world), Some(60), "after a pause at once");
}

#[test]
fn an_attempt_begins_without_progress() {
    let mut world = World::new();
    let attempt = running(&mut world);
    world.event(10, progress(attempt, 90));
    world.commit();
    let reason = "no room".to_owned();
    world.event(10, WorkerEvent::Refused { attempt, reason });
    world.event(10, WorkerEvent::Granted { total: 2 });
    world.commit();
    let run = &world.tables.active[&attempt.run];
    assert_eq!((run.attempts.len(), &run.progress), (2, &None));
}

#[derive(Clone, Debug)]
enum Act {
    /// By which of the attempts so far, and by how much its number differs from what it should be.
    Save(usize, i64),
    Refuse,
    Restart,
    Pass(u64),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (0_usize..4, -3_i64..3).prop_map(|(of, off)| Act::Save(of, off)),
        2 => Just(Act::Refuse),
        1 => Just(Act::Restart),
        // All of them together are less than what a worker may be silent and still be given work.
        1 => (1_u64..150).prop_map(Act::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whoever saves what in whatever order: what is kept only grows, and what was acknowledged as kept is never newer than
    /// what the next attempt is told.
    #[test]
    fn a_checkpoint_never_goes_back(acts in prop::collection::vec(act(), 1..40)) {
        let mut world = World::new();
        let mut beat = 100;
        let mut attempts = vec![running(&mut world)];
        let (mut stream, mut granted, mut kept) = (10, 1, 0);
        for act in acts {
            let current = attempts[attempts.len() - 1];
            match act {
                Act::Save(of, off) => {
                    let attempt = attempts[attempts.len() - 1 - of.min(attempts.len() - 1)];
                    let number = (kept as i64 + 1 + off).max(1) as u64;
                    for (number, is_kept) in save(&mut world, stream, attempt, number) {
                        prop_assert_eq!(is_kept, attempt == current);
                        kept = if is_kept { kept.max(number) } else { kept };
                    }
                }
                Act::Refuse if attempts.len() < 8 => {
                    let reason = "no room".to_owned();
                    world.event(stream, WorkerEvent::Refused { attempt: current, reason });
                    granted += 1;
                    world.event(stream, WorkerEvent::Granted { total: granted });
                    let mut effects = world.commit();
                    // It is given again at once only the first time.
                    while assignments(&effects).is_empty() {
                        beat += 1;
                        world.beat(stream, beat, 0, vec![]);
                        effects = world.tick_through(1_000, 500);
                    }
                    let told = marks(&effects)[0].unwrap_or(0);
                    prop_assert_eq!(told, kept);
                    attempts.push(assignments(&effects)[0].1);
                }
                Act::Refuse => {}
                Act::Restart => {
                    world.restart();
                    stream += 1;
                    granted = 1;
                    world.worker(1, stream, 1, vec![current], stream);
                }
                Act::Pass(ms) => world.pass(ms),
            }
            let stored = world.tables.checkpoints.get(&current.run).map_or(0, |it| it.number);
            prop_assert_eq!(stored, kept);
        }
    }
}
