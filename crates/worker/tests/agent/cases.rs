//! What an agent does with commands.

use std::fs;

use drumtower_proto::worker::v1 as wire;
use drumtower_sdk::Leave;
use drumtower_worker::agent::{self, Error, Options};
use libtest_mimic::Trial;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use wire::server_message::Body;
use wire::worker_message::Body as FromWorker;

use crate::tiny_server::{Stream, TOKEN, TinyServer};

/// A lease that a test waits out. On a busy machine, where nobody is heard for a second, it still holds while it is renewed.
const SHORT_LEASE_MS: u64 = 6_000;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_command_gets_its_attempt_and_its_output_is_told", told),
        trial("a_command_that_cannot_start_fails_with_words", cannot_start),
        trial("a_cancelled_command_is_killed", cancelled),
        trial(
            "renewals_keep_a_command_alive_beyond_its_first_lease",
            renewed,
        ),
        trial(
            "a_command_is_killed_when_its_lease_is_not_renewed",
            lease_lost,
        ),
        trial("a_command_survives_a_broken_stream", broken_stream),
        trial(
            "long_output_waits_for_acknowledgement_and_arrives_whole",
            long_output,
        ),
        trial("draining_lets_a_command_end", drained),
        trial("a_second_wish_kills_what_runs", killed),
    ]
}

pub fn trial<F>(name: &str, case: fn(Agent) -> F) -> Trial
where
    F: Future<Output = ()> + 'static,
{
    Trial::test(name, move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        runtime.block_on(async { case(Agent::start().await).await });
        Ok(())
    })
}

pub struct Agent {
    pub server: TinyServer,
    pub directory: TempDir,
    leave: watch::Sender<Leave>,
    running: JoinHandle<Result<(), Error>>,
}

impl Agent {
    async fn start() -> Self {
        let server = TinyServer::start().await;
        let directory = TempDir::new().expect("a directory");
        let (leave, left) = watch::channel(Leave::No);
        let options = Options {
            servers: vec![server.url.clone()],
            token: Some(TOKEN.to_owned()),
            capacity: 4,
            scratch_root: directory.path().join("scratch"),
            ..Options::default()
        };
        let running = tokio::spawn(agent::run(options, left));
        Self {
            server,
            directory,
            leave,
            running,
        }
    }

    /// A command that runs until the file it is given exists, and says so when it begins.
    fn patient(&self) -> [String; 3] {
        let flag = self.directory.path().join("go");
        let script = format!(
            "echo begun; while [ ! -e {} ]; do sleep 0.05; done; echo done",
            flag.display()
        );
        ["sh".to_owned(), "-c".to_owned(), script]
    }

    /// Tells it to leave in good order.
    pub fn drain(&self) {
        self.leave.send(Leave::Drained).expect("it listens");
    }

    pub fn release(&self) {
        fs::write(self.directory.path().join("go"), "").expect("a file");
    }

    /// Starts the patient command and waits until it runs.
    async fn begin(&self, stream: &mut Stream) -> wire::AttemptRef {
        let argv = self.patient();
        let attempt = stream.assign_exec(1, &argv.each_ref().map(String::as_str), "");
        assert_eq!(next_output(stream).await, "begun\n");
        attempt
    }

    /// Every end is acknowledged and every recall answered until the agent is gone.
    pub async fn see_off(self, mut stream: Stream) -> Vec<wire::Finished> {
        let mut ends = Vec::new();
        loop {
            match stream.next_telling().await {
                FromWorker::Goodbye(_) => break,
                FromWorker::Recall(recall) => {
                    stream.send(Body::RecallAnswer(wire::RecallAnswer {
                        id: recall.id,
                        consumed: 1,
                    }));
                }
                FromWorker::Finished(end) => {
                    stream.acknowledge(&end);
                    ends.push(end);
                }
                FromWorker::Log(_) => {}
                other => panic!("{other:?}"),
            }
        }
        drop(stream);
        self.running.await.expect("no panic").expect("a clean end");
        let left: Vec<_> = fs::read_dir(self.directory.path().join("scratch"))
            .expect("it was made")
            .collect();
        assert!(left.is_empty(), "{left:?}");
        ends
    }
}

async fn next_output(stream: &mut Stream) -> String {
    let FromWorker::Log(chunk) = stream.next_telling().await else {
        panic!("output was expected")
    };
    stream.send(Body::LogAck(wire::LogAck {
        attempt: chunk.attempt,
        seq: chunk.seq,
    }));
    String::from_utf8(chunk.data).expect("text")
}

/// The end, after whatever output comes before it.
async fn end_after_output(stream: &mut Stream) -> (wire::Finished, Vec<wire::LogChunk>) {
    let mut chunks = Vec::new();
    loop {
        match stream.next_telling().await {
            FromWorker::Log(chunk) => {
                stream.send(Body::LogAck(wire::LogAck {
                    attempt: chunk.attempt,
                    seq: chunk.seq,
                }));
                chunks.push(chunk);
            }
            FromWorker::Finished(end) => return (end, chunks),
            other => panic!("{other:?}"),
        }
    }
}

