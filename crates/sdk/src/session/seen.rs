//! The attempts that were seen: so that none is started twice, and none after a later one of its run.
//!
//! One entry a run, of its latest attempt. Entries go in the order they came once there are [`REMEMBERED`]; far before
//! that, an assignment of such an attempt would rest on a heartbeat whose lease is over.

use std::collections::{HashMap, VecDeque};

use drumtower_proto::worker::v1 as wire;

const REMEMBERED: usize = 200_000;

#[derive(Debug, Default)]
pub(super) struct Seen {
    latest: HashMap<u64, Latest>,
    order: VecDeque<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Latest {
    attempt: u32,
    fence: u64,
    started: bool,
}

/// What is known of an attempt that the server assigns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    No,
    /// It was started.
    Started,
    /// It was refused, and that is final.
    Refused,
    /// A later attempt of the run, or a higher fence, was seen.
    Overtaken,
}

impl Seen {
    pub(super) fn look_up(&self, attempt: wire::AttemptRef) -> Known {
        match self.latest.get(&attempt.run) {
            None => Known::No,
            Some(latest) if attempt.attempt == latest.attempt => {
                if latest.started {
                    Known::Started
                } else {
                    Known::Refused
                }
            }
            Some(latest) if attempt.attempt < latest.attempt || attempt.fence <= latest.fence => {
                Known::Overtaken
            }
            Some(_) => Known::No,
        }
    }

    pub(super) fn note(&mut self, attempt: wire::AttemptRef, started: bool) {
        let latest = Latest {
            attempt: attempt.attempt,
            fence: attempt.fence,
            started,
        };
        if self.latest.insert(attempt.run, latest).is_none() {
            self.order.push_back(attempt.run);
            if self.order.len() > REMEMBERED
                && let Some(oldest) = self.order.pop_front()
            {
                self.latest.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(run: u64, attempt: u32, fence: u64) -> wire::AttemptRef {
        wire::AttemptRef {
            run,
            attempt,
            fence,
        }
    }

    #[test]
    fn an_attempt_is_known_and_what_it_overtook_too() {
        let mut seen = Seen::default();
        assert_eq!(seen.look_up(attempt(1, 2, 20)), Known::No);
        seen.note(attempt(1, 2, 20), true);
        assert_eq!(seen.look_up(attempt(1, 2, 20)), Known::Started);
        assert_eq!(seen.look_up(attempt(1, 1, 10)), Known::Overtaken);
        assert_eq!(
            seen.look_up(attempt(1, 3, 20)),
            Known::Overtaken,
            "a fence grows strictly"
        );
        assert_eq!(seen.look_up(attempt(1, 3, 21)), Known::No);
        seen.note(attempt(1, 3, 21), false);
        assert_eq!(seen.look_up(attempt(1, 3, 21)), Known::Refused);
    }

    #[test]
    fn memory_is_bounded() {
        let mut seen = Seen::default();
        for run in 0..=REMEMBERED as u64 {
            seen.note(attempt(run, 1, 1), true);
        }
        assert_eq!(seen.latest.len(), REMEMBERED);
        assert_eq!(seen.look_up(attempt(0, 1, 1)), Known::No);
        assert_eq!(seen.look_up(attempt(1, 1, 1)), Known::Started);
    }
}
