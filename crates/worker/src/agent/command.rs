//! Joins an attempt of the SDK's runtime with a command under its supervisor.
//!
//! One task per attempt: it gives the command to a supervisor, passes orders on (longer lease, stop, abort), brings the
//! output to the server at the pace the server takes it, and reports the end when no process of the attempt is left and
//! its output has been read.

use std::path::PathBuf;
use std::time::Duration;

use drumtower_core::model::MonoMs;
use drumtower_proto::worker::v1 as wire;
use drumtower_sdk::executor::{Control, Executor, Output, OutputStream, Reporter};
use drumtower_sdk::session::StopReason;
use tokio::sync::{mpsc, oneshot};

use super::environment;
use crate::exec::{self, Chunk, KillReason, Outcome, Reason, Running, Spec, Stream, TRUNCATED};
use crate::supervisor::BootMs;

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(5);

/// Runs argument vectors.
pub(super) struct Commands {
    pub(super) scratch_root: PathBuf,
    pub(super) cgroup: bool,
}

enum Order {
    Extend(BootMs),
    Kill(Duration, KillReason),
}

/// What the runtime wants of one attempt.
struct Orders {
    receiver: mpsc::UnboundedReceiver<Order>,
    /// The runtime has let go.
    closed: bool,
}

impl Orders {
    /// The next order; the last one, when the runtime lets go, is to kill.
    async fn next(&mut self) -> Order {
        if self.closed {
            return std::future::pending().await;
        }
        self.receiver.recv().await.unwrap_or_else(|| {
            self.closed = true;
            Order::Kill(Duration::ZERO, KillReason::Draining)
        })
    }
}

struct Hold {
    orders: mpsc::UnboundedSender<Order>,
}

impl Hold {
    /// An attempt that has ended takes no orders.
    fn order(&self, order: Order) {
        let _ = self.orders.send(order);
    }
}

impl Control for Hold {
    fn extend(&self, deadline: MonoMs) {
        self.order(Order::Extend(BootMs(deadline.0)));
    }

    fn stop(&self, reason: StopReason) {
        let reason = match reason {
            StopReason::Cancelled | StopReason::TimedOut => KillReason::Cancelled,
            StopReason::LeaseEnds => KillReason::Fenced,
            StopReason::Draining => KillReason::Draining,
        };
        self.order(Order::Kill(GRACE, reason));
    }

    fn abort(&self) {
        self.order(Order::Kill(Duration::ZERO, KillReason::Draining));
    }
}

impl Executor for Commands {
    fn start(
        &self,
        assign: Box<wire::Assign>,
        deadline: MonoMs,
        reporter: Reporter,
    ) -> Box<dyn Control> {
        let attempt = reporter.attempt();
        let environment = environment::of(&assign);
        let argv = match assign.task {
            Some(wire::assign::Task::Exec(task)) => task.argv,
            _ => Vec::new(),
        };
        let spec = Spec {
            argv,
            env: environment,
            scratch: self
                .scratch_root
                .join(format!("{}-{}", attempt.run_id(), attempt.number)),
            timeout: (assign.timeout_ms > 0).then(|| Duration::from_millis(assign.timeout_ms)),
            timeout_grace: GRACE,
            cgroup: self.cgroup,
        };
        let (orders, receiver) = mpsc::unbounded_channel();
        let ordered = Orders {
            receiver,
            closed: false,
        };
        tokio::spawn(carry_out(spec, BootMs(deadline.0), ordered, reporter));
        Box::new(Hold { orders })
    }
}

async fn carry_out(spec: Spec, deadline: BootMs, mut orders: Orders, reporter: Reporter) {
    let mut running = match exec::spawn(spec, deadline) {
        Ok(running) => running,
        Err(error) => return reporter.finish(not_started(&error.to_string())),
    };
    let (tree_gone, gone) = oneshot::channel();
    let output = running.output();
    let reader = tokio::spawn(read(output, reporter.output().clone(), gone));
    if obey_until(&mut orders, &running, running.started())
        .await
        .is_some()
    {
        reporter.started();
    }
    let outcome = wait(&mut orders, &mut running).await;
    // The reader may have ended before: then there is nobody to tell.
    let _ = tree_gone.send(());
    let truncated = reader.await.unwrap_or(true);
    reporter.finish(end_of(outcome, truncated));
}

/// Passes orders on while something is awaited.
async fn obey_until<T>(
    orders: &mut Orders,
    running: &Running,
    awaited: impl Future<Output = T>,
) -> T {
    tokio::pin!(awaited);
    loop {
        tokio::select! {
            value = &mut awaited => return value,
            order = orders.next() => obey(running, order),
        }
    }
}

async fn wait(orders: &mut Orders, running: &mut Running) -> Outcome {
    loop {
        tokio::select! {
            outcome = running.wait() => return outcome,
            order = orders.next() => obey(running, order),
        }
    }
}

fn obey(running: &Running, order: Order) {
    match order {
        Order::Extend(deadline) => running.extend(deadline),
        Order::Kill(grace, reason) => running.kill(grace, reason),
    }
}

