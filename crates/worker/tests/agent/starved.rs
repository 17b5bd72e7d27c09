//! An agent that has no descriptor left. It is a process of its own, because the limit is one of processes.

use std::fs::File;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use drumtower_proto::worker::v1 as wire;
use drumtower_sdk::Leave;
use drumtower_worker::agent::{self, Options};
use libtest_mimic::Trial;
use tokio::sync::watch;
use wire::worker_message::Body as FromWorker;

use crate::tiny_server::{TOKEN, TinyServer};

pub const ENTRY: &str = "__starved";
const URL: &str = "TEST_URL";
const PLACE: &str = "TEST_PLACE";
const OPEN_FILES: u64 = 128;

pub fn trials() -> Vec<Trial> {
    let name = "an_attempt_that_no_supervisor_can_be_started_for_is_handed_back";
    vec![Trial::test(name, || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        runtime.block_on(handed_back());
        Ok(())
    })]
}

/// An agent that uses up its descriptors while the file `starve` exists, and says by `starved` that it has.
pub fn agent() -> ExitCode {
    let get = |name| std::env::var(name).expect("the test sets it");
    let place = get(PLACE);
    let place = Path::new(&place);
    let limit = libc::rlimit {
        rlim_cur: OPEN_FILES,
        rlim_max: OPEN_FILES,
    };
    // SAFETY: `limit` is live.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
    let options = Options {
        servers: vec![get(URL)],
        token: Some(TOKEN.to_owned()),
        capacity: 4,
        scratch_root: place.join("scratch"),
        ..Options::default()
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let (_leave, left) = watch::channel(Leave::No);
        let running = tokio::spawn(agent::run(options, left));
        let mut taken = Vec::new();
        while !running.is_finished() {
            if !place.join("starve").exists() {
                taken.clear();
            } else if taken.is_empty() {
                let said = File::create(place.join("starving")).expect("a file");
                drop(said);
                taken.extend(std::iter::from_fn(|| File::open("/dev/null").ok()));
                std::fs::rename(place.join("starving"), place.join("starved")).expect("no file");
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    ExitCode::FAILURE
}

struct Kept(std::process::Child);

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn handed_back() {
    let mut server = TinyServer::start().await;
    let place = tempfile::tempdir().expect("a directory");
    let mut agent = Command::new("/proc/self/exe");
    agent
        .arg(ENTRY)
        .env(URL, &server.url)
        .env(PLACE, place.path());
    let _agent = Kept(agent.spawn().expect("an agent"));
    let mut stream = server.welcome().await;
    std::fs::write(place.path().join("starve"), "").expect("a file");
    while !place.path().join("starved").exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let attempt = stream.assign_exec(1, &["true"], "");
    let FromWorker::Refused(refused) = stream.next_telling().await else {
        panic!("it never started, so it has no end")
    };
    assert_eq!(refused.attempt, Some(attempt));
    assert!(refused.reason.contains("open files"), "{}", refused.reason);

    // Once there are descriptors again an attempt that was waiting for one starts.
    stream.assign_exec(2, &["true"], "");
    std::fs::remove_file(place.path().join("starve")).expect("it was there");
    let end = stream.next_end().await;
    assert_eq!(end.outcome(), wire::Outcome::Succeeded, "{}", end.error);
}
