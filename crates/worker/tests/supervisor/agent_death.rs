//! The agent dies or freezes, or the supervisor is killed itself: what still holds.

use std::process::Stdio;

use drumtower_worker::exec::Reason;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::attempt::{
    Attempt, LONG_LEASE, Output, SHORT_LEASE, end, patient, process, trials, until,
};
use crate::programs::{AGENT, AGENT_CGROUP, AGENT_LEASE_MS, AGENT_SCRATCH, AGENT_SCRIPT};
use crate::tree::ESCAPE;

trials![
    killed_agent_leaves_nothing,
    killed_agent_leaves_nothing_without_a_cgroup,
    frozen_agent_does_not_outlive_its_lease,
    killed_supervisor_leaves_nothing_where_there_are_cgroups,
    killed_supervisor_leaves_nothing_of_its_session,
    supervisor_is_deaf_to_termination,
];

/// Another process that runs the attempt; returns when its tree has escaped.
async fn agent(attempt: &Attempt, lease_ms: u128) -> Child {
    let mut agent = Command::new(std::env::current_exe().unwrap())
        .arg(AGENT)
        .env(AGENT_SCRIPT, &attempt.spec.argv[2])
        .env(AGENT_SCRATCH, attempt.scratch())
        .env(AGENT_LEASE_MS, lease_ms.to_string())
        .env(AGENT_CGROUP, attempt.spec.cgroup.to_string())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(agent.stdout.take().unwrap()).lines();
    assert_eq!(
        patient(lines.next_line()).await.unwrap().as_deref(),
        Some("escaped")
    );
    agent
}

fn escaper() -> Attempt {
    Attempt::shell(&format!("{ESCAPE} sleep MARKER; :"))
}

async fn until_nothing_is_left(attempt: &Attempt) {
    until("nothing is left", || {
        (attempt.alive().is_empty() && !attempt.scratch().exists()).then_some(())
    })
    .await;
}

async fn agent_killed(cgroup: bool) {
    let mut attempt = escaper();
    attempt.spec.cgroup = cgroup;
    let mut agent = agent(&attempt, LONG_LEASE.as_millis()).await;
    assert!(attempt.alive().len() >= 3);
    agent.start_kill().unwrap();
    patient(agent.wait()).await.unwrap();
    until_nothing_is_left(&attempt).await;
}

async fn killed_agent_leaves_nothing() {
    agent_killed(true).await;
}

async fn killed_agent_leaves_nothing_without_a_cgroup() {
    agent_killed(false).await;
}

async fn frozen_agent_does_not_outlive_its_lease() {
    let attempt = escaper();
    let mut agent = agent(&attempt, SHORT_LEASE.as_millis()).await;
    send(agent.id().unwrap(), libc::SIGSTOP);
    until_nothing_is_left(&attempt).await;
    assert_eq!(process(agent.id().unwrap()).unwrap().state, "T");
    agent.start_kill().unwrap();
    patient(agent.wait()).await.unwrap();
}

async fn killed_supervisor_leaves_nothing_where_there_are_cgroups() {
    let attempt = escaper();
    let mut running = attempt.spawn();
    Output::of(&mut running).until("escaped").await;
    let started = running.started().await.unwrap();
    let Some(cgroup) = started.cgroup else {
        // Not allowed on this machine: the other test says what holds then.
        return;
    };
    send(process(started.pid).unwrap().parent, libc::SIGKILL);
    let outcome = end(&mut running).await;
    assert_eq!(outcome.reason, Reason::SupervisorLost);
    assert_eq!(outcome.started_wall_ms, Some(started.wall_ms));
    attempt.assert_nothing_left();
    assert!(!cgroup.exists());
}

async fn killed_supervisor_leaves_nothing_of_its_session() {
    let mut attempt = Attempt::shell(
        "(sh -c 'trap : TERM HUP; : > up; while :; do sleep 0.01; : MARKER; done' &)
         while [ ! -e up ]; do sleep 0.01; done; echo ready; trap : TERM HUP; sleep MARKER",
    );
    attempt.spec.cgroup = false;
    let mut running = attempt.spawn();
    Output::of(&mut running).until("ready").await;
    send(
        process(running.started().await.unwrap().pid)
            .unwrap()
            .parent,
        libc::SIGKILL,
    );
    let outcome = end(&mut running).await;
    assert_eq!(outcome.reason, Reason::SupervisorLost);
    attempt.assert_nothing_left();
}

async fn supervisor_is_deaf_to_termination() {
    // A service manager that stops the worker sends SIGTERM to all its processes; the agent decides what it means.
    let attempt = Attempt::shell("echo ready; while [ ! -e go ]; do sleep 0.01; done; exit 4");
    let mut running = attempt.spawn();
    Output::of(&mut running).until("ready").await;
    let supervisor = process(running.started().await.unwrap().pid)
        .unwrap()
        .parent;
    for signal in [
        libc::SIGTERM,
        libc::SIGINT,
        libc::SIGHUP,
        libc::SIGQUIT,
        libc::SIGUSR1,
    ] {
        send(supervisor, signal);
    }
    std::fs::write(attempt.scratch().join("go"), "").unwrap();
    assert_eq!(end(&mut running).await.exit_code, Some(4));
}

fn send(pid: u32, signal: libc::c_int) {
    // SAFETY: no memory is passed; the process is one that this test started and has not reaped.
    assert_eq!(unsafe { libc::kill(pid as libc::pid_t, signal) }, 0);
}
