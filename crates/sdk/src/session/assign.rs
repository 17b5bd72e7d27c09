//! An assignment arrives: start it, or refuse it for good. What could not be started after all is refused later.
//! Positions and credit are of the link; that nothing starts twice holds over all of them.

use drumtower_core::model::MonoMs;
use drumtower_proto::worker::v1 as wire;

use super::held::{Held, Phase, StopTimes, before};
use super::seen::Known;
use super::{Action, Attempt, LinkId, Session, StopReason};

impl Session {
    pub(super) fn assign(&mut self, now: MonoMs, id: LinkId, assign: wire::Assign) {
        let Some(attempt) = assign.attempt else {
            return self.violation(id, "an assignment names no attempt");
        };
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        // Positions have no gaps on a stream, so one that was passed already is a copy.
        if assign.position <= link.last_position {
            return;
        }
        if assign.position != link.last_position + 1 {
            return self.violation(id, "the position of an assignment leaves a gap");
        }
        link.last_position = assign.position;
        link.expect_renewal(now);
        let lease_ms = link.lease_ms;
        let times = self.stop_times(lease_ms);
        let covered = self.shares.consume(id, assign.weight);
        let sent = self.beats.sent_at(assign.beat, id);
        let deadline = sent.map(|sent| sent.plus(lease_ms));
        let usable = |deadline: &MonoMs| before(*deadline, times.margin_ms) > now;
        let deadline = deadline.filter(usable);
        match self.seen.look_up(attempt) {
            // A copy. Heartbeats name the attempt while it runs and until its end is acknowledged; renewals, not copies,
            // prolong it.
            Known::Started => {}
            Known::Refused => self.refuse(id, attempt, "it was refused before"),
            Known::Overtaken => self.refuse(
                id,
                attempt,
                "a later attempt of the run, or a higher fence, was seen here",
            ),
            Known::No => match self.startable(now, &assign, covered, deadline) {
                Ok(deadline) => {
                    let held = Held::new(attempt, &assign, id, deadline, times);
                    self.start(id, held, assign);
                }
                Err(reason) => {
                    self.seen.note(attempt, false);
                    self.refuse(id, attempt, &reason);
                }
            },
        }
    }

    /// Until when it may run, or why it may not.
    fn startable(
        &mut self,
        now: MonoMs,
        assign: &wire::Assign,
        covered: bool,
        deadline: Option<MonoMs>,
    ) -> Result<MonoMs, String> {
        if self.drain.is_some() {
            return Err("the worker is draining".to_owned());
        }
        if assign.weight == 0 || !covered {
            return Err(format!("weight {} is not covered by credit", assign.weight));
        }
        match &assign.task {
            Some(wire::assign::Task::Exec(_) | wire::assign::Task::Script(_))
                if self.config.exec => {}
            Some(wire::assign::Task::Http(_)) if self.config.http => {}
            Some(wire::assign::Task::Handler(task))
                if self.config.handlers.contains(&task.name) => {}
            Some(wire::assign::Task::Handler(task)) => {
                return Err(format!("there is no handler `{}` here", task.name));
            }
            _ => return Err("this worker cannot run such a task".to_owned()),
        }
        let deadline = deadline.ok_or("its lease is over")?;
        if let Some(older) = self.running_attempt_of(assign) {
            self.stop_one(now, older, StopReason::Cancelled);
            return Err(format!(
                "attempt {} of the run has not stopped yet",
                older.number
            ));
        }
        Ok(deadline)
    }

    fn running_attempt_of(&self, assign: &wire::Assign) -> Option<Attempt> {
        let run = assign.attempt?.run;
        let of_run = Attempt { run, number: 0 }..=Attempt {
            run,
            number: u32::MAX,
        };
        self.held
            .range(of_run)
            .find(|(_, held)| !held.is_finished())
            .map(|(attempt, _)| *attempt)
    }

    fn start(&mut self, id: LinkId, held: Held, assign: wire::Assign) {
        let deadline = held.deadline;
        self.seen.note(held.attempt, true);
        self.shares.occupy(id, held.weight);
        self.check_at = self.check_at.min(held.next_moment());
        self.held.insert(held.attempt.into(), held);
        self.actions.push_back(Action::Start {
            assign: Box::new(assign),
            deadline,
        });
    }

    /// Nothing of the attempt was started, nor will be: the server may give it to another worker. One that was reported as
    /// started has to end with [`Session::attempt_finished`].
    pub fn attempt_refused(&mut self, attempt: Attempt, reason: &str) {
        let starting = |held: &&Held| matches!(held.phase, Phase::Starting);
        let Some(held) = self.held.get(&attempt).filter(starting) else {
            return;
        };
        let (named, home, settled) = (held.attempt, held.home, held.settled);
        self.shares.vacate(home, held.weight);
        self.held.remove(&attempt);
        self.seen.note(named, false);
        // A server that becomes its home would hear that it is not held, which says as much.
        if let Some(home) = home.filter(|_| !settled) {
            self.refuse(home, named, reason);
        }
    }

    pub(super) fn refuse(&mut self, id: LinkId, attempt: wire::AttemptRef, reason: &str) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        let refused = wire::Refused {
            attempt: Some(attempt),
            reason: reason.to_owned(),
        };
        link.refusals.push_back(refused);
    }

    pub(super) fn stop_times(&self, lease_ms: u64) -> StopTimes {
        StopTimes {
            margin_ms: self.config.stop_margin_ms.min(lease_ms / 5),
            grace_ms: self.config.stop_grace_ms,
        }
    }
}
