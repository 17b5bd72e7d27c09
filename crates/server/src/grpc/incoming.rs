//! From the protocol's words to the engine's, with nothing believed.
//!
//! What breaks the protocol ends the stream ([`Violation`]). What only exceeds a bound is cut or turned into a failure of
//! its attempt, with words: a worker that sends it would send it again after every reconnection.

use drumtower_core::engine::{AttemptRef, Finished, Heartbeat, Load, WorkerEvent};
use drumtower_core::model::{
    AttemptOutcome, Checkpoint, Fence, JsonText, Limits, RunId, Verdict, WallMs,
};
use drumtower_proto::worker::v1 as wire;

/// The worker does not keep to the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the worker broke the protocol: {0}: upgrade it")]
pub struct Violation(pub &'static str);

/// What a message is to the server.
#[derive(Clone, Debug)]
pub enum Incoming {
    Hello(wire::Hello),
    Event(WorkerEvent),
    Finished(Finished, LogEnd),
    Log(LogPiece),
    /// A message of a protocol that is not ours: skipped.
    Unknown,
}

/// What a worker says of its log when an attempt ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogEnd {
    pub truncated: bool,
    /// How much there is of it; 0 when the worker does not say.
    pub bytes: u64,
}

/// A chunk of output that was not checked against the run yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPiece {
    pub attempt: AttemptRef,
    pub seq: u64,
    pub stream: u32,
    pub wall: WallMs,
    pub data: Vec<u8>,
}

pub fn read(message: wire::WorkerMessage) -> Result<Incoming, Violation> {
    use wire::worker_message::Body;
    let Some(body) = message.body else {
        return Ok(Incoming::Unknown);
    };
    Ok(match body {
        Body::Hello(hello) => Incoming::Hello(hello),
        Body::Heartbeat(beat) => Incoming::Event(WorkerEvent::Heartbeat(heartbeat(beat))),
        Body::Grant(grant) => Incoming::Event(WorkerEvent::Granted { total: grant.total }),
        Body::Recall(wire::Recall { id, stays }) => {
            Incoming::Event(WorkerEvent::Recalled { id, stays })
        }
        Body::Started(started) => Incoming::Event(WorkerEvent::Started {
            attempt: attempt(started.attempt, "`started` names no attempt")?,
            at: WallMs(started.wall_ms),
        }),
        Body::Finished(end) => {
            let log = LogEnd {
                truncated: end.log_truncated,
                bytes: end.log_bytes,
            };
            Incoming::Finished(finished(end)?, log)
        }
        Body::Refused(refused) => Incoming::Event(WorkerEvent::Refused {
            attempt: attempt(refused.attempt, "`refused` names no attempt")?,
            reason: bounded(refused.reason),
        }),
        Body::Log(chunk) => Incoming::Log(LogPiece {
            attempt: attempt(chunk.attempt, "`log` names no attempt")?,
            seq: chunk.seq,
            stream: chunk.stream,
            wall: WallMs(chunk.wall_ms),
            data: chunk.data,
        }),
        Body::Progress(report) => Incoming::Event(WorkerEvent::Progress {
            attempt: attempt(report.attempt, "`progress` names no attempt")?,
            percent: u8::try_from(report.percent.min(100)).unwrap_or(100),
            message: words(&report.message),
        }),
        Body::Checkpoint(saved) => Incoming::Event(WorkerEvent::Checkpoint {
            attempt: attempt(saved.attempt, "`checkpoint` names no attempt")?,
            checkpoint: checkpoint(saved.number, saved.body)?,
        }),
        Body::Goodbye(wire::Goodbye {}) => Incoming::Event(WorkerEvent::Goodbye),
    })
}

/// Workers keep to the bounds: they could not tell a task that its checkpoint was too long afterwards.
fn checkpoint(number: u64, body: Vec<u8>) -> Result<Checkpoint, Violation> {
    if number == 0 || i64::try_from(number).is_err() {
        return Err(Violation("the number of a checkpoint is out of bounds"));
    }
    if body.len() > Limits::CHECKPOINT_BYTES {
        return Err(Violation("a checkpoint is too long"));
    }
    let body = body.into();
    Ok(Checkpoint { number, body })
}

/// A message of progress is one line of bounded length.
fn words(message: &str) -> Option<String> {
    let line = message.trim().chars().map(|it| match it {
        it if it.is_control() => ' ',
        it => it,
    });
    let line: String = line.take(Limits::PROGRESS_CHARS).collect();
    (!line.is_empty()).then_some(line)
}

fn attempt(
    given: Option<wire::AttemptRef>,
    missing: &'static str,
) -> Result<AttemptRef, Violation> {
    given.map(attempt_ref).ok_or(Violation(missing))
}

