//! What the end of a command means for its attempt, and in which words that is told.

use drumtower_core::model::{JsonText, format_bytes};
use drumtower_proto::worker::v1 as wire;

use crate::exec::{Excess, Left, Limits, Outcome, Reason};

/// By what a command is judged.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    /// Exit codes that count as success.
    pub(super) success: Vec<i32>,
    pub(super) limits: Limits,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            success: vec![0],
            limits: Limits::default(),
        }
    }
}

/// The end of an attempt, without its name.
pub(super) fn end_of(terms: &Terms, outcome: Outcome, log_truncated: bool) -> wire::Finished {
    let (mut verdict, mut words) = judge(terms, &outcome);
    let mut result = String::new();
    match outcome.left.map(usable).transpose() {
        Ok(text) => result = text.unwrap_or_default(),
        // A result that was promised and cannot be read is not a success; beside another failure it says little.
        Err(why) if verdict == wire::Outcome::Succeeded => {
            verdict = wire::Outcome::Failed;
            words = why;
        }
        Err(_) => {}
    }
    if verdict != wire::Outcome::Succeeded
        && let Some(detail) = outcome.error
    {
        words = if words.is_empty() {
            detail
        } else {
            format!("{words}: {detail}")
        };
    }
    wire::Finished {
        attempt: None,
        outcome: verdict.into(),
        started_wall_ms: outcome
            .started_wall_ms
            .and_then(|ms| i64::try_from(ms).ok())
            .unwrap_or(0),
        duration_ms: outcome.duration_ms,
        exit_code: outcome.exit_code,
        signal: outcome.signal,
        cpu_ms: outcome.cpu_ms,
        peak_memory_bytes: outcome.peak_rss_bytes,
        result,
        error: words,
        log_truncated,
        ..wire::Finished::default()
    }
}

