//! What can be written down.

use drumtower_core::model::{RunId, WallMs};
use serde::{Deserialize, Serialize};

/// One line of a journal, such as `{"answered":{"key":"order-7","run":"run_06d4ztbp00000"}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Record {
    /// A load generator is about to trigger a run. Keys are its own and unique over all jobs of the test.
    Sent {
        key: String,
        job: String,
        wall_ms: WallMs,
    },
    /// The server said yes.
    Answered {
        key: String,
        run: RunId,
    },
    /// The server said no: under this request there is no run.
    Refused {
        key: String,
        code: String,
    },
    /// No answer came, or one that leaves it open.
    Unknown {
        key: String,
    },
    /// A task begins, by its own clock.
    Started {
        run: RunId,
        attempt: u32,
        fence: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nominal_ms: Option<WallMs>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        due_ms: Option<WallMs>,
        wall_ms: WallMs,
        pid: u32,
    },
    /// A task has done its work.
    Ended {
        run: RunId,
        attempt: u32,
        wall_ms: WallMs,
        outcome: Outcome,
    },
    /// Someone ended a process on purpose.
    Killed {
        what: String,
        point: String,
        wall_ms: WallMs,
    },
    Restarted {
        what: String,
        wall_ms: WallMs,
    },
}

/// How a task says it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Succeeded,
    Failed,
    Cancelled,
}

impl Record {
    /// Appends the line without its end. Writing to memory cannot fail, and neither can these types.
    pub(super) fn encode(&self, line: &mut Vec<u8>) {
        let written = serde_json::to_writer(line, self);
        debug_assert!(written.is_ok(), "a record is always JSON");
    }
}
