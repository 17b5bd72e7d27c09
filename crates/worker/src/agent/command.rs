//! Joins an attempt of the SDK's runtime with a command under its supervisor.
//!
//! One task per attempt: it gives the command to a supervisor, passes orders on (longer lease, stop, abort), brings the
//! output to the server at the pace the server takes it, and reports the end when no process of the attempt is left and
//! its output has been read. An attempt for which not even a supervisor could be started is handed back to the server.

use std::path::PathBuf;
use std::time::Duration;

use drumtower_core::model::MonoMs;
use drumtower_proto::worker::v1 as wire;
use drumtower_sdk::executor::{Control, Executor, Output, OutputStream, Reporter};
use drumtower_sdk::session::StopReason;
use tokio::sync::{mpsc, oneshot};

use super::judge::{Terms, end_of};
use super::{environment, notes};
use crate::exec::{
    self, Chunk, Groups, KillReason, Limits, Outcome, Running, Spec, Stream, TRUNCATED,
};
use crate::supervisor::BootMs;
use wire::assign::Task;

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(5);

/// Before a supervisor that could not be started is tried again; after the last one the attempt is handed back.
const PAUSES_MS: [u64; 6] = [100, 200, 400, 800, 1600, 1900];

/// Runs programs and scripts.
pub(super) struct Commands {
    pub(super) scratch_root: PathBuf,
    pub(super) cgroup: bool,
    pub(super) groups: Option<Groups>,
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
            StopReason::Cancelled | StopReason::TimedOut | StopReason::NoProgress => {
                KillReason::Cancelled
            }
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
        let (spec, terms) = self.spec(*assign, &reporter);
        let (orders, receiver) = mpsc::unbounded_channel();
        let ordered = Orders {
            receiver,
            closed: false,
        };
        tokio::spawn(carry_out(
            spec,
            terms,
            BootMs(deadline.0),
            ordered,
            reporter,
        ));
        Box::new(Hold { orders })
    }
}

impl Commands {
    /// What to run, and by what its end is judged.
    fn spec(&self, assign: wire::Assign, reporter: &Reporter) -> (Spec, Terms) {
        let attempt = reporter.attempt();
        let told = environment::of(&assign);
        let (argv, script, process) = match assign.task {
            Some(Task::Exec(task)) if task.shell.is_empty() => (task.argv, None, task.process),
            Some(Task::Exec(task)) => {
                let argv = ["/bin/sh", "-c", &task.shell].map(str::to_owned).into();
                (argv, None, task.process)
            }
            Some(Task::Script(task)) => (task.interpreter, Some(task.body), task.process),
            _ => (Vec::new(), None, None),
        };
        let process = process.unwrap_or_default();
        let limits = limits(process.limits.unwrap_or_default());
        let some = |text: String| (!text.is_empty()).then_some(text);
        let spec = Spec {
            argv,
            script,
            // What the worker tells comes last and wins.
            env: process.env.into_iter().chain(told).collect(),
            scratch: self
                .scratch_root
                .join(format!("{}-{}", attempt.run_id(), attempt.number)),
            timeout: (assign.timeout_ms > 0).then(|| Duration::from_millis(assign.timeout_ms)),
            timeout_grace: GRACE,
            cgroup: self.cgroup,
            groups: self.groups.clone(),
            cwd: some(process.cwd).map(PathBuf::from),
            user: some(process.user),
            stdin: process.stdin,
            resume: reporter.notes().last_checkpoint().is_some(),
            limits,
        };
        let mut terms = Terms {
            limits,
            ..Terms::default()
        };
        if !process.success_codes.is_empty() {
            let codes = process.success_codes.iter();
            terms.success = codes.filter_map(|code| i32::try_from(*code).ok()).collect();
        }
        (spec, terms)
    }
}

fn limits(given: wire::ResourceLimits) -> Limits {
    Limits {
        memory_bytes: (given.memory_bytes > 0).then_some(given.memory_bytes),
        cpu_milli: (given.cpu_milli > 0).then_some(given.cpu_milli),
        open_files: (given.open_files > 0).then_some(given.open_files),
        processes: (given.processes > 0).then_some(given.processes),
    }
}

async fn carry_out(
    spec: Spec,
    terms: Terms,
    deadline: BootMs,
    mut orders: Orders,
    reporter: Reporter,
) {
    let scratch = spec.scratch.clone();
    if let Some(checkpoint) = reporter.notes().last_checkpoint()
        && let Err(error) = notes::give(&scratch, checkpoint)
    {
        return reporter.refuse(&format!("its checkpoint cannot be written: {error}"));
    }
    let begun = begin(&spec, deadline, &mut orders).await;
    let _given = spec.resume.then(|| notes::Given(scratch.clone()));
    let mut running = match begun {
        Begun::Running(running) => running,
        Begun::Never(error) => return reporter.finish(not_started(&error.to_string())),
        Begun::NotHere(error) => return reporter.refuse(&error.to_string()),
        // Dropped, it reports that the attempt obeyed.
        Begun::Stopped => return drop(reporter),
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
    let (notes, output) = (reporter.notes().clone(), reporter.output().clone());
    let mut watch = notes::Watch::new(scratch, notes, output);
    let mut outcome = tokio::select! {
        outcome = wait(&mut orders, &mut running) => outcome,
        never = watch.run() => match never {},
    };
    // The reader may have ended before: then there is nobody to tell.
    let _ = tree_gone.send(());
    let truncated = reader.await.unwrap_or(true);
    watch.progress(outcome.progress.take());
    let checkpoint = outcome.checkpoint;
    let end = end_of(&terms, outcome, truncated);
    if checkpoint {
        watch.take_last(end.outcome() != wire::Outcome::Succeeded);
    }
    reporter.finish(end);
}

enum Begun {
    Running(Running),
    /// It cannot be started anywhere.
    Never(exec::Error),
    /// This worker cannot start anything at present, and nothing of it was started.
    NotHere(exec::Error),
    /// It was told to stop before that.
    Stopped,
}

/// A system that lacks descriptors, memory or processes has some again when other runs end, so a supervisor that cannot be
/// started is tried again. Meanwhile the attempt keeps its place, and the server does not send it back and forth.
async fn begin(spec: &Spec, mut deadline: BootMs, orders: &mut Orders) -> Begun {
    let mut pauses = PAUSES_MS.into_iter().map(Duration::from_millis);
    loop {
        let lack = match exec::spawn(spec.clone(), deadline) {
            Ok(running) => return Begun::Running(running),
            Err(error @ exec::Error::Supervisor(_)) => error,
            Err(error) => return Begun::Never(error),
        };
        let Some(pause) = pauses.next() else {
            return Begun::NotHere(lack);
        };
        let pause = tokio::time::sleep(pause);
        tokio::pin!(pause);
        loop {
            tokio::select! {
                () = &mut pause => break,
                order = orders.next() => match order {
                    Order::Extend(later) => deadline = deadline.max(later),
                    Order::Kill(..) => return Begun::Stopped,
                },
            }
        }
    }
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
