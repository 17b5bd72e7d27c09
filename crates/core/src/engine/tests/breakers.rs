//! A job that keeps failing is left alone for a while, then tried with one run at a time.

use serde_json::json;

use super::super::*;
use super::fires::account;
use super::world::*;
use crate::model::*;

fn broken(name: &str, breaker: serde_json::Value) -> serde_json::Value {
    let mut spec = once(every(name, "1s", "allow"));
    spec["breaker"] = breaker;
    spec
}

struct Shop {
    world: World,
    job: JobId,
    granted: u64,
}

impl Shop {
    fn new(spec: serde_json::Value) -> Self {
        let mut world = World::new();
        let job = world.put(spec);
        world.worker(1, 1, 1000, vec![], 1);
        Self {
            world,
            job,
            granted: 1000,
        }
    }

    /// A second passes, and whatever is given out ends like this. Returns how much was.
    fn second(&mut self, outcome: AttemptOutcome) -> usize {
        self.granted += 100;
        self.world.event(
            1,
            WorkerEvent::Granted {
                total: self.granted,
            },
        );
        let number = self.granted;
        self.world.beat(1, number, 1_000_000, vec![]);
        let given = assignments(&self.world.tick_through(1_000, 500));
        for (stream, attempt) in &given {
            self.world.finish(*stream, *attempt, outcome);
        }
        given.len()
    }

    /// What is given out because of a command.
    fn given_by(&mut self, command: Command) -> Vec<(u64, AttemptRef)> {
        self.world.step(Input::Command {
            ticket: Ticket(900),
            actor: Actor::new("tester"),
            command,
        });
        assignments(&self.world.commit())
    }

    /// The same of so many triggers that obey the overlap.
    fn obeying(&mut self, count: usize) -> Vec<(u64, AttemptRef)> {
        let trigger = Trigger {
            overlap: Obedience::Obey,
            ..Trigger::of(job_ref("a"))
        };
        self.given_by(Command::TriggerRuns {
            triggers: vec![trigger; count],
        })
    }

    fn row(&self) -> Option<&BreakerRow> {
        self.world.tables.breakers.get(&self.job)
    }

    fn state(&self) -> &'static str {
        BreakerRow::state(self.row(), self.world.now.wall)
    }

    fn trigger(&mut self, force: bool) -> Result<Triggered, Refusal> {
        let trigger = Trigger {
            force,
            ..Trigger::of(job_ref("a"))
        };
        let reply = self.world.command(Command::TriggerRuns {
            triggers: vec![trigger],
        });
        match reply? {
            Reply::Triggered(mut results) => results.remove(0),
            other => panic!("{other:?}"),
        }
    }
}

use AttemptOutcome::{Failed, Succeeded};

#[test]
fn it_opens_records_probes_and_closes() {
    let mut shop = Shop::new(broken("a", json!({"failures": 3, "cooldown": "4500ms"})));
    assert_eq!(shop.second(Succeeded), 1);
    assert!(shop.row().is_none(), "a job that never fails has no row");
    for _ in 0..3 {
        assert_eq!(shop.second(Failed), 1);
    }
    assert_eq!(shop.state(), "open");
    for _ in 0..4 {
        assert_eq!(shop.second(Failed), 0);
    }
    let range = shop.world.tables.unfired.values().next().expect("a range");
    assert_eq!((range.count, range.reason), (4, UnfiredReason::Breaker));
    assert_eq!(shop.second(Failed), 1, "the probe");
    assert_eq!(shop.state(), "open", "it failed");
    for _ in 0..8 {
        assert_eq!(shop.second(Failed), 0, "twice as long");
    }
    assert_eq!(shop.second(Succeeded), 1);
    assert_eq!((shop.state(), shop.row()), ("closed", None));
    assert_eq!(shop.second(Succeeded), 1);
    let (runs, unfired) = account(&shop.world, shop.job, START, shop.world.now.wall.0);
    assert_eq!((runs, unfired), (1 + 3 + 1 + 1 + 1, 4 + 8));
}

