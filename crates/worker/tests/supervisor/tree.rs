//! Whatever a descendant does to get away, it goes with its tree; and what it used is counted.

use std::collections::BTreeSet;
use std::time::Duration;

use drumtower_worker::exec::{KillReason, Reason, Running};

use crate::attempt::{Attempt, LONG_LEASE, Output, SHORT_LEASE, end, process, trials, until};
use crate::programs::{BURN, HOLD};

trials![
    kill_reaches_an_escaper,
    kill_reaches_an_escaper_without_a_cgroup,
    deadline_reaches_an_escaper,
    deadline_reaches_an_escaper_without_a_cgroup,
    end_of_the_command_reaches_an_escaper,
    end_of_the_command_reaches_an_escaper_without_a_cgroup,
    termination_reaches_an_escaper,
    fork_happy_tree_dies,
    fork_happy_tree_dies_without_a_cgroup,
    stopped_process_dies,
    cpu_of_an_orphan_is_counted,
    cpu_of_an_orphan_is_counted_without_a_cgroup,
    memory_of_an_orphan_is_counted,
    memory_of_the_tree_is_summed,
];

/// Leaves behind an orphan with its own session, an empty environment and no descriptors, which has a child, and
/// goes on when both run.
pub const ESCAPE: &str = "
    (setsid env -i /bin/sh -c 'exec 0<&- 1>&- 2>&-; (sleep MARKER &); : > up; sleep MARKER; :' &)
    while [ ! -e up ]; do sleep 0.01; done
    echo escaped
";

/// The orphan really is out of every group that a simple kill could reach.
async fn assert_escaped(attempt: &Attempt, running: &Running) {
    let command = running.started().await.unwrap().pid;
    let supervisor = process(command).unwrap().parent;
    until("the orphans belong to the supervisor alone", || {
        let orphans = attempt.alive().into_iter().filter(|process| {
            process.pid != command && process.parent == supervisor && process.session != supervisor
        });
        (orphans.count() == 2).then_some(())
    })
    .await;
}

fn escaper(then: &str, cgroup: bool) -> Attempt {
    let mut attempt = Attempt::shell(&format!("{ESCAPE}{then}"));
    attempt.spec.cgroup = cgroup;
    attempt
}

async fn killed(cgroup: bool) {
    let attempt = escaper("sleep MARKER; :", cgroup);
    let mut running = attempt.spawn();
    Output::of(&mut running).until("escaped").await;
    assert_escaped(&attempt, &running).await;
    assert!(cgroup || running.started().await.unwrap().cgroup.is_none());
    running.kill(Duration::ZERO, KillReason::Cancelled);
    let outcome = end(&mut running).await;
    assert_eq!(outcome.reason, Reason::Killed(KillReason::Cancelled));
    attempt.assert_nothing_left();
}

async fn kill_reaches_an_escaper() {
    killed(true).await;
}

async fn kill_reaches_an_escaper_without_a_cgroup() {
    killed(false).await;
}

async fn past_the_deadline(cgroup: bool) {
    let attempt = escaper("sleep MARKER; :", cgroup);
    let mut running = attempt.spawn_for(SHORT_LEASE);
    Output::of(&mut running).until("escaped").await;
    let outcome = end(&mut running).await;
    assert_eq!(outcome.reason, Reason::Deadline);
    attempt.assert_nothing_left();
}

async fn deadline_reaches_an_escaper() {
    past_the_deadline(true).await;
}

async fn deadline_reaches_an_escaper_without_a_cgroup() {
    past_the_deadline(false).await;
}

async fn after_its_command(cgroup: bool) {
    let attempt = escaper("exit 9", cgroup);
    let (outcome, output) = attempt.run().await;
    assert_eq!(
        (outcome.reason, outcome.exit_code),
        (Reason::Exited, Some(9))
    );
    assert_eq!(output.text(), "escaped\n");
    attempt.assert_nothing_left();
}

