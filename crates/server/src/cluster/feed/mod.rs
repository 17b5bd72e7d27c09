//! What servers of one store tell each other of what they committed: facts of the [tap](crate::driver::tap).
//!
//! While somebody follows changes or waits for a run at a server, it dials every other that the view shows, whether that owns
//! anything yet or not, and listens ([`hear`]); the other tells its own facts and none that it was told itself ([`tell`]). So
//! whoever listens at any server learns of everything, and what nobody listens to is not told: to tell it all to everybody
//! takes each server as much as all others together commit.
//!
//! ```text
//! dialling ──first line──► listening ──broken, or silent for 6 s──► pause (0.1 s to 2 s) ──► dialling
//! ```
//!
//! Invariants:
//! - nothing is told twice and nothing is told on: a fact goes from the server that committed it to each other;
//! - when listening begins or ends, something may have been missed: whoever listens here is told so and looks again;
//! - nothing rests on it but when somebody looks: the store says what is.
//!
//! A line is a JSON value: `{"f":[…]}` facts, `{"m":3}` so many are missing, `"b"` a sign of life. A line that cannot be read,
//! because the other server's version has other facts, counts as missing. Asking takes the proof that only servers of the
//! store can give.

mod hear;
mod tell;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::driver::tap::Fact;

pub use tell::facts;

const PATH: &str = "/cluster/v1/facts";
/// Between two signs of life.
const BEAT_EVERY: Duration = Duration::from_secs(2);
/// A server that says nothing for so long is not there.
const SILENCE: Duration = Duration::from_secs(6);

#[derive(Debug, Serialize, Deserialize)]
enum Line<F> {
    #[serde(rename = "f")]
    Facts(Vec<F>),
    #[serde(rename = "m")]
    Missed(u64),
    #[serde(rename = "b")]
    Beat,
}

type Heard = Line<Fact>;
type Told<'a> = Line<&'a Fact>;

impl Told<'_> {
    fn write(&self) -> Vec<u8> {
        // What cannot be written is missing.
        let mut line = serde_json::to_vec(self).unwrap_or_else(|_| br#"{"m":1}"#.to_vec());
        line.push(b'\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use drumtower_core::model::{
        JobId, JobName, NamespaceName, Reason, RunId, RunState, WallMs, WorkerName,
    };

    use super::*;
    use crate::driver::tap::{JobDeed, JobFact, JobKey, RunEnd, RunFact};

    #[test]
    fn facts_come_back_as_they_were_told() {
        let job = Arc::new(JobKey {
            id: JobId(7),
            namespace: NamespaceName::default(),
            name: JobName::new("report").unwrap(),
        });
        let run = RunFact {
            run: RunId(9),
            job: Arc::clone(&job),
            job_deleted: false,
            state: RunState::Failed,
            made: false,
            started_now: true,
            created: WallMs(1),
            due: WallMs(2),
            at: WallMs(3),
            attempts: 2,
            assigned: Some(WallMs(2)),
            started: None,
            worker: WorkerName::new("w1").ok(),
            progress: None,
            end: Some(RunEnd {
                reason: Reason::Cancelled,
                duration_ms: 5,
                exit_code: Some(1),
                cpu_ms: 4,
                peak_memory_bytes: 3,
                error: Some("it failed\n".into()),
            }),
        };
        let deed = JobFact {
            job,
            deed: JobDeed::Put,
            version: 2,
            revision: 3,
            at: WallMs(4),
        };
        let facts = [Fact::Run(run), Fact::Job(deed)];
        let line = Told::Facts(facts.iter().collect()).write();
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        let Ok(Heard::Facts(heard)) = serde_json::from_slice(&line) else {
            panic!("{}", String::from_utf8_lossy(&line))
        };
        assert_eq!(heard, facts);
        let beat: Heard = serde_json::from_slice(&Told::Beat.write()).unwrap();
        assert!(matches!(beat, Heard::Beat));
    }
}
