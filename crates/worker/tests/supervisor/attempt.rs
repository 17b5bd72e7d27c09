//! One attempt of a test: its directory, its marker, and what can be asked of its processes.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use drumtower_worker::exec::{self, Chunk, Limits, Outcome, Running, Spec};
use drumtower_worker::supervisor::BootMs;
use libtest_mimic::{Failed, Trial};
use tokio::sync::mpsc;

/// No test waits longer for anything; on a healthy machine none comes near.
const PATIENCE: Duration = Duration::from_secs(60);
/// Waited out by tests, as a lease, a timeout or a grace; long enough for a busy machine to start a few processes.
pub const SHORT_LEASE: Duration = Duration::from_secs(6);
pub const LONG_LEASE: Duration = Duration::from_secs(600);

pub struct Attempt {
    root: tempfile::TempDir,
    /// An argument for `sleep`, of a length that never ends and a fraction that nobody else uses.
    pub marker: String,
    pub spec: Spec,
}

impl Attempt {
    /// Runs `script` in a shell; `MARKER` in it is replaced.
    pub fn shell(script: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let marker = format!("86400.{:07}{number:03}", std::process::id());
        let root = tempfile::tempdir().expect("a temporary directory");
        let spec = Spec {
            argv: ["/bin/sh", "-c", &script.replace("MARKER", &marker)]
                .map(String::from)
                .into(),
            env: Vec::new(),
            scratch: root.path().join("root").join("attempt"),
            timeout: None,
            timeout_grace: Duration::ZERO,
            cgroup: true,
            groups: None,
            cwd: None,
            user: None,
            stdin: None,
            script: None,
            resume: false,
            limits: Limits::default(),
        };
        Self { root, marker, spec }
    }

    pub fn scratch(&self) -> PathBuf {
        self.spec.scratch.clone()
    }

    /// A place that outlives the attempt.
    pub fn outside(&self) -> PathBuf {
        self.root.path().to_owned()
    }

    /// Lets other users come as far as the scratch directory.
    pub fn allow_other_users(&self) {
        let above = self.spec.scratch.parent().expect("a root");
        std::fs::create_dir(above).expect("not there yet");
        for directory in [self.root.path(), above] {
            let passable = std::fs::Permissions::from_mode(0o711);
            std::fs::set_permissions(directory, passable).expect("it is ours");
        }
    }

    pub fn spawn(&self) -> Running {
        self.spawn_for(LONG_LEASE)
    }

    pub fn spawn_for(&self, lease: Duration) -> Running {
        exec::spawn(self.spec.clone(), BootMs::now().plus(lease)).expect("a supervisor")
    }

    /// From start to end: outcome and output.
    pub async fn run(&self) -> (Outcome, Output) {
        let mut running = self.spawn();
        let mut output = Output::of(&mut running);
        output.rest().await;
        (end(&mut running).await, output)
    }

    /// Processes that carry the marker, zombies not counted.
    pub fn alive(&self) -> Vec<Process> {
        processes()
            .filter(|process| process.command_line.contains(&self.marker))
            .collect()
    }

    /// No process and no directory is left. To be asked after the outcome, without waiting: that is the promise.
    pub fn assert_nothing_left(&self) {
        let alive = self.alive();
        assert!(alive.is_empty(), "still running: {alive:?}");
        assert!(!self.scratch().exists(), "scratch directory is still there");
    }
}

/// The outcome, and that it came with nothing left behind is for the caller to check.
pub async fn end(running: &mut Running) -> Outcome {
    patient(running.wait()).await
}

pub async fn patient<T>(awaited: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, awaited)
        .await
        .expect("it should have happened by now")
}

/// Polls until `condition` gives something.
pub async fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "gave up waiting until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// What a command wrote so far.
pub struct Output {
    pub chunks: Vec<Chunk>,
    receiver: mpsc::Receiver<Chunk>,
}

impl Output {
    pub fn of(running: &mut Running) -> Self {
        Self {
            chunks: Vec::new(),
            receiver: running.output().expect("asked once"),
        }
    }

    /// Waits until both streams together contain `text`.
    pub async fn until(&mut self, text: &str) {
        while !self.text().contains(text) {
            let chunk = patient(self.receiver.recv()).await;
            self.chunks
                .push(chunk.unwrap_or_else(|| panic!("no {text:?} in {:?}", self.text())));
        }
    }

    pub async fn rest(&mut self) {
        while let Some(chunk) = patient(self.receiver.recv()).await {
            self.chunks.push(chunk);
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.chunks
            .iter()
            .flat_map(|chunk| chunk.bytes.clone())
            .collect()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    pub fn of_stream(&self, stream: exec::Stream) -> String {
        let chunks = self.chunks.iter().filter(|chunk| chunk.stream == stream);
        chunks
            .map(|chunk| String::from_utf8_lossy(&chunk.bytes))
            .collect()
    }
}

#[derive(Debug)]
pub struct Process {
    pub pid: u32,
    pub state: String,
    pub parent: u32,
    pub session: u32,
    pub command_line: String,
}

pub fn process(pid: u32) -> Option<Process> {
    let command_line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields = stat
        .rsplit_once(')')?
        .1
        .split_ascii_whitespace()
        .collect::<Vec<_>>();
    Some(Process {
        pid,
        state: fields[0].to_owned(),
        parent: fields[1].parse().ok()?,
        session: fields[3].parse().ok()?,
        command_line: String::from_utf8_lossy(&command_line).into_owned(),
    })
}

fn processes() -> impl Iterator<Item = Process> {
    let entries = std::fs::read_dir("/proc")
        .expect("/proc is mounted")
        .flatten();
    entries.filter_map(|entry| process(entry.file_name().to_str()?.parse().ok()?))
}

/// A trial that runs `test` on a runtime of its own.
pub fn trial<F: Future<Output = ()>>(
    name: &str,
    test: impl FnOnce() -> F + Send + 'static,
) -> Trial {
    Trial::test(name, move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        runtime.map_err(Failed::from)?.block_on(test());
        Ok(())
    })
}

/// The trials of a module, one for each function. One that is left out is dead code, which the compiler reports.
macro_rules! trials {
    ($($test:ident),+ $(,)?) => {
        pub fn trials() -> Vec<libtest_mimic::Trial> {
            let prefix = module_path!().rsplit("::").next().unwrap_or_default();
            vec![$(crate::attempt::trial(&format!("{prefix}::{}", stringify!($test)), $test)),+]
        }
    };
}
pub(crate) use trials;
