//! Whether a job takes one more run: first its breaker is asked, then its overlap.
//!
//! Nothing is changed here. Whoever makes the run says so to the tallies (`runs.rs`) and to the breaker (`breaker.rs`).

use crate::fault::{Fault, armed};
use crate::model::{
    BreakerRow, JobId, Keep, OnFull, OverlapPolicy, Pass, Places, Standing, WallMs,
};

use super::Engine;

/// What becomes of a run that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// It is made and may start.
    Go,
    /// It is made and waits for its turn.
    Queue,
    /// As many as may be are under way.
    Full,
    /// And as many wait as may.
    QueueFull,
    /// As many are under way, and the run is to be made and fail.
    Fail,
    /// The breaker lets nothing through.
    Shut(Pass),
}

/// What the overlap says when `places` are taken.
pub(super) fn decide(policy: &OverlapPolicy, places: Places) -> Admission {
    let go = Admission::Go;
    let Some(limit) = policy.most() else {
        return go;
    };
    let free = limit.saturating_sub(places.live);
    // What waits has its turn first, also when a place is free and it is on its way there.
    if free > places.queued && (policy.on_full != OnFull::Queue || places.queued == 0) {
        return go;
    }
    match policy.on_full {
        OnFull::Allow => go,
        OnFull::Skip => Admission::Full,
        OnFull::Fail => Admission::Fail,
        OnFull::CancelOld if armed(Fault::OldNotAwaited) => go,
        OnFull::CancelOld => Admission::Queue,
        OnFull::Queue => {
            let room = places.queued < policy.depth.saturating_add(free);
            match policy.keep {
                Keep::Newest => Admission::Queue,
                Keep::Oldest if room => Admission::Queue,
                Keep::Oldest => Admission::QueueFull,
            }
        }
    }
}

impl Engine {
    /// What becomes of a run of this standing; `forced` past the breaker.
    pub(super) fn admit(
        &self,
        now: WallMs,
        id: JobId,
        standing: &Standing,
        forced: bool,
    ) -> Admission {
        let job = self.jobs.expect(id);
        let pass = match job.compiled.breaker {
            Some(_) => BreakerRow::pass(job.breaker.as_ref(), now),
            None => Pass::Closed,
        };
        match pass {
            Pass::Closed | Pass::Probe => {}
            Pass::Probing(_) if armed(Fault::ManyProbes) => {}
            Pass::Cooling(_) | Pass::Probing(_) if forced => {}
            shut => return Admission::Shut(shut),
        }
        if !standing.counts || armed(Fault::OverlapIgnored) {
            return Admission::Go;
        }
        let key = standing
            .key
            .as_deref()
            .filter(|_| !armed(Fault::KeyIgnored));
        decide(&job.compiled.overlap, job.tallies.of(key))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::Overlap;

    fn says(overlap: serde_json::Value, live: u32, queued: u32) -> Admission {
        let overlap: Overlap = serde_json::from_value(overlap).expect("valid");
        let policy = overlap.parsed("overlap").expect("valid");
        decide(&policy, Places { live, queued })
    }

    #[test]
    fn each_mode_answers_a_full_job_in_its_own_way() {
        let go = Admission::Go;
        for word in ["skip", "allow", "queue", "cancel_old", "fail"] {
            assert_eq!(says(json!(word), 0, 0), go, "{word}");
        }
        assert_eq!(says(json!("skip"), 1, 0), Admission::Full);
        assert_eq!(says(json!("allow"), 1_000_000, 0), go);
        assert_eq!(says(json!("queue"), 1, 0), Admission::Queue);
        assert_eq!(says(json!("cancel_old"), 1, 0), Admission::Queue);
        assert_eq!(says(json!("fail"), 1, 0), Admission::Fail);
    }

    #[test]
    fn the_limit_is_that_of_runs_under_way() {
        let three = json!({"limit": 3});
        assert_eq!(says(three.clone(), 2, 0), Admission::Go);
        assert_eq!(says(three.clone(), 3, 0), Admission::Full);
        assert_eq!(says(three.clone(), 9, 0), Admission::Full, "it was lowered");
        assert_eq!(
            says(three, 1, 2),
            Admission::Full,
            "those that wait come first"
        );
    }

    #[test]
    fn a_full_queue_keeps_the_oldest_or_the_newest() {
        let two = |keep: &str| json!({"on_full": "queue", "depth": 2, "keep": keep});
        assert_eq!(says(two("oldest"), 1, 1), Admission::Queue);
        assert_eq!(says(two("oldest"), 1, 2), Admission::QueueFull);
        assert_eq!(says(two("newest"), 1, 2), Admission::Queue);
        assert_eq!(
            says(two("oldest"), 0, 2),
            Admission::Queue,
            "one is about to leave"
        );
        assert_eq!(says(two("oldest"), 0, 3), Admission::QueueFull);
    }
}
