//! Executor `http`: makes the request of an attempt and judges its answer ([`super::answer`]).
//!
//! The answer's body is the attempt's output, what was asked and answered goes beside it on standard error. A stop of any kind
//! drops the connection: what the other end makes of a request that it has already read is unknown, which is what the fence
//! and the key in the headers are for.

use std::time::{Duration, Instant};

use drumtower_core::model::{Limits as Bounds, MonoMs};
use drumtower_outbound::{Client, Limits, Request};
use drumtower_proto::worker::v1 as wire;
use drumtower_sdk::executor::{Control, Executor, OutputStream, Reporter};
use drumtower_sdk::session::{Attempt, StopReason};
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method};
use tokio::sync::watch;

use super::answer;
use crate::supervisor::clock::wall_ms;

/// Makes HTTP requests.
pub(super) struct Requests {
    pub(super) client: Client,
}

struct Hold {
    stop: watch::Sender<bool>,
}

impl Control for Hold {
    /// The session stops the attempt when its lease ends; there is no process that could outlive it.
    fn extend(&self, _deadline: MonoMs) {}

    fn stop(&self, _reason: StopReason) {
        self.stop.send_replace(true);
    }

    fn abort(&self) {
        self.stop.send_replace(true);
    }
}

impl Executor for Requests {
    fn start(
        &self,
        assign: Box<wire::Assign>,
        _deadline: MonoMs,
        reporter: Reporter,
    ) -> Box<dyn Control> {
        let (stop, stopped) = watch::channel(false);
        let client = self.client.clone();
        tokio::spawn(carry_out(client, assign, stopped, reporter));
        Box::new(Hold { stop })
    }
}

async fn carry_out(
    client: Client,
    mut assign: Box<wire::Assign>,
    mut stopped: watch::Receiver<bool>,
    reporter: Reporter,
) {
    let Some(wire::assign::Task::Http(task)) = assign.task.take() else {
        return reporter.finish(answer::failed("the task is no request".to_owned()));
    };
    reporter.started();
    let began = Instant::now();
    let started_wall_ms = i64::try_from(wall_ms()).unwrap_or(0);
    let mut end = tokio::select! {
        end = ask(&client, task, &assign, &reporter) => end,
        // Also when the runtime has let go.
        _ = stopped.wait_for(|stop| *stop) => answer::cancelled(),
    };
    end.started_wall_ms = started_wall_ms;
    end.duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    reporter.finish(end);
}

async fn ask(
    client: &Client,
    task: wire::HttpTask,
    assign: &wire::Assign,
    reporter: &Reporter,
) -> wire::Finished {
    let (request, limits) = match compose(&task, assign) {
        Ok(composed) => composed,
        Err(why) => return answer::failed(why),
    };
    let note = format!("> {} {}\n", task.method, task.url);
    let output = reporter.output();
    output.write(OutputStream::Stderr, note.as_bytes()).await;
    match client.send(request, limits).await {
        Err(error) => answer::failed(error.to_string()),
        Ok(response) => {
            let note = answer::summary(&response);
            output.write(OutputStream::Stderr, note.as_bytes()).await;
            output.write(OutputStream::Stdout, &response.body).await;
            answer::judge(&task, &response)
        }
    }
}

fn compose(task: &wire::HttpTask, assign: &wire::Assign) -> Result<(Request, Limits), String> {
    let method = Method::from_bytes(task.method.as_bytes())
        .map_err(|_| format!("`{}` is no method", task.method))?;
    let mut headers = HeaderMap::new();
    for (name, value) in &task.headers {
        put(&mut headers, name, value)?;
    }
    let body = match &task.body {
        Some(body) => body.clone().into_bytes(),
        None if task.params_as_body => {
            headers
                .entry(CONTENT_TYPE)
                .or_insert(HeaderValue::from_static("application/json"));
            parameters(assign).into_bytes()
        }
        None => Vec::new(),
    };
    for (name, value) in about(assign) {
        put(&mut headers, name, &value)?;
    }
    let request = Request {
        method,
        url: task.url.clone(),
        headers,
        body,
    };
    let limits = Limits {
        total: Duration::from_millis(task.timeout_ms),
        redirects: task.follow_redirects.min(Bounds::HTTP_REDIRECTS),
        ..Limits::default()
    };
    Ok((request, limits))
}

fn parameters(assign: &wire::Assign) -> String {
    if assign.params.is_empty() {
        "null".to_owned()
    } else {
        assign.params.clone()
    }
}

fn put(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), String> {
    let odd = |_| format!("the header `{name}` cannot be sent: change its name or its value");
    let key = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| format!("`{name}` cannot name a header: rename it"))?;
    let value = HeaderValue::from_bytes(value.as_bytes()).map_err(odd)?;
    headers.insert(key, value);
    Ok(())
}

/// What the other end is told about the attempt. Times are milliseconds since 1970.
fn about(assign: &wire::Assign) -> Vec<(&'static str, String)> {
    let attempt = assign.attempt.unwrap_or_default();
    let mut headers = vec![
        ("drumtower-namespace", assign.namespace.clone()),
        ("drumtower-job", assign.job.clone()),
        ("drumtower-run", Attempt::from(attempt).run_id().to_string()),
        ("drumtower-attempt", attempt.attempt.to_string()),
        ("drumtower-fence", attempt.fence.to_string()),
        ("drumtower-idempotency-key", assign.idempotency_key.clone()),
        ("drumtower-due-ms", assign.due_wall_ms.to_string()),
    ];
    if let Some(nominal_ms) = assign.nominal_wall_ms {
        headers.push(("drumtower-nominal-ms", nominal_ms.to_string()));
    }
    headers
}