async fn told(mut agent: Agent) {
    let mut stream = agent.server.welcome().await;
    assert!(stream.hello.exec && stream.hello.handlers.is_empty());
    let script = "echo $DRUMTOWER_RUN $DRUMTOWER_ATTEMPT $DRUMTOWER_FENCE $DRUMTOWER_IDEMPOTENCY_KEY; \
                  echo $DRUMTOWER_NAMESPACE/$DRUMTOWER_JOB \"$DRUMTOWER_PARAMS\" >&2; exit 3";
    stream.assign_exec(9, &["sh", "-c", script], r#"{"a": 1}"#);
    let (end, chunks) = end_after_output(&mut stream).await;
    let said = |wanted: u32| -> String {
        let of_stream = chunks.iter().filter(|chunk| chunk.stream == wanted);
        of_stream
            .map(|chunk| String::from_utf8_lossy(&chunk.data).into_owned())
            .collect()
    };
    assert_eq!(said(1), "run_0000000000009 1 109 key-9\n");
    assert_eq!(said(2), "default/demo {\"a\": 1}\n");
    assert_eq!(
        (end.outcome(), end.exit_code),
        (wire::Outcome::Failed, Some(3))
    );
    assert!(
        end.error.contains("code 3") && end.started_wall_ms > 0 && end.peak_memory_bytes > 0,
        "{end:?}"
    );
}

async fn cannot_start(mut agent: Agent) {
    let mut stream = agent.server.welcome().await;
    stream.assign_exec(1, &["/no/such/program"], "");
    let (end, _) = end_after_output(&mut stream).await;
    assert_eq!(end.outcome(), wire::Outcome::Failed);
    assert!(end.error.contains("/no/such/program"), "{}", end.error);
}

async fn cancelled(mut agent: Agent) {
    let mut stream = agent.server.welcome().await;
    let attempt = agent.begin(&mut stream).await;
    stream.send(Body::Cancel(wire::Cancel {
        attempt: Some(attempt),
        reason: "user".to_owned(),
    }));
    let (end, _) = end_after_output(&mut stream).await;
    assert_eq!(end.outcome(), wire::Outcome::Cancelled);
}

async fn renewed(mut agent: Agent) {
    let mut stream = agent.server.welcome_with(SHORT_LEASE_MS).await;
    let longer = (SHORT_LEASE_MS / 1_000 + 1).to_string();
    stream.assign_exec(1, &["sleep", &longer], "");
    let (end, _) = end_after_output(&mut stream).await;
    assert_eq!(end.outcome(), wire::Outcome::Succeeded, "{}", end.error);
}

async fn lease_lost(mut agent: Agent) {
    let mut stream = agent.server.welcome_with(SHORT_LEASE_MS).await;
    agent.begin(&mut stream).await;
    stream.renews = false;
    let (end, _) = end_after_output(&mut stream).await;
    assert_eq!(end.outcome(), wire::Outcome::LeaseLost, "{end:?}");
}

async fn broken_stream(mut agent: Agent) {
    let mut stream = agent.server.welcome().await;
    let attempt = agent.begin(&mut stream).await;
    drop(stream);
    let mut stream = agent.server.welcome().await;
    agent.release();
    let (end, chunks) = end_after_output(&mut stream).await;
    assert_eq!(
        (end.outcome(), end.attempt),
        (wire::Outcome::Succeeded, Some(attempt))
    );
    assert_eq!(
        chunks.last().map(|chunk| chunk.data.as_slice()),
        Some(b"done\n".as_slice())
    );
}

async fn long_output(mut agent: Agent) {
    let mut stream = agent.server.welcome().await;
    stream.assign_exec(1, &["sh", "-c", "seq 1 500000"], "");
    let (end, chunks) = end_after_output(&mut stream).await;
    assert_eq!(end.outcome(), wire::Outcome::Succeeded);
    let text: Vec<u8> = chunks.into_iter().flat_map(|chunk| chunk.data).collect();
    let expected: String = (1..=500_000).map(|number| format!("{number}\n")).collect();
    assert!(
        text == expected.as_bytes(),
        "{} bytes of {}",
        text.len(),
        expected.len()
    );
}

async fn drained(mut agent: Agent) {
    let mut stream = agent.server.welcome().await;
    agent.begin(&mut stream).await;
    agent.leave.send(Leave::Drained).expect("it listens");
    let FromWorker::Recall(recall) = stream.next_telling().await else {
        panic!("it takes its credit back")
    };
    stream.send(Body::RecallAnswer(wire::RecallAnswer {
        id: recall.id,
        consumed: 1,
    }));
    agent.release();
    let ends = agent.see_off(stream).await;
    assert_eq!(
        ends.iter().map(wire::Finished::outcome).collect::<Vec<_>>(),
        [wire::Outcome::Succeeded]
    );
}

async fn killed(mut agent: Agent) {
    let mut stream = agent.server.welcome().await;
    agent.begin(&mut stream).await;
    agent.leave.send(Leave::AtOnce).expect("it listens");
    let ends = agent.see_off(stream).await;
    assert_eq!(
        ends.iter().map(wire::Finished::outcome).collect::<Vec<_>>(),
        [wire::Outcome::Cancelled]
    );
}
