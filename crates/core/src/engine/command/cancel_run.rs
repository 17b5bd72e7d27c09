//! Asks a run to stop. A waiting run is cancelled at once. A leased one keeps its place until its worker confirms or the
//! lease ends; the request is durable when it is acknowledged, and the outcome that commits first stands.

use crate::fault::{Fault, armed};
use crate::model::{
    Actor, AuditAction, AuditKind, AuditObject, CancelRequest, NamespaceName, Now, Reason, RunId,
    RunState,
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
            .get_mut(id)
            .filter(|held| !outside(&held.run.namespace))
            .ok_or(Refusal::NoSuchRun(id))?;
        let run = &mut resident.run;
        let first = run.cancel.is_none();
        if first {
            run.cancel = Some(CancelRequest {
                at: now.wall,
                actor: actor.clone(),
            });
        }
        let mut answer = run.clone();
        match run
            .current_attempt()
            .map(|attempt| (attempt.process, attempt.number, attempt.fence))
        {
            Some(_) if armed(Fault::SlotFreedAtCancel) => {
                let cause = "cancelled before its worker knew".to_owned();
                self.end_run(now, id, RunState::Cancelled, Reason::Cancelled, Some(cause));
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
                let cause = format!("cancelled by {actor} before it started");
                answer.transition(RunState::Cancelled, now.wall, Reason::Cancelled);
                answer.error = Some(cause.clone());
                let (state, reason) = (RunState::Cancelled, Reason::Cancelled);
                self.end_waiting(now, id, state, reason, Some(cause));
            }
        }
        if first {
            self.record_cancel(now, actor, id, &answer.namespace);
        }
        Ok(Reply::Run(Box::new(answer)))
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
