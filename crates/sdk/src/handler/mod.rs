//! Handlers: functions in this process that carry out runs.
//!
//! Each attempt is a task of its own. A handler that panics, returns an error, cannot read its parameters or returns too
//! much has failed; one that returns an error after it was told to stop has stopped. Cancellation is a request
//! ([`Context::cancelled`]); when it is not obeyed the task is dropped where it waits. Code that never waits cannot be
//! dropped: use `spawn_blocking` and look at [`Context::is_cancelled`], or run a command instead.

mod context;
mod error;

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use drumtower_core::model::{Limits, MonoMs};
use drumtower_proto::worker::v1 as wire;
use futures_util::FutureExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

pub use context::Context;
pub use error::HandlerError;

use crate::executor::{Control, Executor, Reporter};
use crate::session::StopReason;
use crate::{bounds, clock};

type Answer = Pin<Box<dyn Future<Output = Result<String, HandlerError>> + Send>>;
type Erased = dyn Fn(Context, String) -> Answer + Send + Sync;

/// The handlers of a worker, by name.
#[derive(Default)]
pub(crate) struct Handlers {
    by_name: BTreeMap<String, Arc<Erased>>,
}

impl Handlers {
    pub(crate) fn add<P, R, F, A>(&mut self, name: String, handler: F)
    where
        P: DeserializeOwned + Send + 'static,
        R: Serialize + 'static,
        F: Fn(Context, P) -> A + Send + Sync + 'static,
        A: Future<Output = Result<R, HandlerError>> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let erased = move |context: Context, params: String| -> Answer {
            let handler = Arc::clone(&handler);
            Box::pin(async move {
                let answer = handler(context, parse(&params)?).await?;
                let result = serde_json::to_string(&answer).map_err(|error| {
                    HandlerError::new(format!("the result does not encode as JSON: {error}"))
                })?;
                check_length(result)
            })
        };
        self.by_name.insert(name, Arc::new(erased));
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.by_name.keys()
    }
}

fn parse<P: DeserializeOwned>(params: &str) -> Result<P, HandlerError> {
    let json = if params.is_empty() { "null" } else { params };
    serde_json::from_str(json).map_err(|error| {
        HandlerError::new(format!(
            "the parameters are not what the handler takes: {error}"
        ))
    })
}

fn check_length(result: String) -> Result<String, HandlerError> {
    if result.len() > Limits::RESULT_BYTES {
        let (length, bound) = (result.len(), Limits::RESULT_BYTES);
        let message = format!(
            "the result has {length} bytes, the bound is {bound}: keep it elsewhere and return where it is"
        );
        return Err(HandlerError::new(message));
    }
    Ok(if result == "null" {
        String::new()
    } else {
        result
    })
}

impl Executor for Handlers {
    fn start(
        &self,
        mut assign: Box<wire::Assign>,
        _deadline: MonoMs,
        reporter: Reporter,
    ) -> Box<dyn Control> {
        let name = match &assign.task {
            Some(wire::assign::Task::Handler(task)) => task.name.as_str(),
            _ => "",
        };
        let handler = self.by_name.get(name).cloned();
        let cancel = CancellationToken::new();
        let params = std::mem::take(&mut assign.params);
        let context = Context::new(assign, cancel.clone(), &reporter);
        reporter.started();
        let task = tokio::spawn(carry_out(
            handler,
            context,
            params,
            cancel.clone(),
            reporter,
        ));
        Box::new(Hold {
            cancel,
            task: task.abort_handle(),
        })
    }
}

async fn carry_out(
    handler: Option<Arc<Erased>>,
    context: Context,
    params: String,
    cancel: CancellationToken,
    reporter: Reporter,
) {
    let started = clock::now();
    let answer = match handler {
        // The call itself is inside, because it may panic as well.
        Some(handler) => {
            AssertUnwindSafe(async move { handler(context, params).await })
                .catch_unwind()
                .await
        }
        None => Ok(Err(HandlerError::new("the worker has no such handler"))),
    };
    let mut end = wire::Finished {
        started_wall_ms: started.wall.0,
        duration_ms: clock::mono().0.saturating_sub(started.mono.0),
        ..wire::Finished::default()
    };
    match answer {
        Ok(Ok(result)) => {
            end.set_outcome(wire::Outcome::Succeeded);
            end.result = result;
        }
        Ok(Err(error)) => {
            let outcome = if cancel.is_cancelled() {
                wire::Outcome::Cancelled
            } else {
                wire::Outcome::Failed
            };
            end.set_outcome(outcome);
            (end.error, end.verdict) = error.into_parts();
        }
        Err(panic) => {
            end.set_outcome(wire::Outcome::Failed);
            end.error = bounds::error_text(format!(
                "the handler panicked: {}",
                panic_message(panic.as_ref())
            ));
        }
    }
    reporter.finish(end);
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

struct Hold {
    cancel: CancellationToken,
    task: AbortHandle,
}

impl Control for Hold {
    /// The session says when to stop; a task needs no deadline of its own.
    fn extend(&self, _deadline: MonoMs) {}

    fn stop(&self, _reason: StopReason) {
        self.cancel.cancel();
    }

    fn abort(&self) {
        self.task.abort();
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.task.abort();
    }
}