#[test]
fn one_probe_at_a_time() {
    let mut shop = Shop::new(broken("a", json!({"failures": 1, "cooldown": "1s"})));
    shop.second(Failed);
    let given = assignments(&shop.world.tick_through(5_000, 500));
    assert_eq!(given.len(), 1, "it has not ended yet");
    assert_eq!(shop.state(), "half_open");
    assert!(matches!(
        shop.trigger(false),
        Err(Refusal::BreakerOpen {
            pass: Pass::Probing(_),
            ..
        })
    ));
    shop.world.finish(1, given[0].1, Succeeded);
    assert_eq!(shop.state(), "closed");
}

#[test]
fn it_is_the_same_after_a_restart() {
    let mut shop = Shop::new(broken("a", json!({"failures": 1, "cooldown": "1m"})));
    shop.second(Failed);
    let before = shop.row().cloned();
    shop.world.restart();
    shop.world.worker(1, 2, 1000, vec![], 900);
    shop.world.tick_through(3_000, 500);
    assert_eq!(shop.row().cloned(), before);
    assert!(shop.world.tables.active.is_empty());
}

#[test]
fn triggers_are_refused_unless_forced_and_a_reset_closes_it() {
    let mut shop = Shop::new(broken("a", json!({"failures": 1, "cooldown": "1h"})));
    shop.second(Failed);
    let refusal = shop.trigger(false).expect_err("open");
    let words = refusal.to_string();
    assert!(
        words.contains("until 2027-") && words.contains("reset") && words.contains("force"),
        "{words}"
    );
    shop.trigger(true).expect("forced");
    assert_eq!(shop.state(), "open", "a forced run is no probe");
    let reset = Command::ResetBreaker { job: job_ref("a") };
    let reply = shop.world.command(reset.clone());
    assert!(matches!(reply, Ok(Reply::Job { record, .. }) if record.breaker.is_none()));
    assert_eq!(shop.state(), "closed");
    shop.world.command(reset).expect("again changes nothing");
    let deeds = shop.world.tables.audit.values();
    assert_eq!(
        deeds
            .filter(|deed| deed.action == AuditAction::Reset)
            .count(),
        1
    );
    shop.trigger(false).expect("closed");
    let missing = Command::ResetBreaker {
        job: job_ref("zzz"),
    };
    assert!(matches!(
        shop.world.command(missing),
        Err(Refusal::NoSuchJob(_))
    ));
}

#[test]
fn what_waits_in_the_queue_waits_for_the_breaker_too() {
    let mut spec = broken("a", json!({"failures": 1, "cooldown": "5s"}));
    spec["overlap"] = json!("queue");
    let mut shop = Shop::new(spec);
    let given = assignments(&shop.world.tick_through(3_000, 500));
    assert_eq!(given.len(), 1);
    let effects = shop.world.finish(1, given[0].1, Failed);
    assert!(
        assignments(&effects).is_empty(),
        "the next in the queue would fail too"
    );
    shop.granted += 10;
    shop.world.event(
        1,
        WorkerEvent::Granted {
            total: shop.granted,
        },
    );
    shop.world.beat(1, 50, 1_000_000, vec![]);
    let probe = assignments(&shop.world.tick_through(6_000, 500));
    assert_eq!(
        probe.len(),
        1,
        "it is let through when the cooldown is over"
    );
    shop.world.beat(1, 51, 1_000_000, vec![probe[0].1]);
    let next = assignments(&shop.world.finish(1, probe[0].1, Succeeded));
    assert_eq!((next.len(), shop.state()), (1, "closed"));
}

#[test]
fn a_queue_rests_no_longer_than_the_breaker_says_now() {
    let mut spec = once(noop("a"));
    spec["overlap"] = json!("queue");
    spec["breaker"] = json!({"failures": 1, "cooldown": "30m"});
    let mut shop = Shop::new(spec.clone());
    let given = shop.obeying(4);
    shop.world.finish(1, given[0].1, Failed);
    assert_eq!((shop.second(Failed), shop.state()), (0, "open"));
    // Somebody makes the cooldown shorter and resets the breaker. The next one fails as well.
    spec["breaker"] = json!({"failures": 1, "cooldown": "5s"});
    shop.world.put(spec);
    let given = shop.given_by(Command::ResetBreaker { job: job_ref("a") });
    shop.world.finish(1, given[0].1, Failed);
    assert_eq!((shop.second(Failed), shop.state()), (0, "open"));
    let probed = (0..6).any(|_| shop.second(Succeeded) > 0);
    assert!(probed && shop.state() == "closed", "it still rests");
}