fn attempt_ref(given: wire::AttemptRef) -> AttemptRef {
    AttemptRef {
        run: RunId(given.run),
        attempt: given.attempt,
        fence: Fence(given.fence),
    }
}

fn heartbeat(beat: wire::Heartbeat) -> Heartbeat {
    Heartbeat {
        number: beat.number,
        acked_position: beat.acked_position,
        held: beat.held.into_iter().map(attempt_ref).collect(),
        load: beat.load.map(load).unwrap_or_default(),
        wall: WallMs(beat.wall_ms),
    }
}

fn load(load: wire::Load) -> Load {
    Load {
        cpu_permille: load.cpu_permille,
        memory_used_bytes: load.memory_used_bytes,
        memory_total_bytes: load.memory_total_bytes,
        disk_used_bytes: load.disk_used_bytes,
        disk_total_bytes: load.disk_total_bytes,
        network_received_bytes_per_s: load.network_received_bytes_per_s,
        network_sent_bytes_per_s: load.network_sent_bytes_per_s,
        running_weight: load.running_weight,
    }
}

fn finished(end: wire::Finished) -> Result<Finished, Violation> {
    let attempt = attempt(end.attempt, "`finished` names no attempt")?;
    let mut finished = Finished {
        attempt,
        outcome: AttemptOutcome::Failed,
        started: (end.started_wall_ms > 0).then_some(WallMs(end.started_wall_ms)),
        duration_ms: end.duration_ms,
        exit_code: end.exit_code,
        signal: end.signal,
        http_status: u16::try_from(end.http_status).ok().filter(|it| *it > 0),
        verdict: None,
        cpu_ms: end.cpu_ms,
        peak_memory_bytes: end.peak_memory_bytes,
        result: None,
        error: (!end.error.is_empty()).then(|| bounded(end.error)),
        log: None,
    };
    match outcome(end.outcome).and_then(|outcome| Ok((outcome, result(&end.result)?))) {
        Ok((outcome, result)) => {
            finished.outcome = outcome;
            finished.result = result;
            if outcome == AttemptOutcome::Failed {
                finished.verdict = end.verdict.and_then(verdict);
            }
            if matches!(finished.verdict, Some(Verdict::Snooze(_))) {
                finished.outcome = AttemptOutcome::Snoozed;
            }
        }
        Err(why) => finished.error = Some(why),
    }
    Ok(finished)
}

fn verdict(said: wire::finished::Verdict) -> Option<Verdict> {
    let bounded = |ms: u64| ms.min(Limits::RETRY_WAIT_MS);
    match said {
        wire::finished::Verdict::RetryAfterMs(ms) => Some(Verdict::RetryAfter(bounded(ms))),
        wire::finished::Verdict::GiveUp(true) => Some(Verdict::GiveUp),
        wire::finished::Verdict::GiveUp(false) => None,
        wire::finished::Verdict::SnoozeMs(ms) => Some(Verdict::Snooze(bounded(ms))),
    }
}

fn outcome(number: i32) -> Result<AttemptOutcome, String> {
    match wire::Outcome::try_from(number) {
        Ok(wire::Outcome::Succeeded) => Ok(AttemptOutcome::Succeeded),
        Ok(wire::Outcome::Failed) => Ok(AttemptOutcome::Failed),
        Ok(wire::Outcome::TimedOut) => Ok(AttemptOutcome::TimedOut),
        Ok(wire::Outcome::Cancelled) => Ok(AttemptOutcome::Cancelled),
        Ok(wire::Outcome::LeaseLost) => Ok(AttemptOutcome::Lost),
        Ok(wire::Outcome::Unspecified) | Err(_) => Err(format!(
            "the worker reported the outcome {number}, which this server does not know: upgrade the server"
        )),
    }
}

fn result(text: &str) -> Result<Option<JsonText>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    if text.len() > Limits::RESULT_BYTES {
        return Err(format!(
            "the result may have {} bytes, it had {}: return less",
            Limits::RESULT_BYTES,
            text.len()
        ));
    }
    JsonText::parse("the result", text)
        .map(Some)
        .map_err(|error| error.to_string())
}

