//! Executor `exec`: runs an argument vector under a [supervisor](crate::supervisor), one per attempt.
//!
//! [`spawn`] gives a [`Running`]: its output as a bounded channel of [`Chunk`]s, its lease to extend, its tree to
//! kill, its [`Outcome`] to wait for. Dropping it kills the tree. A command that cannot be started, is killed or
//! fails is an outcome; [`Error`] is for an attempt that cannot even be given to a supervisor.
//!
//! Output and outcome do not wait for each other: a reader that lags stalls the command (its pipe fills), never
//! memory; a reader that goes away lets the command run on, its output unread.

mod environment;
mod lost;
mod output;
mod tend;

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::{mpsc, oneshot, watch};

use crate::supervisor::wire::{self, Start};
use crate::supervisor::{BootMs, ENTRY};

pub use crate::supervisor::cgroup::Groups;
pub use crate::supervisor::wire::{Excess, KillReason, Left, Limits, Reason, Started};
pub use environment::PATH;
pub use output::{CHUNK_MAX, Chunk, OUTPUT_MAX, Stream, TRUNCATED};

/// Chunks on their way to the reader, per attempt.
const CHUNKS_WAITING: usize = 8;

/// The longest argument or `NAME=value` pair that Linux takes, without the closing NUL.
pub const STRING_MAX: usize = 128 * 1024 - 1;

#[derive(Clone, Debug)]
pub struct Spec {
    /// Program and arguments. A program without a slash is looked up in [`PATH`].
    pub argv: Vec<String>,
    /// Joins the defined environment and wins over it.
    pub env: Vec<(String, String)>,
    /// Made for the attempt, its working directory and home, removed after it. Must not exist; its parents may.
    pub scratch: PathBuf,
    pub timeout: Option<Duration>,
    /// Between SIGTERM and SIGKILL when the timeout is over.
    pub timeout_grace: Duration,
    /// Use a control group where the system allows one.
    pub cgroup: bool,
    /// Where such groups are made; where the worker itself is unless given.
    pub groups: Option<Groups>,
    /// The working directory; the scratch directory unless given.
    pub cwd: Option<PathBuf>,
    /// Whom to run as.
    pub user: Option<String>,
    /// On standard input, which is empty otherwise.
    pub stdin: Option<String>,
    /// A script; the path of a private file with it is added to the arguments.
    pub script: Option<String>,
    /// What an earlier attempt left lies beside the scratch directory, to be moved into it.
    pub resume: bool,
    pub limits: Limits,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub reason: Reason,
    /// `None` if the command did not start.
    pub started_wall_ms: Option<u64>,
    pub duration_ms: u64,
    pub cpu_ms: u64,
    pub peak_rss_bytes: u64,
    /// The limit it went beyond, as far as that was seen.
    pub excess: Option<Excess>,
    /// Whether a control group held it to its limits.
    pub grouped: bool,
    /// What it left in its result file.
    pub left: Option<Left>,
    /// The last line of its progress file.
    pub progress: Option<String>,
    /// Its checkpoint lies beside where the scratch directory was; whoever reads it removes it.
    pub checkpoint: bool,
    /// For people: why it did not start, why its end is unknown, or what of it could not be removed.
    pub error: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("argv is empty; name a program")]
    NoProgram,
    #[error("{what} holds a NUL byte; remove it")]
    NulByte { what: String },
    #[error("environment name {0:?} is empty or holds '='; rename it")]
    EnvironmentName(String),
    #[error("{what} has {len} bytes, the system takes {STRING_MAX}; pass it in a file")]
    TooLong { what: String, len: usize },
    #[error("scratch directory {0:?} is not an absolute path")]
    RelativeScratch(PathBuf),
    #[error(transparent)]
    Frame(#[from] wire::Error),
    #[error("cannot start the supervisor: {0}")]
    Supervisor(#[from] io::Error),
}

/// What the agent wants of a running attempt. Only the newest state matters, so however slow the supervisor is,
/// nothing queues up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Orders {
    deadline: BootMs,
    kill: Option<(Duration, KillReason)>,
}

/// An attempt under its supervisor.
pub struct Running {
    orders: watch::Sender<Orders>,
    output: Option<mpsc::Receiver<Chunk>>,
    started: watch::Receiver<Option<Started>>,
    outcome: oneshot::Receiver<Outcome>,
}

impl Running {
    /// The output, for the first caller. It ends after the last byte that the tree wrote.
    pub fn output(&mut self) -> Option<mpsc::Receiver<Chunk>> {
        self.output.take()
    }

    /// Waits until the command runs; `None` if it never will.
    pub async fn started(&self) -> Option<Started> {
        let mut started = self.started.clone();
        let started = started.wait_for(Option::is_some).await.ok()?;
        started.clone()
    }

    /// The lease was renewed. A deadline before the one in force changes nothing.
    pub fn extend(&self, deadline: BootMs) {
        self.orders
            .send_modify(|orders| orders.deadline = orders.deadline.max(deadline));
    }

