//! A worker over real sockets, against a server whose part the test plays.

mod tiny_server;

use std::time::{Duration, UNIX_EPOCH};

use drumtower_proto::worker::v1 as wire;
use drumtower_sdk::{Context, Error, HandlerError, Leave, Worker};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use wire::server_message::Body;
use wire::worker_message::Body as FromWorker;

use tiny_server::{Stream, TOKEN, TinyServer};

#[derive(Deserialize)]
struct Sum {
    numbers: Vec<i64>,
}

#[derive(Serialize)]
struct Total {
    total: i64,
}

struct Running {
    leave: watch::Sender<Leave>,
    worker: JoinHandle<Result<(), Error>>,
}

fn start(server: &TinyServer) -> Running {
    let worker = Worker::builder(&server.url)
        .token(TOKEN)
        .name("tester")
        .capacity(4)
        .label("zone", "a")
        .handler("sum", |_, params: Sum| async move {
            Ok(Total {
                total: params.numbers.iter().sum(),
            })
        })
        .handler("fail", |_, (): ()| async move {
            Err::<(), _>("x".parse::<u8>().expect_err("no number").into())
        })
        .handler("panic", |_, (): ()| async move {
            if UNIX_EPOCH.elapsed().is_ok() {
                panic!("out of cheese");
            }
            Ok(())
        })
        .handler("chatter", |_, (): ()| async move { Ok("x".repeat(70_000)) })
        .handler("wait", |context: Context, (): ()| async move {
            context.log("waiting").await;
            context.cancelled().await;
            Err::<(), _>(HandlerError::new("told to stop"))
        })
        .handler("resume", |context: Context, (): ()| async move {
            let from = context.last_checkpoint().map_or("", |body| {
                std::str::from_utf8(body).expect("as it was saved")
            });
            let from = from.to_owned();
            context.progress(50, "half");
            context.checkpoint(format!("{from}x")).await?;
            let long = context.checkpoint(vec![0; 1024 * 1024 + 1]).await;
            let long = long.expect_err("too long").to_string();
            assert!(long.contains("1048577 bytes"), "{long}");
            Ok(from)
        })
        .handler("describe", |context: Context, (): ()| async move {
            context.log("one").await;
            context.log("two").await;
            let nominal = context
                .nominal_time()
                .expect("scheduled")
                .duration_since(UNIX_EPOCH)?;
            Ok(serde_json::json!({
                "run": context.run_id().to_string(),
                "attempt": context.attempt(),
                "fence": context.fence(),
                "key": context.idempotency_key(),
                "job": format!("{}/{}", context.namespace(), context.job()),
                "nominal": nominal.as_secs(),
            }))
        })
        .build()
        .expect("settings are right");
    let (leave, left) = watch::channel(Leave::No);
    Running {
        leave,
        worker: tokio::spawn(worker.run_until(left)),
    }
}

async fn run_one(stream: &mut Stream, run: u64, handler: &str, params: &str) -> wire::Finished {
    let attempt = stream.assign_handler(run, handler, params);
    let end = stream.next_end().await;
    assert_eq!(end.attempt, Some(attempt));
    stream.acknowledge(&end);
    end
}