async fn end_of_the_command_reaches_an_escaper() {
    after_its_command(true).await;
}

async fn end_of_the_command_reaches_an_escaper_without_a_cgroup() {
    after_its_command(false).await;
}

async fn termination_reaches_an_escaper() {
    // With a grace this long only SIGTERM to every single process ends the attempt.
    let attempt = escaper("sleep MARKER; :", false);
    let mut running = attempt.spawn();
    Output::of(&mut running).until("escaped").await;
    running.kill(LONG_LEASE, KillReason::Cancelled);
    let outcome = end(&mut running).await;
    assert_eq!(outcome.signal, Some(libc::SIGTERM));
    attempt.assert_nothing_left();
}

async fn forking(cgroup: bool) {
    // Six loops that start processes as fast as they can, each in a session of its own and soon an orphan.
    let mut attempt = Attempt::shell(
        "i=0; while [ $i -lt 6 ]; do
            setsid sh -c 'while :; do (setsid sh -c \"sleep 0.03; : MARKER\" &); done' & i=$((i+1))
         done; wait",
    );
    attempt.spec.cgroup = cgroup;
    let mut running = attempt.spawn();
    // Not all at once: on a busy machine one is gone before the next is started.
    let mut seen = BTreeSet::new();
    until("it forks", || {
        seen.extend(attempt.alive().into_iter().map(|process| process.pid));
        (seen.len() > 30).then_some(())
    })
    .await;
    running.kill(Duration::ZERO, KillReason::Cancelled);
    end(&mut running).await;
    attempt.assert_nothing_left();
}

async fn fork_happy_tree_dies() {
    forking(true).await;
}

async fn fork_happy_tree_dies_without_a_cgroup() {
    forking(false).await;
}

async fn stopped_process_dies() {
    let attempt = escaper(
        "sleep MARKER & kill -STOP $!; echo stopped; kill -STOP $$",
        false,
    );
    let mut running = attempt.spawn();
    Output::of(&mut running).until("stopped").await;
    running.kill(Duration::from_millis(200), KillReason::Cancelled);
    end(&mut running).await;
    attempt.assert_nothing_left();
}

fn this_binary() -> String {
    std::env::current_exe()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned()
}

async fn orphan_burns(cgroup: bool) {
    let script = format!(
        "(setsid sh -c '{} {BURN} 300; : > done' &) ; ",
        this_binary()
    );
    let mut attempt = Attempt::shell(&format!(
        "{script} while [ ! -e done ]; do sleep 0.01; done"
    ));
    attempt.spec.cgroup = cgroup;
    let (outcome, _) = attempt.run().await;
    assert_eq!(outcome.exit_code, Some(0));
    assert!(outcome.cpu_ms >= 300, "{outcome:?}");
}

async fn cpu_of_an_orphan_is_counted() {
    orphan_burns(true).await;
}

async fn cpu_of_an_orphan_is_counted_without_a_cgroup() {
    orphan_burns(false).await;
}

async fn memory_of_an_orphan_is_counted() {
    let script = format!("(setsid {} {HOLD} 64 up &) ; ", this_binary());
    let attempt = Attempt::shell(&format!("{script} while [ ! -e up ]; do sleep 0.01; done"));
    let (outcome, _) = attempt.run().await;
    assert_eq!(outcome.exit_code, Some(0));
    assert!(outcome.peak_rss_bytes >= 64 << 20, "{outcome:?}");
    assert!(outcome.peak_rss_bytes < 128 << 20, "{outcome:?}");
}

async fn memory_of_the_tree_is_summed() {
    let hold = format!("{} {HOLD} 48", this_binary());
    let attempt = Attempt::shell(&format!(
        "{hold} a & (setsid {hold} b &); while [ ! -e a ] || [ ! -e b ]; do sleep 0.01; done"
    ));
    let (outcome, _) = attempt.run().await;
    assert!(outcome.peak_rss_bytes >= 96 << 20, "{outcome:?}");
}
