//! The REST API as any client would call it.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use serde_json::{Value, json};
use ureq::http::{Method, Request};

use crate::wait::{PATIENCE, within};

/// Longer than any wait that a test asks the server for.
const TIMEOUT: Duration = Duration::from_secs(90);

#[derive(Clone)]
pub struct Api {
    agent: ureq::Agent,
    url: String,
    token: Option<String>,
}

/// What came back: a status and a body, whatever they are.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
}

impl Answer {
    /// The stable code of a refusal, empty for anything else.
    pub fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }

    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl Api {
    pub fn new(url: impl Into<String>, token: Option<String>) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .timeout_connect(Some(Duration::from_secs(5)))
            .timeout_global(Some(TIMEOUT));
        Self {
            agent: ureq::Agent::new_with_config(config.build()),
            url: url.into(),
            token,
        }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// One request. An error means that no answer came.
    pub fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, ureq::Error> {
        self.call_with(method, path, body, &[])
    }

    pub fn call_with(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        headers: &[(&str, &str)],
    ) -> Result<Answer, ureq::Error> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url));
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let text = body.map(Value::to_string).unwrap_or_default();
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let mut response = self.agent.run(request.body(text).expect("a request"))?;
        let status = response.status().as_u16();
        let text = response.body_mut().read_to_string()?;
        Ok(Answer {
            status,
            body: serde_json::from_str(&text).unwrap_or(Value::String(text)),
        })
    }

    /// A request that must succeed.
    #[track_caller]
    pub fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Value {
        let answer = self.call(method.clone(), path, body);
        let answer = answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        assert!(answer.is_success(), "{method} {path}: {answer:?}");
        answer.body
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Value {
        self.send(Method::GET, path, None)
    }

    #[track_caller]
    pub fn post(&self, path: &str, body: &Value) -> Value {
        self.send(Method::POST, path, Some(body))
    }

    /// Makes or changes a job of the default namespace, or of the one it names.
    #[track_caller]
    pub fn put_job(&self, spec: &Value) -> Value {
        self.send(Method::PUT, &job_path(spec), Some(spec))
    }

    #[track_caller]
    pub fn job(&self, name: &str) -> Value {
        self.get(&format!("/api/v1/namespaces/default/jobs/{name}"))
    }

    /// Triggers a job of the default namespace.
    #[track_caller]
    pub fn trigger(&self, job: &str, body: &Value) -> String {
        let run = self.post(&format!("/api/v1/namespaces/default/jobs/{job}/runs"), body);
        run["id"].as_str().expect("the id of a run").to_owned()
    }

    #[track_caller]
    pub fn run(&self, id: &str) -> Value {
        self.get(&format!("/api/v1/runs/{id}"))
    }

    /// The runs that a query finds, newest first, all pages.
    #[track_caller]
    pub fn runs(&self, query: &str) -> Vec<Value> {
        let mut items = Vec::new();
        let mut cursor = String::new();
        loop {
            let mut page = self.get(&format!("/api/v1/runs?limit=1000&{query}{cursor}"));
            items.append(page["items"].as_array_mut().expect("a list"));
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return items,
            }
        }
    }

    /// Waits for the end of a run, over restarts of the server, and returns it.
    #[track_caller]
    pub fn ended(&self, id: &str) -> Value {
        self.until(id, PATIENCE, |run| {
            matches!(
                run["state"].as_str(),
                Some("COMPLETED" | "FAILED" | "CANCELLED")
            )
        })
    }

    /// Waits until a run is what the caller looks for.
    #[track_caller]
    pub fn until(
        &self,
        id: &str,
        patience: Duration,
        mut found: impl FnMut(&Value) -> bool,
    ) -> Value {
        let mut last = Value::Null;
        let path = format!("/api/v1/runs/{id}");
        let what = format!("{id} is as it should be");
        let outcome = std::panic::AssertUnwindSafe(|| {
            within(patience, &what, || {
                last = self.call(Method::GET, &path, None).ok()?.body;
                found(&last).then(|| last.clone())
            })
        });
        match std::panic::catch_unwind(outcome) {
            Ok(run) => run,
            Err(_) => panic!("{what}: in vain, it is {last:#}"),
        }
    }

    #[track_caller]
    pub fn running(&self, id: &str) -> Value {
        self.until(id, PATIENCE, |run| run["state"] == "RUNNING")
    }

    #[track_caller]
    pub fn cancel(&self, id: &str) -> Value {
        self.send(Method::POST, &format!("/api/v1/runs/{id}/cancel"), None)
    }

    /// The raw output of a run so far.
    #[track_caller]
    pub fn output(&self, id: &str) -> String {
        let path = format!("/api/v1/runs/{id}/logs");
        let answer = self.call_with(Method::GET, &path, None, &[("accept", "text/plain")]);
        let answer = answer.unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(answer.status, 200, "{answer:?}");
        match answer.body {
            Value::String(text) => text,
            // Output that happens to be JSON was read as such.
            other => other.to_string(),
        }
    }

    /// The records of a run's output, as they come, until the run has ended.
    pub fn follow(&self, id: &str) -> impl Iterator<Item = Value> + use<> {
        let lines = self.lines(&format!("/api/v1/runs/{id}/logs?follow=true"));
        lines.map(|line| serde_json::from_str(&line).expect("a record"))
    }

    /// The lines of an answer that goes on.
    pub fn lines(&self, path: &str) -> impl Iterator<Item = String> + use<> {
        let token = self.token.clone().unwrap_or_default();
        let request = Request::builder()
            .uri(format!("{}{path}", self.url))
            .header("authorization", format!("Bearer {token}"));
        let response = self
            .agent
            .run(request.body(()).expect("a request"))
            .expect("an answer");
        assert_eq!(response.status(), 200);
        let lines = BufReader::new(response.into_body().into_reader()).lines();
        lines.map(|line| line.expect("a line"))
    }

    pub fn is_ready(&self) -> bool {
        self.call(Method::GET, "/readyz", None)
            .is_ok_and(|answer| answer.status == 200)
    }

    /// Waits until a worker of this name can take work, and returns it.
    #[track_caller]
    pub fn worker(&self, name: &str) -> Value {
        within(PATIENCE, &format!("worker {name} is online"), || {
            let workers = self.call(Method::GET, "/api/v1/workers", None).ok()?.body;
            let worker = workers["items"]
                .as_array()?
                .iter()
                .find(|worker| worker["name"] == name)?;
            (worker["state"] == "ONLINE" && worker["credit"].as_u64() > Some(0))
                .then(|| worker.clone())
        })
    }
}

fn job_path(spec: &Value) -> String {
    let namespace = spec["namespace"].as_str().unwrap_or("default");
    let name = spec["name"].as_str().expect("a job has a name");
    format!("/api/v1/namespaces/{namespace}/jobs/{name}")
}

/// The same job, whose runs are never tried again.
pub fn once(mut spec: Value) -> Value {
    spec["retry"] = json!({"max_attempts": 1, "max_lost": 1});
    spec
}

/// A job that runs a shell script when triggered.
pub fn shell(name: &str, script: &str) -> Value {
    json!({"kind": "Job", "name": name, "task": {"exec": {"argv": ["/bin/sh", "-c", script]}}})
}
