//! An `exec` task that writes down when it started and when it ended: `journal-task DIR`.
//!
//! Its parameters may say how long it takes, as `{"ms": 30}`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use drumtower_audit::journal::wall_now;
use drumtower_audit::{Journal, Outcome, Record};
use drumtower_core::model::WallMs;
use serde_json::Value;

fn main() {
    let wall_ms = wall_now();
    let dir = PathBuf::from(
        std::env::args_os()
            .nth(1)
            .expect("the directory of the journals"),
    );
    let (run, attempt) = (variable("DRUMTOWER_RUN"), variable("DRUMTOWER_ATTEMPT"));
    let mut journal = Journal::create(&dir, "task").expect("a journal");
    let started = Record::Started {
        run,
        attempt,
        fence: variable("DRUMTOWER_FENCE"),
        nominal_ms: time("DRUMTOWER_NOMINAL_MS"),
        due_ms: time("DRUMTOWER_DUE_MS"),
        wall_ms,
        pid: std::process::id(),
    };
    journal.write(&started).expect("a line in the journal");
    let params: Value = std::env::var("DRUMTOWER_PARAMS")
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    std::thread::sleep(Duration::from_millis(params["ms"].as_u64().unwrap_or(0)));
    let ended = Record::Ended {
        run,
        attempt,
        wall_ms: wall_now(),
        outcome: Outcome::Succeeded,
    };
    journal.write(&ended).expect("a line in the journal");
}

fn variable<T: FromStr>(name: &str) -> T {
    let text = std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
    text.parse()
        .unwrap_or_else(|_| panic!("{name} is `{text}`"))
}

/// An instant in the environment; absent when there is none.
fn time(name: &str) -> Option<WallMs> {
    std::env::var_os(name).map(|_| WallMs(variable(name)))
}
