//! What a command writes about itself reaches the server, and what an earlier attempt left reaches the command.

use std::fs;

use drumtower_proto::worker::v1 as wire;
use libtest_mimic::Trial;
use wire::worker_message::Body as FromWorker;

use crate::cases::{Agent, trial};
use crate::tiny_server::Stream;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("what_a_failed_command_left_is_saved_before_its_end", failed),
        trial("a_command_that_succeeds_leaves_no_checkpoint", succeeded),
        trial("a_checkpoint_is_saved_while_the_command_runs", under_way),
        trial("a_command_finds_the_former_checkpoint", resumed),
        trial("a_checkpoint_that_is_no_plain_file_is_told", odd),
    ]
}

fn shell(stream: &mut Stream, line: &str) -> wire::AttemptRef {
    stream.assign_exec(1, &["sh", "-c", line], "")
}

/// All that is told up to the end, which is acknowledged.
async fn until_end(stream: &mut Stream) -> (Vec<FromWorker>, wire::Finished) {
    let mut told = Vec::new();
    loop {
        match stream.next_telling().await {
            FromWorker::Finished(end) => {
                stream.acknowledge(&end);
                return (told, end);
            }
            FromWorker::Checkpoint(saved) => {
                stream.settle(&saved, true);
                told.push(FromWorker::Checkpoint(saved));
            }
            other => told.push(other),
        }
    }
}

fn saved(told: &[FromWorker]) -> Vec<(u64, &[u8])> {
    let saved = told.iter().filter_map(|body| match body {
        FromWorker::Checkpoint(saved) => Some((saved.number, saved.body.as_slice())),
        _ => None,
    });
    saved.collect()
}

fn progress(told: &[FromWorker]) -> Vec<(u32, &str)> {
    let told = told.iter().filter_map(|body| match body {
        FromWorker::Progress(report) => Some((report.percent, report.message.as_str())),
        _ => None,
    });
    told.collect()
}

async fn failed(mut agent: Agent) {
    let mut stream = agent.server.welcome().await;
    let line =
        "echo 42 copying > $DRUMTOWER_PROGRESS; printf page-7 > $DRUMTOWER_CHECKPOINT; exit 3";
    shell(&mut stream, line);
    let (told, end) = until_end(&mut stream).await;
    assert_eq!(end.exit_code, Some(3));
    assert_eq!(saved(&told), [(1, &b"page-7"[..])]);
    assert_eq!(progress(&told), [(42, "copying")]);
    agent.drain();
    agent.see_off(stream).await;
}

async fn succeeded(mut agent: Agent) {
    let mut stream = agent.server.welcome().await;
    shell(&mut stream, "printf page-7 > $DRUMTOWER_CHECKPOINT");
    let (told, end) = until_end(&mut stream).await;
    assert_eq!(end.outcome(), wire::Outcome::Succeeded);
    assert_eq!(saved(&told), []);
    agent.drain();
    agent.see_off(stream).await;
}

async fn under_way(mut agent: Agent) {
    let mut stream = agent.server.welcome().await;
    let go = agent.directory.path().join("go");
    let line = format!(
        "printf 1 > $DRUMTOWER_CHECKPOINT.new; mv $DRUMTOWER_CHECKPOINT.new $DRUMTOWER_CHECKPOINT; \
         while [ ! -e {} ]; do sleep 0.05; done; exit 1",
        go.display()
    );
    shell(&mut stream, &line);
    let FromWorker::Checkpoint(first) = stream.next_telling().await else {
        panic!("a checkpoint was expected")
    };
    assert_eq!((first.number, first.body.as_slice()), (1, &b"1"[..]));
    stream.settle(&first, true);
    agent.release();
    let (told, _) = until_end(&mut stream).await;
    assert_eq!(saved(&told), [], "it did not change");
}

async fn resumed(mut agent: Agent) {
    let mut stream = agent.server.welcome().await;
    let body = (0..=255).cycle().take(1024 * 1024).collect::<Vec<u8>>();
    *agent.server.checkpoint.lock().expect("nobody panicked") = Some((7, body.clone()));
    let copy = agent.directory.path().join("copy");
    let line = format!(
        "cat \"$DRUMTOWER_RESUME\" > {}; printf 8 > $DRUMTOWER_CHECKPOINT; exit 1",
        copy.display()
    );
    stream.resume_shell(5, &line, 7);
    let (told, _) = until_end(&mut stream).await;
    assert_eq!(saved(&told), [(8, &b"8"[..])]);
    assert!(fs::read(copy).expect("it was written") == body);
    stream.assign_exec(6, &["sh", "-c", "test -z \"$DRUMTOWER_RESUME\""], "");
    let (_, end) = until_end(&mut stream).await;
    assert_eq!(end.outcome(), wire::Outcome::Succeeded, "{}", end.error);
    agent.drain();
    agent.see_off(stream).await;
}

async fn odd(mut agent: Agent) {
    let mut stream = agent.server.welcome().await;
    let line = "head -c 1048577 /dev/zero > $DRUMTOWER_CHECKPOINT; exit 1";
    shell(&mut stream, line);
    let (told, _) = until_end(&mut stream).await;
    assert_eq!(saved(&told), []);
    let words = told.iter().filter_map(|body| match body {
        FromWorker::Log(chunk) => Some(String::from_utf8_lossy(&chunk.data).into_owned()),
        _ => None,
    });
    let words: String = words.collect();
    assert!(
        words.contains("not saved: it has 1048577 bytes, the limit is 1048576"),
        "{words}"
    );
}
