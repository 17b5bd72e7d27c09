//! Gives ready runs to workers that have credit for them, one run from each line in turn.

use std::sync::Arc;

use crate::fault::{Fault, armed};
use crate::model::{
    Attempt, AttemptEnd, AttemptOutcome, Now, ProcessId, Reason, Run, RunId, RunState,
};
use crate::placement;

use super::fleet::{Held, Members};
use super::in_a_row::Row;
use super::lines::{Head, LineIx, Waiting};
use super::{Assign, AttemptRef, Effect, Engine, ToWorker};

/// The process that lost the attempt before this one; those that never reached a worker are no attempts of anybody.
fn lost_by(run: &Run) -> Option<ProcessId> {
    let ends = run.attempts.iter().rev();
    let mut ends = ends.map(|attempt| (attempt.process, attempt.end.as_ref()));
    let undelivered = |end: &AttemptEnd| end.outcome == AttemptOutcome::Undelivered;
    let (process, end) = ends.find(|(_, end)| !end.is_some_and(undelivered))?;
    end.is_some_and(|end| end.outcome.ends_with_worker())
        .then_some(process)
}

impl Engine {
    pub(super) fn dispatch(&mut self, now: Now) {
        while !self.is_full() {
            let Some(ix) = self.lines.take_turn() else {
                break;
            };
            self.serve_line(now, ix);
        }
        self.want_credit_of_hungry_lines();
        self.read_endings();
        self.read_queues();
        self.read_contested();
        for scan in self.lines.short_lines(self.acknowledged) {
            self.want(scan);
        }
        self.read_lots();
        self.read_sorts();
        self.look_at_lines_later();
    }

    /// Serves the first run of an active line, or finds that it must wait.
    fn serve_line(&mut self, now: Now, ix: LineIx) {
        match self.lines.line(ix).next() {
            Some(Head::Run) => {
                if let Some(run) = self.lines.pop(ix) {
                    self.serve_run(now, ix, run);
                }
            }
            Some(Head::Pen(pen)) => {
                if let Some(run) = self.next_in_pen(pen) {
                    self.serve_run(now, ix, run);
                    // Too late to be given out, it may have been the last that belonged here.
                    if self.pens.contains(pen) {
                        self.settle_pen(pen);
                    }
                }
            }
            None => {}
        }
    }

    /// Assigns a run, or takes a worker out of its line that has no room for it.
    fn serve_run(&mut self, now: Now, ix: LineIx, run: RunId) {
        let resident = self.runs.expect(run);
        let overdue = |by| by <= now.wall && !armed(Fault::ParkedStartsForgotten);
        if resident.run.must_start_by().is_some_and(overdue) {
            self.fail_start(now, run);
            return;
        }
        let in_row = self.next_in_row(now, ix, run);
        let Some(process) = in_row.or_else(|| self.choose(ix, run)) else {
            self.back_in_line(ix, run);
            return;
        };
        if self.has_room(now, ix, process) {
            self.assign(now, run, process);
        } else {
            self.step_out(process, ix);
            self.back_in_line(ix, run);
        }
    }

    /// The worker that the run before went to, where this one may follow it there.
    fn next_in_row(&mut self, now: Now, ix: LineIx, run: RunId) -> Option<ProcessId> {
        let run = &self.runs.expect(run).run;
        let follows = lost_by(run).is_none() && self.jobs.expect(run.job).pace.is_brief();
        let row = self.lines.line_mut(ix).row.as_mut().filter(|_| follows)?;
        let process = row.next(self.taken)?;
        self.has_room(now, ix, process).then_some(process)
    }

    fn has_room(&self, now: Now, ix: LineIx, process: ProcessId) -> bool {
        let weight = self.lines.line(ix).requirement.weight;
        let worker = self.fleet.get(process);
        worker.is_some_and(|worker| worker.has_room(weight, &self.options.terms, now.mono))
    }

    /// One of the members of the line, by the job's policy.
    fn choose(&mut self, ix: LineIx, run: RunId) -> Option<ProcessId> {
        let resident = self.runs.expect(run);
        let policy = resident.compiled.version.spec.placement;
        let lost_by = lost_by(&resident.run);
        let line = self.lines.line_mut(ix);
        line.turn += 1;
        let turn = line.turn;
        let line = self.lines.line(ix);
        let fleet = &self.fleet;
        let chosen = placement::pick(policy, &Members { fleet, line }, turn)?;
        let members = line.members();
        let process = match lost_by {
            // Something of the lost attempt may be left there. With nobody else in line it is still the best there is.
            Some(lost_by) if members[chosen] == lost_by => members[(chosen + 1) % members.len()],
            _ => members[chosen],
        };
        self.lines.line_mut(ix).row = Some(Row::behind(process, self.taken));
        Some(process)
    }

    /// Puts a resident run back where it was taken from.
    fn back_in_line(&mut self, ix: LineIx, run: RunId) {
        let resident = self.runs.expect(run);
        let waiting = Waiting::of(&resident.run);
        match resident.pen {
            Some(pen) => self.back_in_pen(pen, waiting),
            None => self.lines.push_front(ix, waiting),
        }
    }

    fn assign(&mut self, now: Now, id: RunId, process: ProcessId) {
        let fence = self.segments.fence(id.segment(), now.wall);
        let resident = self.runs.expect_mut(id);
        let compiled = Arc::clone(&resident.compiled);
        let worker = self.fleet.expect_mut(process);
        let Some(stream) = worker.stream else {
            panic!("a worker without a stream stands in line")
        };
        let run = &mut resident.run;
        let number = run.attempts.last().map_or(0, |attempt| attempt.number) + 1;
        run.attempts.push(Attempt {
            number,
            fence,
            worker: worker.hello.worker.clone(),
            process,
            assigned: now.wall,
            started: None,
            end: None,
        });
        let start_by = run.start_by;
        run.parked = None;
        run.progress = None;
        run.not_before = None;
        run.transition(RunState::Scheduled, now.wall, Reason::Assigned);
        let attempt = AttemptRef {
            run: id,
            attempt: number,
            fence,
        };
        worker.position += 1;
        if !armed(Fault::CreditNotCounted) {
            worker.consumed += u64::from(compiled.requirement.weight);
        }
        worker.attempts.insert(
            id,
            Held {
                attempt: number,
                fence,
                sent: Some((stream, worker.position)),
                arrives_by: now.mono,
            },
        );
        let spec = &compiled.version.spec;
        let assign = Assign {
            position: worker.position,
            attempt,
            beat: worker.beat,
            namespace: run.namespace.clone(),
            job: spec.name.clone(),
            job_version: compiled.version.version,
            task: compiled.task().clone(),
            params: run.params.clone().or_else(|| spec.params.clone()),
            idempotency_key: run.key_for_task(),
            nominal: run.nominal,
            due: run.due,
            timeout_ms: compiled.timeout_ms,
            progress_timeout_ms: compiled.progress_timeout_ms,
            checkpoint: run
                .checkpoint
                .filter(|_| !armed(Fault::CheckpointNotHandedOn)),
            weight: compiled.requirement.weight,
        };
        self.forget_start(id, start_by);
        self.building.run_updated(id);
        self.take_places(id);
        self.effect(Effect::Send {
            stream,
            message: ToWorker::Assign(Box::new(assign)),
        });
    }
}