/// Words of a worker, cut at their bound.
fn bounded(mut text: String) -> String {
    const CUT: &str = "… (cut)";
    if text.len() > Limits::ERROR_BYTES {
        let end = text.floor_char_boundary(Limits::ERROR_BYTES - CUT.len());
        text.truncate(end);
        text.push_str(CUT);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference() -> Option<wire::AttemptRef> {
        Some(wire::AttemptRef {
            run: 7,
            attempt: 1,
            fence: 9,
        })
    }

    fn read_finished(change: impl FnOnce(&mut wire::Finished)) -> Finished {
        let mut end = wire::Finished {
            attempt: reference(),
            outcome: 1,
            ..wire::Finished::default()
        };
        change(&mut end);
        finished(end).unwrap()
    }

    #[test]
    fn every_outcome_has_its_own_meaning() {
        let outcomes = (1..=5)
            .map(|number| read_finished(|end| end.outcome = number).outcome)
            .collect::<Vec<_>>();
        use AttemptOutcome::{Cancelled, Failed, Lost, Succeeded, TimedOut};
        assert_eq!(outcomes, [Succeeded, Failed, TimedOut, Cancelled, Lost]);
    }

    #[test]
    fn a_verdict_counts_beside_a_failure_only() {
        use wire::finished::Verdict as Said;
        let read = |outcome: wire::Outcome, said: Said| {
            let finished = read_finished(|end| {
                end.set_outcome(outcome);
                end.verdict = Some(said);
            });
            (finished.outcome, finished.verdict)
        };
        let (failed, done) = (wire::Outcome::Failed, wire::Outcome::Succeeded);
        let snoozed = (AttemptOutcome::Snoozed, Some(Verdict::Snooze(5)));
        assert_eq!(read(failed, Said::SnoozeMs(5)), snoozed);
        let again = Some(Verdict::RetryAfter(Limits::RETRY_WAIT_MS));
        let long = Said::RetryAfterMs(u64::MAX);
        assert_eq!(read(failed, long), (AttemptOutcome::Failed, again));
        let given_up = (AttemptOutcome::Failed, Some(Verdict::GiveUp));
        assert_eq!(read(failed, Said::GiveUp(true)), given_up);
        let fine = (AttemptOutcome::Succeeded, None);
        assert_eq!(read(done, Said::SnoozeMs(5)), fine);
    }

    #[test]
    fn an_unknown_outcome_is_a_failure_with_words() {
        for number in [0, 6, -1, i32::MAX] {
            let finished = read_finished(|end| end.outcome = number);
            assert_eq!(finished.outcome, AttemptOutcome::Failed);
            assert!(finished.error.unwrap().contains(&number.to_string()));
        }
    }

    #[test]
    fn a_result_that_cannot_be_kept_fails_the_attempt() {
        assert_eq!(
            read_finished(|end| end.result = "{\"a\":1}".to_owned())
                .result
                .unwrap()
                .as_str(),
            "{\"a\":1}"
        );
        for result in [
            "{".to_owned(),
            format!("\"{}\"", "x".repeat(Limits::RESULT_BYTES)),
        ] {
            let finished = read_finished(|end| end.result = result);
            assert_eq!(
                (finished.outcome, finished.result),
                (AttemptOutcome::Failed, None)
            );
            assert!(finished.error.unwrap().contains("result"));
        }
    }

    #[test]
    fn long_words_are_cut_between_characters() {
        let error = read_finished(|end| end.error = "鼓".repeat(Limits::ERROR_BYTES))
            .error
            .unwrap();
        assert!(
            error.len() <= Limits::ERROR_BYTES && error.ends_with("(cut)"),
            "{}",
            error.len()
        );
    }

    #[test]
    fn progress_and_checkpoints_have_bounds() {
        use wire::worker_message::Body;
        let read = |body| read(wire::WorkerMessage { body: Some(body) });
        let report = wire::Progress {
            attempt: reference(),
            percent: 4_000_000_000,
            message: format!(" a\nb{}", "鼓".repeat(1_000)),
        };
        let Ok(Incoming::Event(WorkerEvent::Progress {
            percent, message, ..
        })) = read(Body::Progress(report))
        else {
            panic!("it is taken")
        };
        let message = message.unwrap();
        assert_eq!((percent, message.chars().count()), (100, 256));
        assert!(message.starts_with("a b鼓"), "{message}");
        let saved = |number, bytes| {
            let saved = wire::Checkpoint {
                attempt: reference(),
                number,
                body: vec![0; bytes],
            };
            read(Body::Checkpoint(saved)).is_ok()
        };
        assert!(saved(1, Limits::CHECKPOINT_BYTES));
        assert!(!saved(1, Limits::CHECKPOINT_BYTES + 1));
        assert!(!saved(0, 1));
        assert!(!saved(u64::MAX, 1));
    }

    #[test]
    fn a_message_without_its_attempt_breaks_the_protocol() {
        use wire::worker_message::Body;
        let bodies = [
            Body::Started(wire::Started::default()),
            Body::Finished(wire::Finished::default()),
            Body::Refused(wire::Refused::default()),
            Body::Log(wire::LogChunk::default()),
            Body::Progress(wire::Progress::default()),
            Body::Checkpoint(wire::Checkpoint::default()),
        ];
        for body in bodies {
            assert!(read(wire::WorkerMessage { body: Some(body) }).is_err());
        }
        assert!(matches!(
            read(wire::WorkerMessage { body: None }),
            Ok(Incoming::Unknown)
        ));
    }
}
