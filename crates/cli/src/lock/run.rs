//! `drumtower lock run`: a command that runs only while a lock is held.

use std::future::Future;
use std::io::IsTerminal;
use std::os::unix::process::ExitStatusExt;
use std::pin::Pin;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;

use super::Lock;
use super::guard::{Guard, Renewal};
use crate::client::Client;
use crate::connect::Connect;
use crate::duration;
use crate::failure::{Failure, Result};
use crate::output::say;

/// Run a command while holding a lock
///
/// Waits for the lock, runs the command, renews the lock meanwhile and gives it back at the
/// end. The exit code is that of the command; 4 if the lock was not free in time. If the
/// lock cannot be renewed, because the server or the network is gone, the command is
/// terminated, and killed before anyone else can hold the lock. It is killed too if this
/// program is; what it leaves in the background is not reached. Signals are passed on to it,
/// unless they were ignored already when this program was started, as under nohup.
///
///     drumtower lock run nightly-import -- ./import.sh
///     drumtower lock run deploy --wait 10m --ttl 1m -- make deploy
///
/// The command finds the lock's name in DRUMTOWER_LOCK and its fence, which grows with
/// every hold, in DRUMTOWER_LOCK_FENCE.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Run {
    #[command(flatten)]
    lock: Lock,
    /// How long the lock outlives this program if it cannot renew it
    #[arg(long, value_parser = duration::parse, default_value = "30s", value_name = "DURATION")]
    ttl: Duration,
    /// How long to wait while another holds it
    #[arg(long, value_parser = duration::parse, default_value = "0s", value_name = "DURATION")]
    wait: Duration,
    /// Who holds it, for those who look; host, process and a random part unless given
    #[arg(long)]
    owner: Option<String>,
    #[command(flatten)]
    connect: Connect,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// What a thread that waits for the command says.
type Ended = std::io::Result<ExitStatus>;

impl Run {
    pub fn run(self) -> Result<()> {
        let owner = match &self.owner {
            Some(owner) => owner.clone(),
            None => drawn_owner()?,
        };
        let client = Client::new(&self.connect)?;
        let name = self.lock.name.clone();
        let mut signals = Signals::heed()?;
        let (lock, ttl, wait) = (self.lock, self.ttl, self.wait);
        let mut guard =
            signals.unless_heard(move || Guard::acquire(client, lock, &owner, ttl, wait))?;
        let (program, arguments) = self.command.split_first().unwrap_or((&name, &[]));
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("DRUMTOWER_LOCK", &name)
            .env("DRUMTOWER_LOCK_FENCE", &guard.fence);
        die_with_us(&mut command);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                release(&guard);
                return Err(Failure::usage(format!(
                    "`{program}` cannot be started: {error}"
                )));
            }
        };
        let process = child.id();
        signals.pass_on(process);
        let (tell, ended) = channel();
        thread::spawn(move || tell.send(child.wait()));
        let status = watch(&mut guard, &ended, process);
        match status {
            Ok(status) => {
                release(&guard);
                std::process::exit(code_of(status));
            }
            Err(failure) => Err(failure),
        }
    }
}

