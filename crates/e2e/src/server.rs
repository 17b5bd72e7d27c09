//! `drumtower serve` on the data directory of a site.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use crate::process::Process;
use crate::wait::{eventually, within};
use crate::{Api, Clock, Site, drumtower};

/// How the server is started.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    /// Where it dies, as `before_commit:7`; needs a binary with the feature `failpoints`.
    pub failpoint: Option<String>,
    pub arguments: Vec<String>,
    pub env: Vec<(&'static str, String)>,
    /// The clock it goes by; the system's unless given. Kept over restarts.
    pub clock: Option<Clock>,
}

pub struct Server {
    process: Process,
    data: PathBuf,
    log: PathBuf,
    /// Kept over restarts, so that workers find it again.
    listen: String,
    clock: Option<Clock>,
}

impl Server {
    /// Starts a server on the site's data and waits until it is ready.
    #[track_caller]
    pub fn start(site: &Site) -> Self {
        Self::start_with(site, &ServerOptions::default())
    }

    /// As [`Server::start`], by a clock of its own.
    #[track_caller]
    pub fn start_by(site: &Site, clock: &Clock) -> Self {
        let options = ServerOptions {
            clock: Some(clock.clone()),
            ..Default::default()
        };
        Self::start_with(site, &options)
    }

    #[track_caller]
    fn start_with(site: &Site, options: &ServerOptions) -> Self {
        let log = site.path().join("server.log");
        for _ in 0..3 {
            let mut server = Self::launch(&site.data(), &log, options);
            if server.comes_up() {
                return server;
            }
        }
        panic!("three ports that were free were taken before the server had them");
    }

    /// Starts a server without waiting for anything: it may be meant to die before it is ready.
    pub fn launch(data: &Path, log: &Path, options: &ServerOptions) -> Self {
        Self::launch_at(data, log, free_port(), options)
    }

    /// As [`Server::launch`], on a port that somebody knows already.
    pub fn launch_at(data: &Path, log: &Path, port: u16, options: &ServerOptions) -> Self {
        let listen = format!("127.0.0.1:{port}");
        let process = spawn(data, log, &listen, options, options.clock.as_ref());
        Self {
            process,
            data: data.to_owned(),
            log: log.to_owned(),
            listen,
            clock: options.clock.clone(),
        }
    }

    /// Starts it again on the same data and the same port.
    pub fn restart(&mut self) {
        self.respawn(&ServerOptions::default());
        self.await_ready();
    }

    /// Starts it again without waiting for anything: it may be meant to die before it is ready.
    pub fn respawn(&mut self, options: &ServerOptions) {
        assert!(self.process.ended().is_some(), "the server still runs");
        // What a dead server announced is not the announcement of the next one.
        for name in ["server.url", "local.token"] {
            let _ = std::fs::remove_file(self.data.join(name));
        }
        if options.clock.is_some() {
            self.clock = options.clock.clone();
        }
        let clock = self.clock.as_ref();
        self.process = spawn(&self.data, &self.log, &self.listen, options, clock);
    }

    /// Waits until it answers that it is ready.
    #[track_caller]
    pub fn await_ready(&mut self) {
        assert!(self.comes_up(), "{}", self.process.log());
    }

    /// Waits until it is ready. False when somebody took its port after it was found to be free.
    #[track_caller]
    fn comes_up(&mut self) -> bool {
        let data = self.data.clone();
        eventually("the server is ready", || {
            if let Some(status) = self.process.ended() {
                let log = self.process.log();
                let taken = format!("{} is in use", self.listen);
                assert!(
                    log.contains(&taken),
                    "the server ended with {status} before it was ready:\n{log}"
                );
                return Some(false);
            }
            find(&data)?.is_ready().then_some(true)
        })
    }

    /// A client with the token of the machine's own admin.
    #[track_caller]
    pub fn api(&self) -> Api {
        eventually("the server has announced itself", || find(&self.data))
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.listen)
    }

    /// The address and port that it listens on.
    pub fn listen(&self) -> &str {
        &self.listen
    }

    pub fn data(&self) -> &Path {
        &self.data
    }

    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    pub fn kill(&mut self) {
        self.process.kill();
    }

    pub fn stop(&mut self) -> ExitStatus {
        self.process.stop()
    }

    /// Waits until it died at its failpoint; `false` when it did not.
    pub fn died_within(&mut self, patience: Duration) -> bool {
        let start = std::time::Instant::now();
        while self.process.ended().is_none() && start.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(2));
        }
        match self.process.ended() {
            None => false,
            Some(_) if self.process.was_killed() => true,
            Some(status) => panic!(
                "the server ended with {status} instead of dying:\n{}",
                self.process.log()
            ),
        }
    }

    /// Makes a token and returns its secret.
    #[track_caller]
    pub fn token(&self, name: &str, role: &str) -> String {
        let body = serde_json::json!({"name": name, "role": role});
        let token = self.api().post("/api/v1/tokens", &body);
        token["secret"].as_str().expect("a secret").to_owned()
    }
}

/// A port that nobody listens on, below those that the system gives to outgoing connections: while a server is dead, a
/// worker that dials such a port may be given that very port for itself, and the server could not have it back.
pub fn free_port() -> u16 {
    static NEXT: OnceLock<AtomicU16> = OnceLock::new();
    let next = NEXT.get_or_init(|| AtomicU16::new(fastrand::u16(..)));
    for _ in 0..1000 {
        let port = 12_000 + next.fetch_add(1, Ordering::Relaxed) % 20_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("of a thousand ports none is free");
}

/// The client of the server that announced itself in `data`.
fn find(data: &Path) -> Option<Api> {
    Some(Api::new(
        line(&data.join("server.url"))?,
        Some(line(&data.join("local.token"))?),
    ))
}

fn line(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|line| !line.is_empty())
}

fn spawn(
    data: &Path,
    log: &Path,
    listen: &str,
    options: &ServerOptions,
    clock: Option<&Clock>,
) -> Process {
    let mut command = Command::new(drumtower());
    command
        .arg("serve")
        .arg("--data")
        .arg(data)
        .args(["--listen", listen])
        .args(&options.arguments);
    command.env_remove("DRUMTOWER_FAILPOINT");
    command.envs(options.env.iter().map(|(name, value)| (name, value)));
    if let Some(failpoint) = &options.failpoint {
        command.env("DRUMTOWER_FAILPOINT", failpoint);
    }
    if let Some(clock) = clock {
        clock.apply(&mut command);
    }
    Process::spawn(command, log)
}

/// Waits until every run of a server has ended.
#[track_caller]
pub fn await_calm(api: &Api, patience: Duration) {
    within(patience, "every run has ended", || {
        let live = api.runs("state=PENDING&state=SCHEDULED&state=RUNNING");
        live.is_empty().then_some(())
    });
}
