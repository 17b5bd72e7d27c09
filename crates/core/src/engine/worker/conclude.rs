//! Carries out what the end of an attempt means for its run.

use crate::model::{Now, Reason, RunId, RunState, WallMs};

use super::super::enter_line::Enter;
use super::super::retry::{self, Next};
use super::super::{Effect, Engine};

impl Engine {
    /// The last attempt of a resident run has its end.
    pub(super) fn conclude(&mut self, now: Now, id: RunId) {
        let resident = self.runs.expect(id);
        let last = resident.run.attempts.last();
        let Some(end) = last.and_then(|attempt| attempt.end.as_ref()) else {
            panic!("the last attempt of {id} has not ended");
        };
        let next = retry::after(&resident.compiled.retry, &resident.run, end, now.wall);
        self.free_places(id);
        match next {
            Next::Again { at, reason } => self.try_again(now, id, at, reason),
            Next::End {
                state,
                reason,
                error,
            } => self.end_run(now, id, state, reason, error),
        }
    }

    /// The run waits until then, or stands first in its line at once.
    fn try_again(&mut self, now: Now, id: RunId, at: WallMs, reason: Reason) {
        let resident = self.runs.expect_mut(id);
        let run = &mut resident.run;
        run.transition(RunState::Pending, now.wall, reason);
        run.not_before = (at > now.wall).then_some(at);
        // What an attempt leaves behind that is tried again is not what the run comes to.
        run.result = None;
        self.effect(Effect::RunChanged { run: id });
        if let Some(by) = self.runs.expect(id).run.must_start_by() {
            self.watch_start(id, by);
        }
        if at > now.wall {
            self.leave_pen(id);
            self.delay_resident(id);
        } else {
            self.enter_line(id, Enter::Front);
            self.building.run_updated(id);
        }
    }
}