#[tokio::test]
async fn parameters_and_results_are_typed() {
    let mut server = TinyServer::start().await;
    let _running = start(&server);
    let mut stream = server.welcome().await;
    assert_eq!(stream.hello.worker, "tester");
    assert_eq!(
        stream.hello.handlers,
        [
            "chatter", "describe", "fail", "panic", "resume", "sum", "wait"
        ]
    );
    assert_eq!(stream.hello.labels["zone"], "a");
    let end = run_one(&mut stream, 1, "sum", r#"{"numbers":[40,2]}"#).await;
    assert_eq!(
        (end.outcome(), end.result.as_str()),
        (wire::Outcome::Succeeded, r#"{"total":42}"#)
    );
    assert!(end.started_wall_ms > 0);
}

#[tokio::test]
async fn whatever_goes_wrong_in_a_handler_is_a_failure_with_words() {
    let mut server = TinyServer::start().await;
    let _running = start(&server);
    let mut stream = server.welcome().await;
    let cases = [
        ("sum", r#"{"numbers":"many"}"#, "parameters"),
        ("sum", "", "parameters"),
        ("fail", "", "invalid digit"),
        ("panic", "", "out of cheese"),
        ("chatter", "", "70002 bytes"),
    ];
    for (run, (handler, params, words)) in cases.into_iter().enumerate() {
        let end = run_one(&mut stream, run as u64 + 1, handler, params).await;
        assert_eq!(end.outcome(), wire::Outcome::Failed);
        assert!(end.error.contains(words), "{}", end.error);
    }
}

#[tokio::test]
async fn a_handler_knows_its_attempt_and_its_output_comes_before_its_end() {
    let mut server = TinyServer::start().await;
    let _running = start(&server);
    let mut stream = server.welcome().await;
    stream.assign_handler(7, "describe", "");
    for (seq, line) in [(1, "one\n"), (2, "two\n")] {
        let FromWorker::Log(chunk) = stream.next_telling().await else {
            panic!("output comes first")
        };
        assert_eq!((chunk.seq, chunk.data.as_slice()), (seq, line.as_bytes()));
    }
    let end = stream.next_end().await;
    let told: serde_json::Value = serde_json::from_str(&end.result).expect("JSON");
    assert_eq!(
        told,
        serde_json::json!({
            "run": "run_0000000000007", "attempt": 1, "fence": 107, "key": "key-7", "job": "default/demo",
            "nominal": 1_700_000_000
        })
    );
}

#[tokio::test]
async fn a_cancelled_handler_stops() {
    let mut server = TinyServer::start().await;
    let _running = start(&server);
    let mut stream = server.welcome().await;
    let attempt = stream.assign_handler(1, "wait", "");
    assert!(matches!(stream.next_telling().await, FromWorker::Log(_)));
    stream.send(Body::Cancel(wire::Cancel {
        attempt: Some(attempt),
        reason: "user".to_owned(),
    }));
    let end = stream.next_end().await;
    assert_eq!(
        (end.outcome(), end.error.as_str()),
        (wire::Outcome::Cancelled, "told to stop")
    );
}

#[tokio::test]
async fn what_runs_and_what_ended_survive_a_broken_stream() {
    let mut server = TinyServer::start().await;
    let running = start(&server);
    let mut stream = server.welcome().await;
    stream.assign_handler(1, "wait", "");
    assert!(matches!(stream.next_telling().await, FromWorker::Log(_)));
    let finished = stream.assign_handler(2, "sum", r#"{"numbers":[1]}"#);
    stream.next_end().await;
    drop(stream);

    let mut stream = server.welcome().await;
    assert_eq!(stream.hello.stream, 2);
    let FromWorker::Log(chunk) = stream.next_telling().await else {
        panic!("unacknowledged output comes again")
    };
    assert_eq!(chunk.seq, 1);
    let end = stream.next_end().await;
    assert_eq!(
        end.attempt,
        Some(finished),
        "an unacknowledged end comes again"
    );
    stream.acknowledge(&end);

    running.leave.send(Leave::Drained).expect("it listens");
    running.leave.send(Leave::AtOnce).expect("it listens");
    loop {
        match stream.next_telling().await {
            FromWorker::Recall(recall) => {
                stream.send(Body::RecallAnswer(wire::RecallAnswer {
                    id: recall.id,
                    consumed: 0,
                }));
            }
            FromWorker::Finished(end) => {
                assert_eq!(
                    end.outcome(),
                    wire::Outcome::Cancelled,
                    "a worker that leaves has stopped the attempt"
                );
                stream.acknowledge(&end);
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    stream.goodbye().await;
    drop(stream);
    running
        .worker
        .await
        .expect("no panic")
        .expect("a clean end");
}

#[tokio::test]
async fn a_worker_with_nothing_to_do_leaves_when_told() {
    let mut server = TinyServer::start().await;
    let running = start(&server);
    let mut stream = server.welcome().await;
    assert!(matches!(
        stream.next().await,
        FromWorker::Grant(wire::Grant { total: 4 })
    ));
    running.leave.send(Leave::Drained).expect("it listens");
    let FromWorker::Recall(recall) = stream.next_telling().await else {
        panic!("it takes its credit back")
    };
    stream.send(Body::RecallAnswer(wire::RecallAnswer {
        id: recall.id,
        consumed: 0,
    }));
    stream.goodbye().await;
    drop(stream);
    running
        .worker
        .await
        .expect("no panic")
        .expect("a clean end");
}

#[tokio::test]
async fn a_handler_does_not_outlive_its_worker() {
    let mut server = TinyServer::start().await;
    let (alive, mut gone) = tokio::sync::mpsc::channel::<()>(1);
    let builder = Worker::builder(&server.url).token(TOKEN).handler(
        "stubborn",
        move |context: Context, (): ()| {
            let alive = alive.clone();
            async move {
                context.log("here").await;
                std::future::pending::<()>().await;
                drop(alive);
                Ok(())
            }
        },
    );
    let worker = builder.build().expect("settings");
    let running = tokio::spawn(worker.run(std::future::pending()));
    let mut stream = server.welcome().await;
    stream.assign_handler(1, "stubborn", "");
    assert!(matches!(stream.next_telling().await, FromWorker::Log(_)));
    running.abort();
    assert_eq!(
        gone.recv().await,
        None,
        "the last sender was dropped with the handler"
    );
}

#[tokio::test]
async fn a_wrong_token_ends_the_worker() {
    let server = TinyServer::start().await;
    let builder = Worker::builder(&server.url)
        .token("wrong")
        .handler("a", |_, (): ()| async { Ok(()) });
    let error = builder
        .build()
        .expect("settings")
        .run(std::future::pending())
        .await
        .expect_err("refused");
    assert!(
        error.is_unauthorized() && error.to_string().contains("unknown token"),
        "{error}"
    );
}

#[tokio::test]
async fn a_worker_dials_the_servers_that_it_was_told_of() {
    let mut first = TinyServer::start().await;
    let mut second = TinyServer::start().await;
    first.others = vec![
        first.url.clone(),
        second.url.clone(),
        "http://elsewhere.invalid:7070".to_owned(),
        "no address".to_owned(),
    ];
    let running = start(&first);
    let stream = first.welcome().await;
    // It goes on where the next one is when the first lets it go.
    drop(stream);
    let stream = second.welcome().await;
    assert_eq!(stream.hello.worker, "tester");
    // The token would have gone to the third unencrypted, so it is back with the first.
    drop(stream);
    let stream = first.welcome().await;
    drop(stream);
    drop(running);
}

#[tokio::test]
async fn a_worker_that_is_sent_away_does_not_dial_again() {
    let mut server = TinyServer::start().await;
    let running = start(&server);
    let stream = server.welcome().await;
    stream.send(Body::Close(wire::Close {
        reason: "too old".to_owned(),
        again: false,
    }));
    let error = running
        .worker
        .await
        .expect("no panic")
        .expect_err("sent away");
    assert!(
        error.is_rejected() && error.to_string().contains("too old"),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_that_is_not_there_is_dialled_until_told_to_stop() {
    let builder = Worker::builder("http://127.0.0.1:1").drain_timeout(Duration::ZERO);
    let worker = builder
        .handler("a", |_, (): ()| async { Ok(()) })
        .build()
        .expect("settings");
    worker
        .run(std::future::ready(()))
        .await
        .expect("nothing to lose");
}

#[test]
fn wrong_settings_are_refused_with_a_remedy() {
    let handled = |url: &str| Worker::builder(url).handler("a", |_, (): ()| async { Ok(()) });
    let good = "http://127.0.0.1:7070";
    let wrong = [
        (handled("ftp://x").build(), "http://"),
        (handled(good).capacity(0).build(), "capacity"),
        (handled(good).name("Not A Name").build(), "worker name"),
        (handled(good).token("a\nb").build(), "token"),
        (
            handled("http://10.0.0.1:7070").token("a").build(),
            "https://",
        ),
        (Worker::builder(good).build(), "handler"),
    ];
    for (built, words) in wrong {
        let error = built.err().expect(words);
        assert!(
            error.is_configuration() && error.to_string().contains(words),
            "{error}"
        );
    }
}

/// The next checkpoint, and the progress that was told before it.
async fn next_checkpoint(stream: &mut Stream) -> wire::Checkpoint {
    let mut percent = None;
    loop {
        match stream.next_telling().await {
            FromWorker::Progress(report) => percent = Some(report.percent),
            FromWorker::Checkpoint(saved) => {
                assert_eq!(percent, Some(50));
                return saved;
            }
            other => panic!("expected a checkpoint, got {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_handler_goes_on_from_the_last_checkpoint() {
    let mut server = TinyServer::start().await;
    let _running = start(&server);
    let mut stream = server.welcome().await;
    let features = [drumtower_proto::CHECKPOINTS, drumtower_proto::LINKS];
    assert_eq!(stream.hello.features, features);
    stream.assign_handler(1, "resume", "");
    let saved = next_checkpoint(&mut stream).await;
    assert_eq!((saved.number, saved.body.as_slice()), (1, &b"x"[..]));
    stream.settle(&saved, true);
    let end = stream.next_end().await;
    assert_eq!(end.result, "\"\"");
    stream.acknowledge(&end);
    *server.checkpoint.lock().expect("nobody panicked") = Some((7, b"abc".to_vec()));
    stream.resume_handler(2, "resume", 7);
    let saved = next_checkpoint(&mut stream).await;
    assert_eq!((saved.number, saved.body.as_slice()), (8, &b"abcx"[..]));
    stream.settle(&saved, true);
    assert_eq!(stream.next_end().await.result, "\"abc\"");
}

#[tokio::test]
async fn a_checkpoint_that_is_not_kept_is_an_error_and_one_that_cannot_be_fetched_a_refusal() {
    let mut server = TinyServer::start().await;
    let _running = start(&server);
    let mut stream = server.welcome().await;
    stream.assign_handler(1, "resume", "");
    let saved = next_checkpoint(&mut stream).await;
    stream.settle(&saved, false);
    let end = stream.next_end().await;
    assert_eq!(end.outcome(), wire::Outcome::Failed);
    assert!(end.error.contains("not kept"), "{}", end.error);
    stream.acknowledge(&end);
    let attempt = stream.resume_handler(2, "resume", 7);
    let FromWorker::Refused(refused) = stream.next_telling().await else {
        panic!("nothing to begin with")
    };
    assert_eq!(refused.attempt, Some(attempt));
    assert!(refused.reason.contains("there is none"), "{refused:?}");
}

#[tokio::test]
async fn a_checkpoint_is_sent_again_on_a_new_stream() {
    let mut server = TinyServer::start().await;
    let _running = start(&server);
    let mut stream = server.welcome().await;
    stream.assign_handler(1, "resume", "");
    let first = next_checkpoint(&mut stream).await;
    drop(stream);
    let mut stream = server.welcome().await;
    let again = next_checkpoint(&mut stream).await;
    assert_eq!(again, first);
    stream.settle(&again, true);
    assert_eq!(stream.next_end().await.outcome(), wire::Outcome::Succeeded);
}
