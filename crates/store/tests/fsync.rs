//! Acknowledged means durable: `strace` sees the log synced between a commit's last write to it and its acknowledgement.
//!
//! The test starts itself again under strace as a program that commits and prints `ack n`. With `synchronous=NORMAL` the
//! same check must fail, which shows that it can.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode};

use drumtower_core::change::{ChangeSet, RunChange};
use drumtower_core::model::{Member, RunState};
use drumtower_store::conformance::sample;
use drumtower_store::sqlite::{self, Options, Sync};
use drumtower_store::{Commit, Store};
use libtest_mimic::{Arguments, Failed, Trial};

const CHILD: &str = "DRUMTOWER_TEST_COMMIT_INTO";
const COMMITS: u64 = 20;

fn main() -> ExitCode {
    if let Some(directory) = std::env::var_os(CHILD) {
        let normal = std::env::args().any(|argument| argument == "normal");
        commit_and_say(
            Path::new(&directory),
            if normal { Sync::Normal } else { Sync::Full },
        );
        return ExitCode::SUCCESS;
    }
    let trials = vec![
        Trial::test("each_commit_is_synced_before_its_acknowledgement", || {
            expect(Sync::Full, true)
        }),
        Trial::test("the_check_fails_when_commits_are_not_synced", || {
            expect(Sync::Normal, false)
        }),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn commit_and_say(directory: &Path, sync: Sync) {
    let (mut writer, _reader) = sqlite::open(
        directory,
        Options {
            sync,
            ..Options::default()
        },
    )
    .expect("the store opens");
    let session = writer
        .begin_session(&Member::alone("server-1"), 3_000)
        .expect("a session begins");
    let job = sample::job_id(1);
    for seq in 1..=COMMITS {
        let done = sample::ended(sample::run(0, seq, job), RunState::Completed, 5);
        let runs = [
            RunChange::InsertFinished(Box::new(done)),
            RunChange::Insert(Box::new(sample::run(1, seq, job))),
        ];
        let changes = ChangeSet {
            session,
            seq,
            extend_ms: 3_000,
            ..sample::runs(runs)
        };
        assert_eq!(writer.commit(&changes).expect("it commits"), Commit::Done);
        let mut out = std::io::stdout().lock();
        out.write_all(format!("ack {seq}\n").as_bytes())
            .expect("it is said");
        out.flush().expect("it is said");
    }
}

fn expect(sync: Sync, durable: bool) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let trace = directory.path().join("trace");
    let mut strace = Command::new("strace");
    strace.args([
        "-f",
        "-y",
        "-s",
        "16",
        "-e",
        "trace=fsync,fdatasync,write,writev,pwrite64,pwritev",
        "-o",
    ]);
    strace.arg(&trace).arg(std::env::current_exe()?);
    if sync == Sync::Normal {
        strace.arg("normal");
    }
    strace.env(CHILD, directory.path().join("data"));
    let output = strace.output().map_err(|error| {
        format!("strace cannot be started ({error}): `cargo xtask test` installs it, or `apt-get install strace`")
    })?;
    if !output.status.success() {
        return Err(format!(
            "the traced program failed: {}",
            String::from_utf8_lossy(&output.stderr)
        )
        .into());
    }
    let verdict = check(&std::fs::read_to_string(&trace)?);
    match (durable, verdict) {
        (true, Err(why)) => Err(why.into()),
        (false, Ok(())) => Err("commits without a sync passed the check".into()),
        _ => Ok(()),
    }
}

/// Walks the trace: at each acknowledgement the log was written since the last one, and synced after its last write.
fn check(trace: &str) -> Result<(), String> {
    let (mut written, mut synced, mut acks) = (false, false, 0);
    let mut unfinished = HashMap::new();
    for line in trace.lines() {
        let (process, call) = line.split_once(' ').unwrap_or_default();
        let call = call.trim_start();
        if let Some(begun) = call.strip_suffix("<unfinished ...>") {
            unfinished.insert(process, begun);
            if begun.contains("-wal>") && begun.contains("write") {
                (written, synced) = (true, false);
            }
            continue;
        }
        // A resumed call tells only its result; what it was about stands where it began.
        let about = if call.starts_with("<...") {
            unfinished.remove(process).unwrap_or(call)
        } else {
            call
        };
        let log = about.contains("drumtower.db-wal>");
        if log && about.contains("write") {
            (written, synced) = (true, false);
        } else if log && about.contains("sync(") && call.ends_with("= 0") {
            synced = true;
        } else if about.contains("\"ack ") {
            acks += 1;
            if !written || !synced {
                return Err(format!(
                    "commit {acks} was acknowledged with written={written} synced={synced}: {line}"
                ));
            }
            (written, synced) = (false, false);
        }
    }
    if acks == COMMITS {
        Ok(())
    } else {
        Err(format!("{acks} acknowledgements instead of {COMMITS}"))
    }
}
