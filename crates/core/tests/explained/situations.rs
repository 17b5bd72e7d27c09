//! Runs in every situation that has words of its own.

use drumtower_core::engine::{Held, WorkerState};
use drumtower_core::explain::run::{Account, Known, explain};
use drumtower_core::model::{
    Actor, AttemptOutcome, CancelRequest, CheckpointMark, DrainRow, Limits, Reason, RunId,
    RunState, Verdict, WorkerName, WorkerRef,
};
use serde_json::json;

use crate::life::{Life, at, namespace};

use AttemptOutcome::{Cancelled, Failed, Lost, Snoozed, Succeeded, TimedOut, Undelivered};

const CODE_3: &str = "the command exited with code 3";
const LEASE: &str = "its worker did not renew the lease";
const FORGOTTEN: &str = "its worker does not know it any more";
const BROKE: &str = "the connection broke before it arrived";
const SHUT_DOWN: &str = "the worker shut down before the attempt ended";
const SLOW: &str = "the run took longer than its timeout";

pub fn all() -> Vec<(&'static str, Account)> {
    let mut all = waiting();
    all.extend(held());
    all.extend(completed());
    all.extend(failed());
    all.extend(cancelled());
    all
}

/// What an attempt ended with that was stopped at the deadline of a drain.
fn drained(since: f64, deadline: f64) -> String {
    let worker = WorkerRef {
        name: WorkerName::new("mill").expect("a name"),
        namespace: None,
    };
    let drain = DrainRow {
        worker,
        since: at(since),
        actor: Actor::new("ann"),
        deadline: Some(at(deadline)),
        forced: Some(at(deadline)),
    };
    drain.stopped().expect("the deadline has come")
}

fn handler(name: &str) -> serde_json::Value {
    json!({"task": {"handler": {"name": name}}})
}

fn waiting() -> Vec<(&'static str, Account)> {
    let later = Life::new().by("ann").change(|it| it.run.due = at(7_200.0));
    let queued = || {
        let keys = json!({"overlap": "queue", "breaker": {}, "namespace": "billing"});
        Life::of_job(keys).change(|it| it.run.standing.queued = true)
    };
    let once_failed = || {
        Life::new()
            .given(0.01, "mill")
            .started(0.03)
            .ended(2.0, Failed, CODE_3)
    };
    let put_off =
        |end: &mut drumtower_core::model::AttemptEnd| end.verdict = Some(Verdict::Snooze(300_000));
    vec![
        ("waits_for_its_time", later.seen(600.0)),
        (
            "waits_for_its_turn",
            Life::of_job(json!({"overlap": {"key": "/customer", "on_full": "queue"}}))
                .change(|it| {
                    it.run.standing.queued = true;
                    it.run.standing.key = Some("7".to_owned());
                })
                .seen(90.0),
        ),
        ("breaker_open", queued().broken(-20.0, None).seen(10.0)),
        (
            "breaker_probing",
            queued().broken(-70.0, Some(RunId(0x42_000))).seen(10.0),
        ),
        (
            "waits_for_its_turn_behind_a_breaker_that_cooled",
            queued().broken(-70.0, None).seen(10.0),
        ),
        ("waits_after_a_failure", once_failed().seen(2.4)),
        (
            "waits_after_a_timeout_by_a_rule",
            Life::of_job(
                json!({"retry": {"on": [{"exit_codes": [2], "action": "give_up"},
                {"timeout": true, "signals": [9, 15], "action": "retry", "after": "10m"}]}}),
            )
            .given(0.01, "mill")
            .started(0.03)
            .ended(3_600.0, TimedOut, SLOW)
            .seen(3_660.0),
        ),
        (
            "waits_as_the_task_asked",
            Life::of_job(handler("bill"))
                .given(0.01, "mill")
                .started(0.03)
                .ended_with(1.0, Failed, "the gateway is busy", |end| {
                    end.verdict = Some(Verdict::RetryAfter(30_000));
                })
                .seen(11.0),
        ),
        (
            "put_off_by_its_handler",
            Life::of_job(handler("bill"))
                .given(0.01, "mill")
                .started(0.03)
                .ended_with(0.5, Snoozed, "", put_off)
                .seen(60.0),
        ),
        ("waits_for_room", Life::new().seen(12.0)),
        (
            "waits_parked",
            Life::new()
                .change(|it| it.run.parked = Some("default/exec/1".to_owned()))
                .seen(750.0),
        ),
        (
            "waits_for_a_limit",
            Life::new()
                .limited("@job/7", Held::Full { held: 2, most: 2 })
                .seen(12.0),
        ),
        (
            "waits_for_a_key",
            Life::new()
                .limited("@queue/default/mail/=eu", Held::Full { held: 1, most: 1 })
                .seen(12.0),
        ),
        (
            "waits_for_a_rate",
            Life::new()
                .limited("@job/7", Held::Rate { until: at(15.0) })
                .seen(12.0),
        ),
        (
            "queue_paused",
            Life::of_job(json!({"namespace": "billing"}))
                .limited("@queue/billing/mail", Held::Paused)
                .seen(90.0),
        ),
        (
            "no_worker",
            Life::new().change(|it| it.fleet.clear()).seen(90.0),
        ),
        (
            "nobody_took_it_in_time",
            Life::of_job(json!({"start_timeout": "1m"}))
                .change(|it| {
                    let (run, at) = (&mut it.run, at(60.0));
                    run.start_by = Some(at);
                    run.transition(RunState::Failed, at, Reason::StartTimedOut);
                    let cause = "it was not given to a worker within its start_timeout of 1m: no worker that can run it was connected and had room";
                    run.error = Some(cause.to_owned());
                })
                .seen(90.0),
        ),
        ("no_worker_and_nobody_to_ask", {
            let life = Life::new();
            explain(&Known {
                run: &life.run,
                job: None,
                spec: None,
                fleet: None,
                limit: None,
                breaker: None,
                now: at(5.0),
            })
        }),
        (
            "no_worker_for_the_namespace",
            Life::of_job(json!({"namespace": "billing"}))
                .change(|it| {
                    it.fleet
                        .iter_mut()
                        .for_each(|worker| worker.namespace = Some(namespace("sales")));
                })
                .seen(90.0),
        ),
        (
            "no_handler",
            Life::of_job(handler("count-words")).seen(90.0),
        ),
        ("too_heavy", Life::of_job(json!({"weight": 6})).seen(90.0)),
        (
            "workers_leaving",
            Life::new()
                .change(|it| {
                    it.fleet
                        .iter_mut()
                        .for_each(|worker| worker.state = WorkerState::Maintenance);
                })
                .seen(3.0),
        ),
    ]
}