/// Renews until the command ends. If that fails for too long, ends the command.
fn watch(guard: &mut Guard, ended: &Receiver<Ended>, process: u32) -> Result<ExitStatus> {
    let mut pause = guard.pause();
    loop {
        match ended.recv_timeout(pause) {
            Ok(status) => return status.map_err(|error| Failure::failed(error.to_string())),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::failed("the command cannot be waited for"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        match guard.renew() {
            Renewal::Held => pause = guard.pause(),
            Renewal::Unknown if !guard.left().is_zero() => {
                pause = guard.left().min(Duration::from_secs(1));
            }
            Renewal::Unknown | Renewal::Lost => {
                stop(guard, ended, process);
                return Err(Failure::failed("the lock is lost; the command was stopped"));
            }
        }
    }
}

fn stop(guard: &Guard, ended: &Receiver<Ended>, process: u32) {
    say("the lock cannot be renewed: stopping the command");
    let until = Instant::now() + guard.last_moments();
    signal(process, libc::SIGTERM);
    if ended
        .recv_timeout(until.saturating_duration_since(Instant::now()))
        .is_err()
    {
        signal(process, libc::SIGKILL);
        let _ = ended.recv();
    }
}

fn signal(process: u32, signal: i32) {
    let Ok(process) = libc::pid_t::try_from(process) else {
        return;
    };
    // SAFETY: no memory is passed; the process is our child and has not been waited for.
    unsafe { libc::kill(process, signal) };
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: a zeroed `sigaction` is one to be written to; nothing is set.
    unsafe {
        let mut current: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut current) == 0
            && current.sa_sigaction == libc::SIG_IGN
    }
}

/// Signals that would end this program. While it waits for the lock they do, and the server sees that nobody waits any more;
/// then they are passed on to the command, whose end ends it.
struct Signals {
    runtime: tokio::runtime::Runtime,
    heard: Vec<(i32, tokio::signal::unix::Signal)>,
}

impl Signals {
    fn heed() -> Result<Self> {
        let failed = |error: std::io::Error| Failure::failed(format!("signals: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let inside = runtime.enter();
        // What the parent had ignored, as `nohup` does, stays ignored, by the command too.
        let numbers = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].into_iter();
        let heard = numbers.filter(|number| !is_ignored(*number)).map(|number| {
            let kind = tokio::signal::unix::SignalKind::from_raw(number);
            Ok((number, tokio::signal::unix::signal(kind).map_err(failed)?))
        });
        let heard = heard.collect::<Result<_>>()?;
        drop(inside);
        Ok(Self { runtime, heard })
    }

    /// What `wait` brings, unless a signal comes first. One that comes at the same time is left for the command.
    fn unless_heard<T: Send + 'static>(
        &mut self,
        wait: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (tell, mut brought) = tokio::sync::oneshot::channel();
        thread::spawn(move || tell.send(wait()));
        let heard = &mut self.heard;
        let first = std::future::poll_fn(|context| {
            if let Poll::Ready(brought) = Pin::new(&mut brought).poll(context) {
                return Poll::Ready(Ok(brought));
            }
            let mut signals = heard.iter_mut();
            match signals
                .find_map(|(number, it)| it.poll_recv(context).is_ready().then_some(*number))
            {
                Some(number) => Poll::Ready(Err(number)),
                None => Poll::Pending,
            }
        });
        match self.runtime.block_on(first) {
            Ok(Ok(brought)) => brought,
            Ok(Err(_)) => Err(Failure::failed("the lock cannot be waited for")),
            Err(number) => std::process::exit(128 + number),
        }
    }

    fn pass_on(self, process: u32) {
        // A terminal sends it to the command by itself.
        let by_terminal = std::io::stdin().is_terminal();
        thread::spawn(move || {
            let mut passing = tokio::task::JoinSet::new();
            for (number, mut heard) in self.heard {
                let own = !(by_terminal && number == libc::SIGINT);
                let pass = async move {
                    while heard.recv().await.is_some() {
                        if own {
                            signal(process, number);
                        }
                    }
                };
                passing.spawn_on(pass, self.runtime.handle());
            }
            self.runtime.block_on(passing.join_all());
        });
    }
}

/// If this program is killed, nobody renews the lock: the command must not outlive it.
#[cfg(target_os = "linux")]
fn die_with_us(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    let die = || {
        // SAFETY: one system call without memory, allowed between fork and exec.
        match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: as above.
    unsafe { command.pre_exec(die) };
}

#[cfg(not(target_os = "linux"))]
fn die_with_us(_: &mut Command) {}

fn release(guard: &Guard) {
    if let Err(failure) = guard.release() {
        say(&format!(
            "the lock was not given back and ends by itself: {failure}"
        ));
    }
}

/// As shells tell it.
fn code_of(status: ExitStatus) -> i32 {
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

fn drawn_owner() -> Result<String> {
    let mut bytes = [0; 4];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut random| std::io::Read::read_exact(&mut random, &mut bytes))
        .map_err(|error| Failure::failed(format!("no randomness: {error}")))?;
    let mut host = drumtower_sdk::host_name();
    host.truncate(64);
    let drawn = u32::from_le_bytes(bytes);
    Ok(format!("{host}:{}:{drawn:08x}", std::process::id()))
}