/// It was opened by a clock that was ahead: once that is set right, nobody waits for the time of the wrong one.
#[test]
fn a_queue_does_not_rest_for_a_clock_that_was_ahead() {
    let mut spec = once(noop("a"));
    spec["overlap"] = json!("queue");
    spec["breaker"] = json!({"failures": 1, "cooldown": "30m"});
    let mut shop = Shop::new(spec);
    let given = shop.obeying(3);
    shop.world.step_clock(50_000);
    shop.world.finish(1, given[0].1, Failed);
    assert_eq!((shop.second(Failed), shop.state()), (0, "open"));
    shop.world.step_clock(-50_000);
    let probed = (0..3).any(|_| shop.second(Succeeded) > 0);
    assert!(probed, "it still rests");
}

/// Clocks are corrected by milliseconds all the time: that says nothing about what began long before.
#[test]
fn a_small_step_back_makes_nobody_look_at_queues_that_rest() {
    let mut spec = once(noop("a"));
    spec["overlap"] = json!("queue");
    spec["breaker"] = json!({"failures": 1, "cooldown": "10s"});
    let mut shop = Shop::new(spec);
    let given = shop.obeying(3);
    shop.world.finish(1, given[0].1, Failed);
    assert_eq!((shop.second(Failed), shop.state()), (0, "open"));
    let read = shop.world.parked_read;
    for _ in 0..5 {
        shop.world.step_clock(-20);
        assert_eq!(shop.second(Succeeded), 0);
    }
    assert_eq!(shop.world.parked_read, read);
    let probed = (0..6).any(|_| shop.second(Succeeded) > 0);
    assert!(probed, "it rests no longer than it should");
}

#[test]
fn a_run_of_next_week_is_not_the_probe() {
    let mut shop = Shop::new(broken("a", json!({"failures": 2, "cooldown": "3500ms"})));
    while shop.state() == "closed" {
        shop.second(Failed);
    }
    shop.world.pass(3_500);
    let trigger = Trigger {
        when: Some(When::After(7 * 86_400_000)),
        ..Trigger::of(job_ref("a"))
    };
    let triggers = vec![trigger];
    let made = shop.world.command(Command::TriggerRuns { triggers });
    made.expect("answered");
    let given: usize = (0..10).map(|_| shop.second(Succeeded)).sum();
    assert!(given > 0 && shop.state() == "closed");
}

#[test]
fn an_edit_without_a_breaker_and_a_deletion_forget_it() {
    let mut shop = Shop::new(broken("a", json!({"failures": 1, "cooldown": "1h"})));
    shop.second(Failed);
    assert!(shop.row().is_some());
    shop.world.put(once(every("a", "1s", "allow")));
    assert!(shop.row().is_none());
    assert_eq!(shop.second(Failed), 1);
    assert!(shop.row().is_none(), "nothing is counted without one");
    shop.world
        .put(broken("a", json!({"failures": 1, "cooldown": "1h"})));
    shop.second(Failed);
    assert!(shop.row().is_some());
    let (job, condition) = (job_ref("a"), Condition::Any);
    shop.world
        .command(Command::DeleteJob { job, condition })
        .expect("deleted");
    assert!(shop.row().is_none());
}

#[test]
fn runs_that_are_tried_again_have_not_failed() {
    let mut spec = every("a", "1h", "allow");
    spec["breaker"] = json!({"failures": 1});
    let mut shop = Shop::new(spec);
    shop.trigger(false).expect("made");
    for attempt in 1..=3 {
        assert!(shop.row().is_none(), "attempt {attempt}");
        let mut given = 0;
        while given == 0 {
            given = shop.second(Failed);
        }
    }
    assert_eq!(shop.state(), "open");
}