fn held() -> Vec<(&'static str, Account)> {
    let running = || Life::new().given(0.01, "mill").started(0.03);
    vec![
        ("given", Life::new().given(0.01, "mill").seen(2.0)),
        (
            "running_with_progress",
            running().progress(700.0, 42, "copying files").seen(703.0),
        ),
        (
            "running_on_a_silent_worker",
            running()
                .change(|it| {
                    it.fleet[0].state = WorkerState::Offline;
                    it.fleet[0].last_heartbeat = Some(at(20.0));
                })
                .seen(31.0),
        ),
        (
            "running_after_a_move_from_a_checkpoint",
            running()
                .checkpoint(40.0, 7)
                .ended(62.0, Lost, LEASE)
                .given(62.1, "forge")
                .started(62.2)
                .seen(70.0),
        ),
        (
            "running_after_a_drain",
            running()
                .checkpoint(40.0, 7)
                .ended(62.0, Cancelled, &drained(2.0, 60.0))
                .given(62.1, "forge")
                .started(62.2)
                .seen(70.0),
        ),
        (
            "running_after_a_worker_shut_down",
            running()
                .ended(62.0, Cancelled, SHUT_DOWN)
                .given(62.1, "forge")
                .started(62.2)
                .seen(70.0),
        ),
        (
            "running_after_a_stop_without_a_word",
            running()
                .ended(62.0, Cancelled, "")
                .given(62.1, "forge")
                .started(62.2)
                .seen(70.0),
        ),
        ("being_cancelled", running().cancel(30.0, "ann").seen(33.0)),
    ]
}

fn completed() -> Vec<(&'static str, Account)> {
    vec![
        (
            "completed",
            Life::new()
                .given(0.01, "mill")
                .started(0.03)
                .ended(1.5, Succeeded, "")
                .seen(60.0),
        ),
        (
            "completed_late_after_retries",
            Life::new()
                .made(720.0)
                .given(745.0, "mill")
                .started(746.5)
                .ended_with(750.0, Failed, "", |end| end.signal = Some(9))
                .given(751.0, "forge")
                .started(751.1)
                .ended(755.0, Succeeded, "")
                .seen(800.0),
        ),
        (
            "completed_as_a_repetition_from_a_checkpoint",
            Life::new()
                .by("ann")
                .change(|it| {
                    it.run.rerun_of = Some(RunId(0x0067_7000_0000_1000));
                    it.run.checkpoint = Some(CheckpointMark {
                        number: 4,
                        attempt: 0,
                        at: at(0.0),
                        bytes: 100,
                    });
                })
                .given(0.01, "mill")
                .started(0.03)
                .ended(1.5, Succeeded, "")
                .seen(60.0),
        ),
    ]
}

