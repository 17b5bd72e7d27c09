//! V12: where a job wants jitter, runs that failed together are not tried again together.
//!
//! The wait before a retry lies between the backoff and one and a half times that, wherever in between chance has it. One wait
//! without any jitter is possible; a world in which none has any is not.

use drumtower_core::model::{Backoff, Run, RunState};
use drumtower_core::schedule::parse_duration;

use crate::world::World;

/// What was seen of jitter in a world.
#[derive(Default)]
pub(super) struct Jitter {
    seen: bool,
    /// How unlikely it is that all waits were without it: the logarithm.
    missing: f64,
}

/// One in a thousand millions.
const IMPOSSIBLE: f64 = 20.7;

impl World {
    /// A run has been written; `ended` of its attempts were known to have ended.
    pub(super) fn check_jitter(&mut self, run: &Run, ended: usize) {
        let ends: Vec<_> = run
            .attempts
            .iter()
            .filter_map(|it| it.end.as_ref())
            .collect();
        let (Some(end), Some(again)) = (ends.last(), run.not_before) else {
            return;
        };
        let waits = run.state == RunState::Pending && run.current_attempt().is_none();
        if !waits || ends.len() <= ended || !end.outcome.is_failure() || end.verdict.is_some() {
            return;
        }
        let Some(spec) = self.spec(run.job, run.job_version) else {
            return;
        };
        let retry = spec.retry;
        if retry.jitter == Some(false) || !retry.on.is_empty() {
            return;
        }
        let given = |text: &Option<String>, usual: u64| match text {
            Some(text) => parse_duration(text).unwrap_or(usual),
            None => usual,
        };
        let failures = ends.iter().filter(|end| end.outcome.is_failure()).count();
        let doublings = match retry.backoff {
            Some(Backoff::Fixed) => 0,
            _ => failures.saturating_sub(1).min(40),
        };
        let backoff = (given(&retry.initial, 1_000) << doublings).min(given(&retry.max, 300_000));
        let decided = run.transitions.last().map_or(end.at, |last| last.at);
        let (least, most) = (backoff.cast_signed(), (backoff + backoff / 2).cast_signed());
        let waited = again.since(decided);
        if waited < least || waited > most {
            let words = format!(
                "{} waits for {waited} ms after a backoff of {least}",
                run.id
            );
            self.checks.find("V12", words);
        }
        let jitter = &mut self.checks.jitter;
        jitter.seen |= waited > least;
        jitter.missing += ((backoff / 2 + 1) as f64).ln();
    }

    pub(super) fn check_jitter_seen(&mut self) {
        let jitter = &self.checks.jitter;
        if !jitter.seen && jitter.missing > IMPOSSIBLE {
            let words = "no retry of any run was put off by any jitter".to_owned();
            self.checks.find("V12", words);
        }
    }
}
