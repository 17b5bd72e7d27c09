//! A worker with one handler, `count-words`: typed parameters in, a typed result out, cancellation respected.
//!
//! Start a server, then this worker, with a token of the role worker:
//!
//! ```sh
//! DRUMTOWER_URL=http://127.0.0.1:7070 DRUMTOWER_TOKEN=… cargo run --example handler
//! ```
//!
//! A job reaches it by name:
//!
//! ```yaml
//! kind: Job
//! name: word-count
//! task:
//!   handler:
//!     name: count-words
//! params:
//!   texts: ["the drum tower", "at dusk"]
//! ```

use std::collections::BTreeMap;
use std::env;

use drumtower_sdk::{Builder, Context, HandlerError, Worker};
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
struct Params {
    texts: Vec<String>,
}

#[derive(Serialize)]
struct Counted {
    words: usize,
    lengths: BTreeMap<usize, usize>,
}

async fn count_words(context: Context, params: Params) -> Result<Counted, HandlerError> {
    let mut counted = Counted {
        words: 0,
        lengths: BTreeMap::new(),
    };
    for (index, text) in params.texts.iter().enumerate() {
        // A run can be cancelled, time out, or lose its lease. Stop between two pieces of work, or wait for
        // `context.cancelled()` beside what takes long.
        if context.is_cancelled() {
            return Err(HandlerError::new("stopped halfway"));
        }
        context
            .log(format!("text {}: {} bytes", index + 1, text.len()))
            .await;
        for word in text.split_whitespace() {
            counted.words += 1;
            *counted.lengths.entry(word.chars().count()).or_default() += 1;
        }
    }
    if counted.words == 0 {
        return Err(HandlerError::new(
            "there is not one word in `texts`: give some",
        ));
    }
    Ok(counted)
}

pub fn worker(url: &str, token: &str) -> Builder {
    Worker::builder(url)
        .token(token)
        .name("word-counter")
        .capacity(8)
        .handler("count-words", count_words)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = env::var("DRUMTOWER_URL").unwrap_or_else(|_| "http://127.0.0.1:7070".to_owned());
    let token = env::var("DRUMTOWER_TOKEN")
        .map_err(|_| "set DRUMTOWER_TOKEN to a token with the role worker")?;
    let interrupted = async {
        // Without signals it runs until it is killed.
        let _ = tokio::signal::ctrl_c().await;
    };
    worker(&url, &token).build()?.run(interrupted).await?;
    Ok(())
}
