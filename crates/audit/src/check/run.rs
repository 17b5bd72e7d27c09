//! The promises about one run, from its row and from what its tasks wrote.

use drumtower_core::model::{AttemptOutcome, Run, RunState, WallMs};

use super::automaton;
use super::evidence::{End, Start};
use super::options::Options;
use super::report::{Class, Report};
use crate::journal::Outcome;

/// One run and its evidence.
pub(super) struct Subject<'a> {
    pub run: &'a Run,
    /// In order of attempt and time.
    pub starts: &'a [Start],
    pub ends: &'a [End],
    pub options: &'a Options,
}

impl Subject<'_> {
    pub fn check(&self, report: &mut Report) {
        self.path(report);
        self.never_early(report);
        self.started_once(report);
        self.attempts_apart(report);
        self.authorised(report);
        self.fences_grow(report);
        self.cancel_holds(report);
        self.end_agrees(report);
        self.in_time(report);
    }

    /// When the first attempt began: as its task says, or else as its worker told the server.
    fn first_start(&self) -> Option<WallMs> {
        let told = self
            .run
            .attempts
            .iter()
            .filter_map(|attempt| attempt.started)
            .min();
        self.starts.iter().map(|start| start.wall).min().or(told)
    }

    fn path(&self, report: &mut Report) {
        if automaton::terminal_states(self.run) > 1 {
            report.add(Class::Other, "V7", self.run.id, || {
                let states: Vec<_> = self
                    .run
                    .transitions
                    .iter()
                    .map(|step| step.to.as_str())
                    .collect();
                format!(
                    "it ended more than once: {}, then {} in its row",
                    states.join(", "),
                    self.run.state.as_str()
                )
            });
        }
        if let Some(fault) = automaton::fault(self.run) {
            report.add(Class::Other, "V18", self.run.id, || fault);
        }
    }

    fn never_early(&self, report: &mut Report) {
        let Some(start) = self.first_start() else {
            return;
        };
        let delay = start.since(self.run.due);
        report.latest_start_ms = report.latest_start_ms.max(Some(delay));
        if delay < -self.options.clock_bound_ms {
            report.add(Class::Early, "V3", self.run.id, || {
                format!(
                    "it was due at {} and started at {}, {} ms early",
                    self.run.due.0, start.0, -delay
                )
            });
        }
    }

    fn started_once(&self, report: &mut Report) {
        for pair in self
            .starts
            .windows(2)
            .filter(|pair| pair[0].attempt == pair[1].attempt)
        {
            report.add(Class::Duplicated, "V5", self.run.id, || {
                format!(
                    "attempt {} started at {} and again at {}",
                    pair[0].attempt, pair[0].wall.0, pair[1].wall.0
                )
            });
        }
    }

    /// No attempt begins while an earlier one has not ended, by the tasks' word and by the row's.
    fn attempts_apart(&self, report: &mut Report) {
        let bound = self.options.clock_bound_ms;
        for end in self.ends {
            for start in self
                .starts
                .iter()
                .filter(|start| start.attempt > end.attempt && start.wall.plus(bound) < end.wall)
            {
                report.add(Class::Duplicated, "V5", self.run.id, || {
                    let (later, earlier) = (start.attempt, end.attempt);
                    format!(
                        "attempt {later} started at {} and attempt {earlier} ended at {}",
                        start.wall.0, end.wall.0
                    )
                });
            }
        }
        // Both are the server's word.
        let bound = bound.saturating_add(self.options.clock_back_ms);
        for pair in self.run.attempts.windows(2) {
            let ended = pair[0].end.as_ref().map(|end| end.at);
            if ended.is_none_or(|ended| ended > pair[1].assigned.plus(bound)) {
                report.add(Class::Duplicated, "V5", self.run.id, || {
                    let ended = ended.map_or("has not ended".to_owned(), |at| {
                        format!("ended at {}", at.0)
                    });
                    format!(
                        "attempt {} was assigned at {} and the one before {ended}",
                        pair[1].number, pair[1].assigned.0
                    )
                });
            }
        }
    }

    /// Whatever started was assigned, under the fence it was given.
    fn authorised(&self, report: &mut Report) {
        for start in self.starts {
            let assigned = self
                .run
                .attempts
                .iter()
                .find(|attempt| attempt.number == start.attempt);
            match assigned {
                None => report.add(Class::Duplicated, "V5", self.run.id, || {
                    format!(
                        "attempt {} started at {} and was never assigned",
                        start.attempt, start.wall.0
                    )
                }),
                Some(attempt) if attempt.fence.0 != start.fence => {
                    report.add(Class::Other, "V6", self.run.id, || {
                        format!(
                            "attempt {} holds fence {}, its task saw {}",
                            start.attempt, attempt.fence.0, start.fence
                        )
                    })
                }
                Some(attempt) if undelivered(attempt) => {
                    report.add(Class::Duplicated, "V5", self.run.id, || {
                        format!(
                            "attempt {} started at {} and is recorded as undelivered",
                            start.attempt, start.wall.0
                        )
                    })
                }
                Some(_) => {}
            }
        }
    }

    fn fences_grow(&self, report: &mut Report) {
        for (index, attempt) in self.run.attempts.iter().enumerate() {
            if attempt.number as usize != index + 1 {
                report.add(Class::Other, "V6", self.run.id, || {
                    format!(
                        "its attempts are not numbered from 1: attempt {} is in place {}",
                        attempt.number,
                        index + 1
                    )
                });
            }
        }
        for pair in self
            .run
            .attempts
            .windows(2)
            .filter(|pair| pair[0].fence >= pair[1].fence)
        {
            report.add(Class::Other, "V6", self.run.id, || {
                let (earlier, later) = (&pair[0], &pair[1]);
                format!(
                    "fence {} of attempt {} does not exceed {}",
                    later.fence.0, later.number, earlier.fence.0
                )
            });
        }
    }

    fn cancel_holds(&self, report: &mut Report) {
        let Some(cancel) = &self.run.cancel else {
            return;
        };
        let at = cancel.at.plus(self.options.clock_back_ms);
        for attempt in self
            .run
            .attempts
            .iter()
            .filter(|attempt| attempt.assigned > at)
        {
            report.add(Class::Other, "V13", self.run.id, || {
                let (number, assigned) = (attempt.number, attempt.assigned.0);
                format!("its cancellation was accepted at {} and attempt {number} assigned at {assigned}", cancel.at.0)
            });
        }
    }

    /// A run is not COMPLETED by an attempt that said it failed.
    fn end_agrees(&self, report: &mut Report) {
        let Some(last) = self
            .run
            .attempts
            .last()
            .filter(|_| self.run.state == RunState::Completed)
        else {
            return;
        };
        for end in self
            .ends
            .iter()
            .filter(|end| end.attempt == last.number && end.outcome != Outcome::Succeeded)
        {
            report.add(Class::Other, "V7", self.run.id, || {
                format!(
                    "it is COMPLETED and the task of attempt {} wrote {:?}",
                    end.attempt, end.outcome
                )
            });
        }
    }

    fn in_time(&self, report: &mut Report) {
        let due = self.run.due;
        let within = self.options.start_within_ms;
        let healthy = |window: &&(WallMs, WallMs)| due >= window.0 && due.plus(within) <= window.1;
        let Some(window) = self.options.healthy.iter().find(healthy) else {
            return;
        };
        // A run that ended before it started was cancelled in the queue.
        let Some(start) = self
            .first_start()
            .or(self.run.finished().is_none().then_some(window.1))
        else {
            return;
        };
        if start.since(due) > within {
            report.add(Class::Other, "V4", self.run.id, || {
                format!(
                    "it was due at {} in calm times and started {} ms later",
                    due.0,
                    start.since(due)
                )
            });
        }
    }
}

fn undelivered(attempt: &drumtower_core::model::Attempt) -> bool {
    attempt
        .end
        .as_ref()
        .is_some_and(|end| end.outcome == AttemptOutcome::Undelivered)
}
