//! Asks a run to stop. A waiting run is cancelled at once. A leased one keeps its place until its worker confirms or the
//! lease ends; the request is durable when it is acknowledged, and the outcome that commits first stands.

use crate::fault::{Fault, armed};
use crate::model::{
    Actor, AuditAction, AuditKind, AuditObject, CancelRequest, NamespaceName, Now, Reason, Run,
    RunId, RunState,
};

use super::super::deeds::Told;
use super::super::{AttemptRef, Effect, Engine, Refusal, Reply, ToWorker};
use super::Answer;

impl Engine {
    pub(super) fn cancel_run(
        &mut self,
        now: Now,
        actor: &Actor,
        id: RunId,
        scope: Option<&NamespaceName>,
    ) -> Answer {
        let outside = |namespace: &NamespaceName| scope.is_some_and(|scope| scope != namespace);
        if let Some(looked_up) = self.looked_up.remove(&id) {
            let run = looked_up
                .filter(|run| !outside(&run.namespace))
                .ok_or(Refusal::NoSuchRun(id))?;
            return Ok(Reply::Run(Box::new(run)));
        }
        let resident = self
            .runs
            .get(id)
            .filter(|held| !outside(&held.run.namespace))
            .ok_or(Refusal::NoSuchRun(id))?;
        let first = resident.run.cancel.is_none();
        let request = CancelRequest {
            at: now.wall,
            actor: actor.clone(),
        };
        let words = format!("cancelled by {actor} before it started");
        let answer = self.stop_run(now, id, request, (Reason::Cancelled, words));
        if first {
            self.record_cancel(now, actor, id, &answer.namespace);
        }
        Ok(Reply::Run(Box::new(answer)))
    }

    /// Asks a resident run to stop: it has ended if it had not started, else its worker is told. Returns it as it stands.
    pub(in super::super) fn stop_run(
        &mut self,
        now: Now,
        id: RunId,
        request: CancelRequest,
        (reason, words): (Reason, String),
    ) -> Run {
        let resident = self.runs.expect_mut(id);
        let run = &mut resident.run;
        run.cancel.get_or_insert(request);
        let mut answer = run.clone();
        match run
            .current_attempt()
            .map(|attempt| (attempt.process, attempt.number, attempt.fence))
        {
            Some(_) if armed(Fault::SlotFreedAtCancel) => {
                let cause = "cancelled before its worker knew".to_owned();
                self.end_run(now, id, RunState::Cancelled, reason, Some(cause));
            }
            Some((process, attempt, fence)) => {
                if !armed(Fault::CancelNotWritten) {
                    self.building.run_updated(id);
                }
                if let Some(stream) = self.fleet.get(process).and_then(|worker| worker.stream) {
                    let attempt = AttemptRef {
                        run: id,
                        attempt,
                        fence,
                    };
                    self.effect(Effect::Send {
                        stream,
                        message: ToWorker::Cancel {
                            attempt,
                            reason: "cancelled",
                        },
                    });
                }
                self.effect(Effect::RunChanged { run: id });
            }
            None => {
                answer.transition(RunState::Cancelled, now.wall, reason);
                answer.error = Some(words.clone());
                self.end_waiting(now, id, RunState::Cancelled, reason, Some(words));
            }
        }
        *answer
    }

    fn record_cancel(&mut self, now: Now, actor: &Actor, id: RunId, namespace: &NamespaceName) {
        let object = AuditObject {
            kind: AuditKind::Run,
            namespace: Some(namespace.clone()),
            name: id.to_string(),
        };
        let action = AuditAction::Cancelled;
        self.record_deed(now, actor, id.segment(), action, object, Told::default());
    }
}