fn failed() -> Vec<(&'static str, Account)> {
    let mut thrice = Life::new();
    let mut lost = Life::new();
    let mut undelivered = Life::new();
    for try_no in 0..3 {
        let began = 10.0 * f64::from(try_no);
        thrice =
            thrice
                .given(began, "mill")
                .started(began + 0.02)
                .ended(began + 2.0, Failed, CODE_3);
        let (worker, cause) =
            [("mill", LEASE), ("forge", FORGOTTEN), ("mill", LEASE)][try_no as usize];
        lost = lost
            .given(began, worker)
            .started(began + 0.02)
            .ended(began + 9.0, Lost, cause);
    }
    for try_no in 0..10 {
        let began = f64::from(try_no);
        let cause = ["too many open files", BROKE][try_no as usize % 2];
        undelivered = undelivered
            .given(began, "mill")
            .ended(began + 0.5, Undelivered, cause);
    }
    let once = |keys| Life::of_job(keys).given(0.01, "mill").started(0.03);
    vec![
        ("failed_three_times", thrice.seen(3_600.0)),
        (
            "failed_once_and_no_more",
            once(json!({"namespace": "billing", "retry": {"max_attempts": 1, "dead_letter": "drop"}}))
                .checkpoint(1.0, 2)
                .ended(2.0, Failed, CODE_3)
                .seen(60.0),
        ),
        (
            "failed_for_its_time",
            once(json!({"timeout": "10s", "retry": {"max_attempts": 1}}))
                .ended(10.03, TimedOut, SLOW)
                .seen(60.0),
        ),
        (
            "given_up_by_a_rule",
            once(json!({"retry": {"on": [{"exit_codes": [2, 64], "http_status": ["4xx"], "action": "give_up"}]}}))
                .ended_with(2.0, Failed, "the command exited with code 64", |end| {
                    end.exit_code = Some(64);
                })
                .seen(60.0),
        ),
        (
            "given_up_by_the_task",
            once(handler("bill"))
                .ended_with(0.5, Failed, "there is no customer 7", |end| {
                    end.verdict = Some(Verdict::GiveUp);
                })
                .seen(60.0),
        ),
        (
            "failed_for_others",
            Life::of_job(json!({"overlap": "fail"}))
                .change(|it| {
                    let (state, reason) = (RunState::Failed, Reason::Overlap);
                    it.run.transition(state, at(0.0), reason);
                    it.run.error = Some("1 of its job had not ended when it was due (overlap: fail)".into());
                })
                .seen(60.0),
        ),
        ("lost_three_times", lost.seen(3_600.0)),
        (
            "stopped_and_never_repeated",
            once(json!({"retry": {"max_lost": 1}}))
                .ended(62.0, Cancelled, &drained(2.0, 60.0))
                .seen(3_600.0),
        ),
        ("stopped_too_often", {
            let mut life = Life::new();
            for try_no in 0..Limits::STOPS {
                let began = 10.0 * try_no as f64;
                life = life.given(began, "mill").started(began + 0.02).ended(began + 9.0, Cancelled, SHUT_DOWN);
            }
            life.seen(3_600.0)
        }),
        ("undelivered_ten_times", undelivered.seen(3_600.0)),
        ("put_off_too_often", {
            let mut life = Life::of_job(handler("bill"));
            for try_no in 0..101 {
                let began = f64::from(try_no);
                life = life.given(began, "mill").ended_with(began + 0.5, Snoozed, "", |end| {
                    end.verdict = Some(Verdict::Snooze(500));
                });
            }
            life.seen(200.0)
        }),
        ("failed_and_the_version_is_gone", {
            let life = once(json!({"retry": {"max_attempts": 1}})).ended(2.0, Failed, CODE_3);
            explain(&Known {
                run: &life.run,
                job: None,
                spec: None,
                fleet: None,
                limit: None,
                breaker: None,
                now: at(60.0),
            })
        }),
    ]
}

fn cancelled() -> Vec<(&'static str, Account)> {
    let running = || Life::new().given(0.01, "mill").started(0.03);
    vec![
        (
            "superseded",
            Life::of_job(json!({"overlap": "cancel_old"}))
                .change(|it| {
                    let (state, reason) = (RunState::Cancelled, Reason::Superseded);
                    it.run.transition(state, at(60.0), reason);
                    it.run.error =
                        Some("a newer run of its job took its place before it started".into());
                })
                .seen(70.0),
        ),
        (
            "expired_in_the_queue",
            Life::of_job(json!({"overlap": "queue"}))
                .change(|it| {
                    let (state, reason) = (RunState::Cancelled, Reason::Expired);
                    it.run.transition(state, at(3_700.0), reason);
                })
                .seen(3_800.0),
        ),
        (
            "cancelled_while_waiting",
            Life::new().cancel(5.0, "ann").seen(60.0),
        ),
        (
            "cancelled_with_its_job",
            Life::of_job(json!({"overlap": "queue"}))
                .cancel(5.0, "ann")
                .change(|it| it.run.error = Some(CancelRequest::JOB_DELETED.to_owned()))
                .seen(60.0),
        ),
        (
            "cancelled_and_confirmed",
            running()
                .cancel(5.0, "ann")
                .ended(7.2, Cancelled, "")
                .seen(60.0),
        ),
        (
            "cancelled_and_never_confirmed",
            running()
                .cancel(5.0, "ann")
                .ended(22.0, Lost, LEASE)
                .seen(60.0),
        ),
        (
            "cancelled_between_two_tries",
            running()
                .ended(2.0, Failed, CODE_3)
                .cancel(2.5, "ann")
                .seen(60.0),
        ),
    ]
}