    /// SIGTERM to the whole tree, SIGKILL after `grace`. The first reason stands; a later call can only shorten the
    /// grace.
    pub fn kill(&self, grace: Duration, reason: KillReason) {
        self.orders.send_modify(|orders| {
            orders.kill = match orders.kill {
                Some((earlier, first)) => Some((earlier.min(grace), first)),
                None => Some((grace, reason)),
            };
        });
    }

    /// Waits until no process of the attempt is left. To be asked once.
    pub async fn wait(&mut self) -> Outcome {
        (&mut self.outcome)
            .await
            .unwrap_or_else(|_| Outcome::lost(None, "the worker is stopping"))
    }
}

impl Outcome {
    fn lost(started: Option<&Started>, error: &str) -> Self {
        Self {
            exit_code: None,
            signal: None,
            reason: Reason::SupervisorLost,
            started_wall_ms: started.map(|started| started.wall_ms),
            duration_ms: started.map_or(0, |started| BootMs::now().ms_since(started.at)),
            cpu_ms: 0,
            peak_rss_bytes: 0,
            excess: None,
            grouped: false,
            left: None,
            progress: None,
            checkpoint: false,
            error: Some(error.to_owned()),
        }
    }
}

/// Gives the attempt to a supervisor. Must be called within a tokio runtime.
pub fn spawn(spec: Spec, deadline: BootMs) -> Result<Running, Error> {
    check(&spec)?;
    let scratch = spec.scratch.clone();
    let mut argv = spec.argv;
    if spec.script.is_some() {
        argv.push(environment::script(&scratch));
    }
    let start = wire::encode(&wire::Command::Start(Box::new(Start {
        env: environment::complete(&spec.scratch, spec.user.is_some(), spec.resume, spec.env),
        argv,
        scratch: spec.scratch,
        deadline,
        timeout_ms: spec.timeout.map(whole_ms),
        timeout_grace_ms: whole_ms(spec.timeout_grace),
        cgroup: spec.cgroup,
        groups: spec.groups,
        cwd: spec.cwd,
        user: spec.user,
        stdin: spec.stdin,
        script: spec.script,
        resume: spec.resume,
        open_files: crate::open_files::before(),
        limits: spec.limits,
    })))?;

    let (socket, far_socket) = UnixStream::pair()?;
    let (stdout, far_stdout) = io::pipe()?;
    let (stderr, far_stderr) = io::pipe()?;
    socket.set_nonblocking(true)?;
    let socket = tokio::net::UnixStream::from_std(socket)?;
    let (chunks, output) = mpsc::channel(CHUNKS_WAITING);
    let (tree_gone, when_gone) = oneshot::channel();
    let pump = output::Pump::new(stdout, stderr, chunks)?;
    let supervisor = Command::new(own_binary()?)
        .arg0("drumtower-supervisor")
        .arg(ENTRY)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(far_socket)))
        .stdout(far_stdout)
        .stderr(far_stderr)
        .spawn()?;

    let told = Orders {
        deadline,
        kill: None,
    };
    let (orders, orders_seen) = watch::channel(told);
    let (started_tx, started) = watch::channel(None);
    let (outcome_tx, outcome) = oneshot::channel();
    tokio::spawn(pump.run(when_gone));
    let tended = tend::Tended {
        supervisor,
        socket,
        scratch,
        orders: orders_seen,
        told,
        started: started_tx,
    };
    tokio::spawn(tended.run(start, tree_gone, outcome_tx));
    Ok(Running {
        orders,
        output: Some(output),
        started,
        outcome,
    })
}

/// The binary that runs, even if another was put in its place on disk since.
fn own_binary() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        Ok("/proc/self/exe".into())
    } else {
        std::env::current_exe()
    }
}

fn whole_ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn check(spec: &Spec) -> Result<(), Error> {
    if spec.argv.first().is_none_or(String::is_empty) {
        return Err(Error::NoProgram);
    }
    if !spec.scratch.is_absolute() {
        return Err(Error::RelativeScratch(spec.scratch.clone()));
    }
    for (index, argument) in spec.argv.iter().enumerate() {
        check_string(argument, argument.len(), || format!("argv[{index}]"))?;
    }
    for (name, value) in &spec.env {
        if name.is_empty() || name.contains('=') {
            return Err(Error::EnvironmentName(name.clone()));
        }
        let pair = name.len() + 1 + value.len();
        check_string(name, pair, || format!("environment name {name:?}"))?;
        check_string(value, pair, || format!("environment variable {name}"))?;
    }
    Ok(())
}

fn check_string(string: &str, len: usize, what: impl Fn() -> String) -> Result<(), Error> {
    if string.contains('\0') {
        return Err(Error::NulByte { what: what() });
    }
    if len > STRING_MAX {
        return Err(Error::TooLong { what: what(), len });
    }
    Ok(())
}
