//! How an attempt ends, and what its outcome says.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use drumtower_worker::exec::{self, KillReason, Reason};
use drumtower_worker::supervisor::BootMs;

use crate::attempt::{Attempt, LONG_LEASE, Output, SHORT_LEASE, end, trials, until};

trials![
    exits_by_itself,
    exit_code_is_reported,
    signal_is_reported,
    missing_program_is_named,
    file_that_is_not_executable_is_named,
    scratch_directory_in_use_is_refused,
    unusable_arguments_are_errors,
    lease_over_before_the_start_starts_nothing,
    lease_deadline_kills,
    extended_lease_outlives_the_first_deadline,
    kill_before_the_start_starts_nothing_that_stays,
    lease_never_shrinks,
    timeout_terminates_then_kills,
    timeout_lets_the_command_say_goodbye,
    kill_waits_for_the_grace_only,
    kill_lets_the_command_say_goodbye,
    grace_is_for_the_whole_tree,
    second_kill_shortens_the_grace,
    dropping_the_handle_kills,
];

async fn exits_by_itself() {
    let attempt = Attempt::shell("true");
    let before = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_millis() as u64;
    let (outcome, output) = attempt.run().await;
    assert_eq!((outcome.exit_code, outcome.signal), (Some(0), None));
    assert_eq!((outcome.reason, outcome.error), (Reason::Exited, None));
    assert!(outcome.started_wall_ms.unwrap() >= before);
    assert!(outcome.peak_rss_bytes > 0);
    assert!(output.chunks.is_empty());
    attempt.assert_nothing_left();
}

async fn exit_code_is_reported() {
    let (outcome, _) = Attempt::shell("exit 42").run().await;
    assert_eq!((outcome.exit_code, outcome.signal), (Some(42), None));
    assert_eq!(outcome.reason, Reason::Exited);
}

async fn signal_is_reported() {
    let (outcome, _) = Attempt::shell("kill -SEGV $$").run().await;
    assert_eq!(
        (outcome.exit_code, outcome.signal),
        (None, Some(libc::SIGSEGV))
    );
    assert_eq!(outcome.reason, Reason::Exited);
}

async fn missing_program_is_named() {
    let mut attempt = Attempt::shell("");
    attempt.spec.argv = vec!["no-such-program".into()];
    let mut running = attempt.spawn();
    assert!(running.started().await.is_none());
    let outcome = end(&mut running).await;
    assert_eq!(
        (outcome.reason, outcome.started_wall_ms),
        (Reason::NotStarted, None)
    );
    let error = outcome.error.unwrap();
    assert!(
        error.contains("no-such-program") && error.contains("No such file"),
        "{error}"
    );
    attempt.assert_nothing_left();
}

async fn file_that_is_not_executable_is_named() {
    let mut attempt = Attempt::shell("");
    attempt.spec.argv = vec!["/etc/passwd".into()];
    let (outcome, _) = attempt.run().await;
    assert_eq!(outcome.reason, Reason::NotStarted);
    let error = outcome.error.unwrap();
    assert!(
        error.contains("/etc/passwd") && error.contains("executable"),
        "{error}"
    );
}

async fn scratch_directory_in_use_is_refused() {
    let attempt = Attempt::shell("true");
    std::fs::create_dir_all(attempt.scratch()).unwrap();
    let (outcome, _) = attempt.run().await;
    assert_eq!(outcome.reason, Reason::NotStarted);
    assert!(outcome.error.unwrap().contains("scratch directory"));
    assert!(attempt.scratch().exists(), "it belongs to somebody else");
}

async fn unusable_arguments_are_errors() {
    let refused = |change: fn(&mut exec::Spec)| {
        let mut spec = Attempt::shell("true").spec;
        change(&mut spec);
        exec::spawn(spec, BootMs::now().plus(LONG_LEASE))
            .err()
            .expect("refused")
            .to_string()
    };
    assert!(refused(|spec| spec.argv.clear()).contains("argv"));
    assert!(refused(|spec| spec.argv.push("a\0b".into())).contains("argv[3]"));
    assert!(refused(|spec| spec.env.push(("A=B".into(), String::new()))).contains("A=B"));
    assert!(refused(|spec| spec.env.push(("BIG".into(), "x".repeat(128 << 10)))).contains("BIG"));
    assert!(refused(|spec| spec.argv = vec!["x".repeat(100 << 10); 11]).contains("bound"));
    assert!(refused(|spec| spec.scratch = "here".into()).contains("here"));
}

async fn lease_over_before_the_start_starts_nothing() {
    let attempt = Attempt::shell("echo started");
    let mut running = exec::spawn(attempt.spec.clone(), BootMs(1)).unwrap();
    let mut output = Output::of(&mut running);
    let outcome = end(&mut running).await;
    output.rest().await;
    assert_eq!(
        (outcome.reason, outcome.started_wall_ms),
        (Reason::Deadline, None)
    );
    assert_eq!(output.text(), "");
    attempt.assert_nothing_left();
}

async fn lease_deadline_kills() {
    let attempt = Attempt::shell("trap '' TERM; sleep MARKER");
    let deadline = BootMs::now().plus(SHORT_LEASE);
    let mut running = exec::spawn(attempt.spec.clone(), deadline).unwrap();
    let outcome = end(&mut running).await;
    assert!(BootMs::now() >= deadline);
    assert_eq!(
        (outcome.reason, outcome.signal),
        (Reason::Deadline, Some(libc::SIGKILL))
    );
    attempt.assert_nothing_left();
}