/// The result as JSON, or why it is none.
fn usable(left: Left) -> Result<String, String> {
    let text = match left {
        Left::Text(text) => text,
        Left::Unusable(why) => {
            return Err(format!(
                "the file DRUMTOWER_RESULT_FILE cannot be used: {why}"
            ));
        }
    };
    match JsonText::parse("the file DRUMTOWER_RESULT_FILE", text.trim()) {
        Ok(json) => Ok(json.as_str().to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn judge(terms: &Terms, outcome: &Outcome) -> (wire::Outcome, String) {
    let said = |words: &str| words.to_owned();
    match outcome.reason {
        Reason::Exited => exited(terms, outcome),
        Reason::Excess(excess) => (wire::Outcome::Failed, exceeded(terms, excess)),
        Reason::Deadline => (
            wire::Outcome::LeaseLost,
            said("the worker could not renew its lease"),
        ),
        Reason::Timeout => (
            wire::Outcome::TimedOut,
            said("the run took longer than its timeout"),
        ),
        // The session knows why it was told to stop.
        Reason::Killed(_) => (wire::Outcome::Cancelled, String::new()),
        Reason::AgentGone => (
            wire::Outcome::LeaseLost,
            said("the worker let go of the command"),
        ),
        Reason::NotStarted => (
            wire::Outcome::Failed,
            said("the command could not be started"),
        ),
        Reason::SupervisorLost => (
            wire::Outcome::Failed,
            said("the command's supervisor was lost"),
        ),
    }
}

fn exited(terms: &Terms, outcome: &Outcome) -> (wire::Outcome, String) {
    let words = match (outcome.exit_code, outcome.signal) {
        (Some(code), _) if terms.success.contains(&code) => {
            return (wire::Outcome::Succeeded, String::new());
        }
        (None, Some(libc::SIGKILL)) if outcome.excess == Some(Excess::Memory) => {
            return (wire::Outcome::Failed, exceeded(terms, Excess::Memory));
        }
        (Some(code), _) if terms.success != [0] => {
            let expected: Vec<String> = terms.success.iter().map(i32::to_string).collect();
            let expected = expected.join(", ");
            format!("the command exited with code {code}, expected {expected}")
        }
        (Some(code), _) => format!("the command exited with code {code}"),
        (None, Some(signal)) => format!("the command was killed by signal {signal}"),
        (None, None) => "the command ended in an unknown way".to_owned(),
    };
    let note = match outcome.excess {
        Some(excess) => Some(format!("it reached its limit of {}", bound(terms, excess))),
        None => in_force(terms, outcome.grouped),
    };
    let words = match note {
        Some(note) => format!("{words}; {note}"),
        None => words,
    };
    (wire::Outcome::Failed, words)
}

fn exceeded(terms: &Terms, excess: Excess) -> String {
    format!("killed for exceeding {}", bound(terms, excess))
}

fn bound(terms: &Terms, excess: Excess) -> String {
    match excess {
        Excess::Memory => {
            let bytes = terms.limits.memory_bytes.unwrap_or(0);
            format!("{} of memory", format_bytes(bytes))
        }
        Excess::Processes => format!("{} processes", terms.limits.processes.unwrap_or(0)),
    }
}

/// A program that is refused memory or files by the system fails in its own way: whoever looks for the cause is told of the
/// limits that it ran under.
fn in_force(terms: &Terms, grouped: bool) -> Option<String> {
    let memory = terms.limits.memory_bytes.filter(|_| !grouped);
    let memory = memory.map(|bytes| format!("{} of memory a process", format_bytes(bytes)));
    let files = terms.limits.open_files;
    let files = files.map(|count| format!("{count} open files a process"));
    let list: Vec<String> = memory.into_iter().chain(files).collect();
    (!list.is_empty()).then(|| format!("it was limited to {}", list.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::KillReason;

    fn outcome(reason: Reason, exit_code: Option<i32>, signal: Option<i32>) -> Outcome {
        Outcome {
            exit_code,
            signal,
            reason,
            started_wall_ms: Some(5),
            duration_ms: 7,
            cpu_ms: 1,
            peak_rss_bytes: 2,
            excess: None,
            grouped: false,
            left: None,
            progress: None,
            checkpoint: false,
            error: None,
        }
    }

    fn end(outcome: Outcome) -> wire::Finished {
        end_of(&Terms::default(), outcome, false)
    }

    #[test]
    fn ends_are_judged_by_how_the_command_ended() {
        use wire::Outcome as Is;
        let cases = [
            (outcome(Reason::Exited, Some(0), None), Is::Succeeded, ""),
            (outcome(Reason::Exited, Some(3), None), Is::Failed, "code 3"),
            (
                outcome(Reason::Exited, None, Some(9)),
                Is::Failed,
                "signal 9",
            ),
            (
                outcome(Reason::Deadline, None, Some(9)),
                Is::LeaseLost,
                "lease",
            ),
            (
                outcome(Reason::Timeout, None, Some(15)),
                Is::TimedOut,
                "timeout",
            ),
            (
                outcome(Reason::Killed(KillReason::Cancelled), Some(0), None),
                Is::Cancelled,
                "",
            ),
            (
                outcome(Reason::NotStarted, None, None),
                Is::Failed,
                "not be started",
            ),
        ];
        for (outcome, verdict, words) in cases {
            let end = end(outcome.clone());
            assert_eq!(end.outcome(), verdict, "{outcome:?}");
            assert!(end.error.contains(words), "{}", end.error);
        }
    }

    #[test]
    fn details_are_told_unless_the_command_succeeded() {
        let mut failed = outcome(Reason::NotStarted, None, None);
        failed.error = Some("no such file: /x".to_owned());
        assert_eq!(
            end(failed).error,
            "the command could not be started: no such file: /x"
        );
        let mut fine = outcome(Reason::Exited, Some(0), None);
        fine.error = Some("scratch stays".to_owned());
        assert_eq!(end(fine).error, "");
    }

    #[test]
    fn other_codes_may_be_a_success_and_zero_a_failure() {
        let terms = Terms {
            success: vec![3, 7],
            ..Terms::default()
        };
        let of = |code| end_of(&terms, outcome(Reason::Exited, Some(code), None), false);
        assert_eq!(of(7).outcome(), wire::Outcome::Succeeded);
        assert_eq!(of(0).error, "the command exited with code 0, expected 3, 7");
    }

    #[test]
    fn an_excess_is_told_with_its_limit() {
        let terms = Terms {
            limits: Limits {
                memory_bytes: Some(512 << 20),
                processes: Some(4),
                ..Limits::default()
            },
            ..Terms::default()
        };
        let told = |outcome| end_of(&terms, outcome, false).error;
        let killed = outcome(Reason::Excess(Excess::Memory), None, Some(9));
        assert_eq!(told(killed), "killed for exceeding 512 MiB of memory");
        let mut by_kernel = outcome(Reason::Exited, None, Some(9));
        by_kernel.excess = Some(Excess::Memory);
        by_kernel.grouped = true;
        assert_eq!(told(by_kernel), "killed for exceeding 512 MiB of memory");
        let mut forks = outcome(Reason::Exited, Some(2), None);
        forks.excess = Some(Excess::Processes);
        assert!(told(forks).ends_with("; it reached its limit of 4 processes"));
        let plain = outcome(Reason::Exited, Some(1), None);
        assert!(told(plain).ends_with("; it was limited to 512 MiB of memory a process"));
    }

    #[test]
    fn a_result_is_kept_and_one_that_is_no_json_is_a_failure() {
        let left = |left, code| {
            let mut outcome = outcome(Reason::Exited, Some(code), None);
            outcome.left = Some(left);
            end(outcome)
        };
        let fine = left(Left::Text("{\"rows\": 3}\n".to_owned()), 0);
        assert_eq!(
            (fine.outcome(), &*fine.result),
            (wire::Outcome::Succeeded, "{\"rows\": 3}")
        );
        let odd = left(Left::Text("rows 3".to_owned()), 0);
        assert_eq!(odd.outcome(), wire::Outcome::Failed);
        assert!(
            odd.error.contains("RESULT_FILE is not JSON"),
            "{}",
            odd.error
        );
        let long = left(Left::Unusable("it has 70000 bytes".to_owned()), 0);
        assert!(long.error.contains("70000 bytes"), "{}", long.error);
        let failed = left(Left::Text("1".to_owned()), 4);
        assert_eq!(
            (failed.outcome(), &*failed.result),
            (wire::Outcome::Failed, "1")
        );
    }
}