/// Brings output to the server. Once the tree is gone little is left to read, and that little waits for nobody: a server
/// that is away must not hold the end back. Returns whether output was dropped.
async fn read(
    chunks: Option<mpsc::Receiver<Chunk>>,
    output: Output,
    mut gone: oneshot::Receiver<()>,
) -> bool {
    let Some(mut chunks) = chunks else {
        return false;
    };
    let mut tree_lives = true;
    let mut truncated = false;
    while let Some(chunk) = chunks.recv().await {
        truncated = chunk.bytes == TRUNCATED;
        let stream = match chunk.stream {
            Stream::Stdout => OutputStream::Stdout,
            Stream::Stderr => OutputStream::Stderr,
        };
        if tree_lives {
            // A chunk is one part: it is written as a whole or, when the tree goes first, not at all.
            tokio::select! {
                biased;
                () = output.write(stream, &chunk.bytes) => continue,
                _ = &mut gone => tree_lives = false,
            }
        }
        output.write_past_window(stream, &chunk.bytes);
    }
    truncated
}

fn not_started(error: &str) -> wire::Finished {
    let mut end = wire::Finished {
        error: error.to_owned(),
        ..wire::Finished::default()
    };
    end.set_outcome(wire::Outcome::Failed);
    end
}

fn end_of(outcome: Outcome, log_truncated: bool) -> wire::Finished {
    let (verdict, words) = judge(&outcome);
    let mut end = wire::Finished {
        attempt: None,
        outcome: verdict.into(),
        started_wall_ms: outcome
            .started_wall_ms
            .and_then(|ms| i64::try_from(ms).ok())
            .unwrap_or(0),
        duration_ms: outcome.duration_ms,
        exit_code: outcome.exit_code,
        signal: outcome.signal,
        cpu_ms: outcome.cpu_ms,
        peak_memory_bytes: outcome.peak_rss_bytes,
        result: String::new(),
        error: words,
        log_truncated,
    };
    if verdict != wire::Outcome::Succeeded
        && let Some(detail) = outcome.error
    {
        end.error = if end.error.is_empty() {
            detail
        } else {
            format!("{}: {detail}", end.error)
        };
    }
    end
}

fn judge(outcome: &Outcome) -> (wire::Outcome, String) {
    let said = |words: &str| words.to_owned();
    match outcome.reason {
        Reason::Exited => match (outcome.exit_code, outcome.signal) {
            (Some(0), _) => (wire::Outcome::Succeeded, String::new()),
            (Some(code), _) => (
                wire::Outcome::Failed,
                format!("the command exited with code {code}"),
            ),
            (None, Some(signal)) => (
                wire::Outcome::Failed,
                format!("the command was killed by signal {signal}"),
            ),
            (None, None) => (
                wire::Outcome::Failed,
                said("the command ended in an unknown way"),
            ),
        },
        Reason::Deadline => (
            wire::Outcome::LeaseLost,
            said("the worker could not renew its lease"),
        ),
        Reason::Timeout => (
            wire::Outcome::TimedOut,
            said("the run took longer than its timeout"),
        ),
        // The session knows why it was told to stop.
        Reason::Killed(_) => (wire::Outcome::Cancelled, String::new()),
        Reason::AgentGone => (
            wire::Outcome::LeaseLost,
            said("the worker let go of the command"),
        ),
        Reason::NotStarted => (
            wire::Outcome::Failed,
            said("the command could not be started"),
        ),
        Reason::SupervisorLost => (
            wire::Outcome::Failed,
            said("the command's supervisor was lost"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(reason: Reason, exit_code: Option<i32>, signal: Option<i32>) -> Outcome {
        Outcome {
            exit_code,
            signal,
            reason,
            started_wall_ms: Some(5),
            duration_ms: 7,
            cpu_ms: 1,
            peak_rss_bytes: 2,
            error: None,
        }
    }

    #[test]
    fn ends_are_judged_by_how_the_command_ended() {
        let cases = [
            (
                outcome(Reason::Exited, Some(0), None),
                wire::Outcome::Succeeded,
                "",
            ),
            (
                outcome(Reason::Exited, Some(3), None),
                wire::Outcome::Failed,
                "code 3",
            ),
            (
                outcome(Reason::Exited, None, Some(9)),
                wire::Outcome::Failed,
                "signal 9",
            ),
            (
                outcome(Reason::Deadline, None, Some(9)),
                wire::Outcome::LeaseLost,
                "lease",
            ),
            (
                outcome(Reason::Timeout, None, Some(15)),
                wire::Outcome::TimedOut,
                "timeout",
            ),
            (
                outcome(Reason::Killed(KillReason::Cancelled), Some(0), None),
                wire::Outcome::Cancelled,
                "",
            ),
            (
                outcome(Reason::NotStarted, None, None),
                wire::Outcome::Failed,
                "not be started",
            ),
        ];
        for (outcome, verdict, words) in cases {
            let end = end_of(outcome.clone(), false);
            assert_eq!(end.outcome(), verdict, "{outcome:?}");
            assert!(end.error.contains(words), "{}", end.error);
        }
    }

    #[test]
    fn details_are_told_unless_the_command_succeeded() {
        let mut failed = outcome(Reason::NotStarted, None, None);
        failed.error = Some("no such file: /x".to_owned());
        assert_eq!(
            end_of(failed, false).error,
            "the command could not be started: no such file: /x"
        );
        let mut fine = outcome(Reason::Exited, Some(0), None);
        fine.error = Some("scratch stays".to_owned());
        assert_eq!(end_of(fine, true).error, "");
    }
}