async fn extended_lease_outlives_the_first_deadline() {
    let attempt = Attempt::shell("echo ready; while [ ! -e go ]; do sleep 0.01; done; echo alive");
    let deadline = BootMs::now().plus(SHORT_LEASE);
    let mut running = exec::spawn(attempt.spec.clone(), deadline).unwrap();
    running.extend(BootMs::now().plus(LONG_LEASE));
    let mut output = Output::of(&mut running);
    output.until("ready").await;
    until("the first deadline is over", || {
        (BootMs::now() > deadline).then_some(())
    })
    .await;
    std::fs::write(attempt.scratch().join("go"), "").unwrap();
    output.rest().await;
    let outcome = end(&mut running).await;
    assert_eq!(
        (outcome.reason, outcome.exit_code),
        (Reason::Exited, Some(0))
    );
    assert_eq!(output.text(), "ready\nalive\n");
}

async fn kill_before_the_start_starts_nothing_that_stays() {
    let attempt = Attempt::shell("sleep MARKER");
    let mut running = attempt.spawn();
    running.kill(Duration::ZERO, KillReason::Fenced);
    let outcome = end(&mut running).await;
    assert_eq!(outcome.reason, Reason::Killed(KillReason::Fenced));
    attempt.assert_nothing_left();
}

async fn lease_never_shrinks() {
    let attempt = Attempt::shell("echo ready; while [ ! -e go ]; do sleep 0.01; done");
    let mut running = attempt.spawn();
    Output::of(&mut running).until("ready").await;
    running.extend(BootMs(1));
    // Orders arrive in order: had the deadline been taken, the kill would come too late to be the reason.
    running.kill(LONG_LEASE, KillReason::Cancelled);
    let outcome = end(&mut running).await;
    assert_eq!(outcome.reason, Reason::Killed(KillReason::Cancelled));
}

async fn timeout_terminates_then_kills() {
    let mut attempt = Attempt::shell("trap '' TERM; sleep MARKER & wait; sleep MARKER");
    attempt.spec.timeout = Some(SHORT_LEASE);
    attempt.spec.timeout_grace = Duration::from_millis(100);
    let (outcome, _) = attempt.run().await;
    assert_eq!(
        (outcome.reason, outcome.signal),
        (Reason::Timeout, Some(libc::SIGKILL))
    );
    assert!(outcome.duration_ms >= SHORT_LEASE.as_millis() as u64 + 100);
    attempt.assert_nothing_left();
}

async fn timeout_lets_the_command_say_goodbye() {
    let mut attempt = Attempt::shell("trap 'echo goodbye; exit 7' TERM; sleep MARKER & wait");
    attempt.spec.timeout = Some(SHORT_LEASE);
    attempt.spec.timeout_grace = LONG_LEASE;
    let (outcome, output) = attempt.run().await;
    assert_eq!(
        (outcome.reason, outcome.exit_code),
        (Reason::Timeout, Some(7))
    );
    assert_eq!(output.text(), "goodbye\n");
}

async fn kill_waits_for_the_grace_only() {
    let attempt =
        Attempt::shell("trap 'echo ignored' TERM; echo ready; while :; do sleep 0.01; done");
    let mut running = attempt.spawn();
    let mut output = Output::of(&mut running);
    output.until("ready").await;
    running.kill(SHORT_LEASE, KillReason::Cancelled);
    output.until("ignored").await;
    let outcome = end(&mut running).await;
    assert_eq!(outcome.reason, Reason::Killed(KillReason::Cancelled));
    assert_eq!(outcome.signal, Some(libc::SIGKILL));
    attempt.assert_nothing_left();
}

async fn kill_lets_the_command_say_goodbye() {
    let attempt = Attempt::shell(
        "trap 'echo goodbye; exit 3' TERM; echo ready; while :; do sleep 0.01; done",
    );
    let mut running = attempt.spawn();
    let mut output = Output::of(&mut running);
    output.until("ready").await;
    running.kill(LONG_LEASE, KillReason::Draining);
    output.until("goodbye").await;
    let outcome = end(&mut running).await;
    assert_eq!(outcome.reason, Reason::Killed(KillReason::Draining));
    assert_eq!((outcome.exit_code, outcome.signal), (Some(3), None));
}

async fn grace_is_for_the_whole_tree() {
    // The outer shell dies of SIGTERM at once; the inner one still has something to say.
    let attempt = Attempt::shell(
        "/bin/sh -c 'trap \"sleep 0.3; echo goodbye; exit\" TERM; echo ready; \
         while :; do sleep 0.01; done'; true",
    );
    let mut running = attempt.spawn();
    let mut output = Output::of(&mut running);
    output.until("ready").await;
    running.kill(LONG_LEASE, KillReason::Cancelled);
    output.rest().await;
    let outcome = end(&mut running).await;
    assert_eq!(outcome.signal, Some(libc::SIGTERM));
    assert!(output.text().ends_with("goodbye\n"), "{}", output.text());
}

async fn second_kill_shortens_the_grace() {
    let attempt =
        Attempt::shell("trap 'echo ignored' TERM; echo ready; while :; do sleep 0.01; done");
    let mut running = attempt.spawn();
    let mut output = Output::of(&mut running);
    output.until("ready").await;
    running.kill(LONG_LEASE, KillReason::Draining);
    output.until("ignored").await;
    running.kill(Duration::ZERO, KillReason::Cancelled);
    let outcome = end(&mut running).await;
    assert_eq!(outcome.reason, Reason::Killed(KillReason::Draining));
    attempt.assert_nothing_left();
}

async fn dropping_the_handle_kills() {
    let attempt = Attempt::shell("echo ready; sleep MARKER");
    let mut running = attempt.spawn();
    Output::of(&mut running).until("ready").await;
    drop(running);
    until("the tree is gone", || {
        (attempt.alive().is_empty() && !attempt.scratch().exists()).then_some(())
    })
    .await;
}
