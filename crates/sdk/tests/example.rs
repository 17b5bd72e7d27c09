//! The example does what it says.

#[allow(dead_code)]
#[path = "../examples/handler.rs"]
mod handler;
mod tiny_server;

use drumtower_proto::worker::v1 as wire;
use wire::worker_message::Body as FromWorker;

use tiny_server::{TOKEN, TinyServer};

#[tokio::test]
async fn the_example_counts_words() {
    let mut server = TinyServer::start().await;
    let worker = handler::worker(&server.url, TOKEN)
        .build()
        .expect("its settings are right");
    let running = tokio::spawn(worker.run(std::future::pending()));
    let mut stream = server.welcome().await;
    stream.assign_handler(
        1,
        "count-words",
        r#"{"texts":["the drum tower","at dusk"]}"#,
    );
    for _ in 0..2 {
        assert!(
            matches!(stream.next_telling().await, FromWorker::Log(_)),
            "a line of log for each text"
        );
    }
    let end = stream.next_end().await;
    assert_eq!(end.outcome(), wire::Outcome::Succeeded, "{}", end.error);
    assert_eq!(
        end.result,
        r#"{"words":5,"lengths":{"2":1,"3":1,"4":2,"5":1}}"#
    );
    stream.assign_handler(2, "count-words", r#"{"texts":[]}"#);
    let end = stream.next_end().await;
    assert_eq!(end.outcome(), wire::Outcome::Failed);
    assert!(end.error.contains("not one word"), "{}", end.error);
    running.abort();
}
