//! What to do, with commands to type.

use crate::model::{AttemptOutcome, DeadLetter, NamespaceName, QueueRef, TaskNeed};

use super::{Cause, Known, Remedy};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    pub code: Remedy,
    pub text: String,
    pub commands: Vec<String>,
}

/// Remedies for a run that is where it is because of `cause`; the likeliest first.
pub(super) fn give(known: &Known<'_>, cause: Cause) -> Vec<Advice> {
    let mut adviser = Adviser {
        known,
        advice: Vec::new(),
    };
    adviser.about(cause);
    adviser.about_the_run_before();
    adviser.advice
}

struct Adviser<'a> {
    known: &'a Known<'a>,
    advice: Vec<Advice>,
}

impl Adviser<'_> {
    fn about(&mut self, cause: Cause) {
        match cause {
            Cause::WaitsForItsTime => {
                self.say(Remedy::Nothing, "Nothing: it starts by itself.", &[]);
                self.trigger_now();
                self.cancel("If it should not run at all:");
            }
            Cause::WaitsForItsTurn => {
                self.runs_of_job("See what it waits for:");
                self.say(
                    Remedy::Nothing,
                    "Otherwise nothing: it starts by itself.",
                    &[],
                );
                self.change_job("If more may run at once, raise `overlap.limit` of the job:");
                self.cancel("If it should not run at all:");
            }
            Cause::BreakerOpen => {
                self.runs_of_job("See what failed:");
                self.reset_breaker();
                let text = "Otherwise nothing: the breaker tries again by itself.";
                self.say(Remedy::Nothing, text, &[]);
                self.cancel("If it should not run at all:");
            }
            Cause::WaitsToBeTriedAgain => {
                self.output("See what the attempt that failed had to say:");
                self.say(
                    Remedy::Nothing,
                    "Otherwise nothing: it is tried again by itself.",
                    &[],
                );
                self.cancel("If another try is of no use:");
            }
            Cause::WaitsPutOff => {
                let text =
                    "Nothing: the handler asked for the wait, and is called again by itself.";
                self.say(Remedy::Nothing, text, &[]);
                self.cancel("If it should not be called again:");
            }
            Cause::WaitsForRoom => {
                self.workers("See how busy the workers are:");
                let text = "More room: another worker, or one with a larger --capacity. More urgent: a higher `priority` of the job.";
                self.say(Remedy::MakeRoom, text, &["drumtower work --capacity 16"]);
            }
            Cause::WaitsForALimit | Cause::WaitsForARate => {
                self.say(Remedy::Nothing, "Nothing: its turn comes by itself.", &[]);
                self.limits();
                self.cancel("If it should not run at all:");
            }
            Cause::QueuePaused => {
                if let Some(queue) = self.queue() {
                    let command =
                        format!("drumtower queue resume {}{}", queue.name, self.namespace());
                    let text = "Find out why the queue was paused, then let it give out again:";
                    self.say(Remedy::ResumeQueue, text, &[&command]);
                }
                self.cancel("If it should not run at all:");
            }
            Cause::WaitsForAWorker => self.workers("See which workers are connected:"),
            Cause::NoWorkerConnected => self.start_worker(),
            Cause::NoWorkerForNamespace => {
                let text = format!(
                    "Start a worker with a token that is bound to the namespace {} or to none. Which worker serves which namespace:",
                    self.known.run.namespace
                );
                self.workers(&text);
            }
            Cause::NoWorkerOffersIt => self.start_worker(),
            Cause::TooHeavyForEveryWorker => {
                let weight = self.known.spec.map_or(1, |spec| spec.weight);
                let command = format!("drumtower work --capacity {weight}");
                self.say(
                    Remedy::StartWorker,
                    "Start a worker that is large enough:",
                    &[&command],
                );
                self.change_job("Or lower `weight` in the job:");
                self.replace();
            }
            Cause::WorkersLeaving => {
                self.workers("See why, and put them back with `worker resume` or `worker reset`:");
                self.start_worker();
            }
            Cause::Given => {
                let text = "Nothing, unless it stays like this: then look at the worker.";
                self.worker(text);
            }
            Cause::Running => {
                let command = format!("drumtower run logs {} --follow", self.known.run.id);
                self.say(Remedy::FollowOutput, "Follow its output:", &[&command]);
                self.cancel("Stop it:");
            }
            Cause::WorkerSilent => {
                self.worker(
                    "Look at the worker: is its machine up, its process alive, its network whole?",
                );
                self.say(Remedy::Nothing, "For the run nothing has to be done.", &[]);
            }
            Cause::BeingCancelled => {
                let command = format!("drumtower run wait {}", self.known.run.id);
                self.say(Remedy::WaitForTheEnd, "Wait for its end:", &[&command]);
            }
            Cause::Completed => {
                self.say(Remedy::Nothing, "Nothing: it has done its work.", &[]);
            }
            Cause::FailedTooOften | Cause::GivenUp | Cause::Failed => {
                self.output("See what the last attempt had to say:");
                self.more_time();
                self.run_again("When the cause is mended, run it again:");
            }
            Cause::GivenUpByRule => {
                self.output("See what the last attempt had to say:");
                self.run_again("When the cause is mended, run it again:");
                self.change_job("If such a failure should be tried again, change `retry.on`:");
            }
            Cause::LostTooOften => {
                self.workers(
                    "Find what ends the workers: killed for memory, a machine that restarts, a network that breaks. Which are there:",
                );
                self.output("See how far the task came:");
                self.run_again("When the workers stay up, run it again:");
            }
            Cause::StoppedTooOften => {
                self.workers("See which workers stay in service, and which are drained:");
                self.output("See how far the task came:");
                self.run_again("Then run it again:");
            }
            Cause::UndeliveredTooOften => {
                self.workers(
                    "Find out why the workers do not start it; their own logs tell. Which are there:",
                );
                self.run_again("Then run it again:");
            }
            Cause::PutOffTooOften => {
                self.change_job(
                    "Give the job a schedule instead of a handler that waits for what may come late:",
                );
                self.run_again("Run it again as it is:");
            }
            Cause::StartTimedOut => {
                self.workers("See which workers are there, and how busy they are:");
                self.run_again("When there is room for it, run it again:");
                self.change_job("If it may wait longer, raise `start_timeout`:");
            }
            Cause::FailedForOthers => {
                self.runs_of_job("See which runs of the job take so long:");
                self.run_again("Run it after them:");
                self.change_job(
                    "If it should wait for them instead, write `overlap: queue` into the job:",
                );
            }
            Cause::Superseded | Cause::Expired => {
                let command = format!("drumtower run rerun {}", self.known.run.id);
                let text = "Nothing, unless it should run after all:";
                self.say(Remedy::RunAgain, text, &[&command]);
                self.change_job("If such runs should not be lost, change `overlap` or `misfire.window` of the job:");
            }
            Cause::CancelledWhileWaiting | Cause::Cancelled | Cause::CancelledUnconfirmed => {
                let command = format!("drumtower run rerun {}", self.known.run.id);
                let text = "Nothing, unless it should run after all:";
                self.say(Remedy::RunAgain, text, &[&command]);
            }
        }
    }

    fn say(&mut self, code: Remedy, text: &str, commands: &[&str]) {
        self.advice.push(Advice {
            code,
            text: text.to_owned(),
            commands: commands.iter().map(|it| (*it).to_owned()).collect(),
        });
    }

    /// What the last attempt that ran has printed.
    fn output(&mut self, text: &str) {
        let run = self.known.run;
        let mut attempts = run.attempts.iter().rev();
        if let Some(ran) = attempts.find(|attempt| attempt.started.is_some()) {
            let command = format!("drumtower run logs {} --attempt {}", run.id, ran.number);
            self.say(Remedy::ReadOutput, text, &[&command]);
        }
    }

    fn more_time(&mut self) {
        let last = self.known.run.attempts.last();
        let end = last.and_then(|attempt| attempt.end.as_ref());
        if end.is_some_and(|end| end.outcome == AttemptOutcome::TimedOut) {
            self.change_job("If it needs more time, raise `timeout` or `progress_timeout`:");
        }
    }

    fn workers(&mut self, text: &str) {
        self.say(Remedy::LookAtWorkers, text, &["drumtower worker list"]);
    }

    /// The worker that has the attempt.
    fn worker(&mut self, text: &str) {
        if let Some(attempt) = self.known.run.current_attempt() {
            let command = format!("drumtower worker show {}", attempt.worker);
            self.say(Remedy::LookAtWorkers, text, &[&command]);
        }
    }

    fn start_worker(&mut self) {
        match self.known.spec.map(|spec| spec.task.need()) {
            Some(TaskNeed::Handler(name)) => {
                let text = format!(
                    "Start the program that registers the handler `{name}` (docs/workers.md). Which handlers there are:"
                );
                self.say(Remedy::StartHandler, &text, &["drumtower worker list"]);
                self.change_job("Or correct the name in the job:");
                self.replace();
            }
            Some(TaskNeed::Exec | TaskNeed::Http) | None => {
                self.say(Remedy::StartWorker, "Start a worker:", &["drumtower work"]);
            }
        }
    }

    fn queue(&self) -> Option<&QueueRef> {
        self.known.limit.and_then(|limit| limit.gate.queue())
    }

    /// Where the limit is shown, and can be raised: it holds at once, for this run too.
    fn limits(&mut self) {
        match self.queue() {
            Some(queue) => {
                let command = format!("drumtower queue show {}{}", queue.name, self.namespace());
                let text = "See who holds the queue, and how many wait:";
                self.say(Remedy::LookAtQueue, text, &[&command]);
            }
            None => self.change_job("If more may run, raise it under `limits` in the job:"),
        }
    }

    fn change_job(&mut self, text: &str) {
        if let Some(job) = self.known.job {
            let command = format!("drumtower job edit {job}{}", self.namespace());
            self.say(Remedy::ChangeJob, text, &[&command]);
        }
    }

    /// An edit does not reach a run that is already made.
    fn replace(&mut self) {
        let run = self.known.run.id;
        let cancel = format!("drumtower run cancel {run}");
        let again = format!("drumtower run rerun {run}");
        self.say(
            Remedy::ReplaceRun,
            "This run keeps the job as it was; after an edit, make a new one:",
            &[&cancel, &again],
        );
    }

    fn reset_breaker(&mut self) {
        if let Some(job) = self.known.job {
            let command = format!("drumtower job reset-breaker {job}{}", self.namespace());
            let text = "When the cause is mended, let the job run at once:";
            self.say(Remedy::ResetBreaker, text, &[&command]);
        }
    }

    fn trigger_now(&mut self) {
        if let Some(job) = self.known.job {
            let command = format!("drumtower job trigger {job}{}", self.namespace());
            self.say(
                Remedy::TriggerNow,
                "If it should run now as well:",
                &[&command],
            );
        }
    }

    fn runs_of_job(&mut self, text: &str) {
        if let Some(job) = self.known.job {
            let command = format!("drumtower run list --job {job}{}", self.namespace());
            self.say(Remedy::LookAtRuns, text, &[&command]);
        }
    }

    fn cancel(&mut self, text: &str) {
        let command = format!("drumtower run cancel {}", self.known.run.id);
        self.say(Remedy::Cancel, text, &[&command]);
    }

    /// By its dead letter where there is one, and from its checkpoint where it left one.
    fn run_again(&mut self, text: &str) {
        let run = self.known.run;
        let kept = self.known.policy().map(|policy| policy.dead_letter) == Some(DeadLetter::Keep);
        let command = match kept {
            true => format!(
                "drumtower deadletter requeue {}{}",
                run.id,
                self.namespace()
            ),
            false => format!("drumtower run rerun {}", run.id),
        };
        self.say(Remedy::RunAgain, text, &[&command]);
        if let Some(mark) = run.checkpoint {
            let text = format!("Or from checkpoint {}, which it left:", mark.number);
            let command = format!("drumtower run rerun {} --resume", run.id);
            self.say(Remedy::GoOnFromCheckpoint, &text, &[&command]);
        }
    }

    fn about_the_run_before(&mut self) {
        if let Some(before) = self.known.run.rerun_of {
            let command = format!("drumtower run explain {before}");
            let text = "What became of the run that it repeats:";
            self.say(Remedy::ExplainTheRunBefore, text, &[&command]);
        }
    }

    /// The flag, where it is needed.
    fn namespace(&self) -> String {
        let namespace = &self.known.run.namespace;
        match *namespace == NamespaceName::default() {
            true => String::new(),
            false => format!(" --namespace {namespace}"),
        }
    }
}
