//! An assignment arrives: start it, or refuse it for good. What could not be started after all is refused later.

use drumtower_core::model::MonoMs;
use drumtower_proto::worker::v1 as wire;

use super::held::{Held, Phase, before};
use super::seen::Known;
use super::{Action, Attempt, Session, StopReason};

impl Session {
    pub(super) fn assign(&mut self, now: MonoMs, assign: wire::Assign) {
        let Some(attempt) = assign.attempt else {
            return self.violation("an assignment names no attempt");
        };
        // Positions have no gaps on a stream, so one that was passed already is a copy.
        if assign.position <= self.stream.last_position {
            return;
        }
        if assign.position != self.stream.last_position + 1 {
            return self.violation("the position of an assignment leaves a gap");
        }
        self.stream.last_position = assign.position;
        let covered = self.credits.consume(assign.weight);
        let deadline = self
            .beats
            .sent_at(assign.beat)
            .map(|sent| sent.plus(self.lease_ms));
        match self.seen.look_up(attempt) {
            // A copy. Heartbeats name the attempt while it runs and until its end is acknowledged; renewals, not copies,
            // prolong it.
            Known::Started => {}
            Known::Refused => self.refuse(attempt, "it was refused before"),
            Known::Overtaken => self.refuse(
                attempt,
                "a later attempt of the run, or a higher fence, was seen here",
            ),
            Known::No => match self.startable(now, &assign, covered, deadline) {
                Ok(deadline) => self.start(attempt, assign, deadline),
                Err(reason) => {
                    self.seen.note(attempt, false);
                    self.refuse(attempt, &reason);
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
        let usable = |deadline: &MonoMs| before(*deadline, self.stop_times().margin_ms) > now;
        let deadline = deadline.filter(usable).ok_or("its lease is over")?;
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

    fn start(&mut self, attempt: wire::AttemptRef, assign: wire::Assign, deadline: MonoMs) {
        let held = Held::new(attempt, &assign, deadline);
        self.seen.note(attempt, true);
        self.credits.occupy(assign.weight);
        self.check_at = self.check_at.min(held.next_moment(self.stop_times()));
        self.held.insert(attempt.into(), held);
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
        let (named, settled) = (held.attempt, held.settled);
        self.credits.free(held.weight);
        self.held.remove(&attempt);
        self.seen.note(named, false);
        if !settled {
            self.refuse(named, reason);
        }
    }

    pub(super) fn refuse(&mut self, attempt: wire::AttemptRef, reason: &str) {
        let refused = wire::Refused {
            attempt: Some(attempt),
            reason: reason.to_owned(),
        };
        self.refusals.push_back(refused);
    }
}
