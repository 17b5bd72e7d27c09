//! `drumtower job pause`, `resume` and `delete`: by name, or all jobs with a label at once.

use clap::Args;
use serde_json::{Value, json};
use ureq::http::Method;

use super::{Namespace, pairs, path};
use crate::ask::confirm;
use crate::client::{Call, Client};
use crate::connect::Connect;
use crate::failure::{Exit, Failure, Result};
use crate::output::{Format, Output, line, say, text, write};

#[derive(Args, Debug)]
pub struct Act {
    /// The names of the jobs
    #[arg(required_unless_present = "labels", value_name = "NAME")]
    names: Vec<String>,
    /// All jobs of the namespace with this label; may be repeated, all must match
    #[arg(
        short,
        long = "label",
        value_name = "KEY=VALUE",
        conflicts_with = "names"
    )]
    labels: Vec<String>,
    /// With --label: only print which jobs it would be
    #[arg(long, requires = "labels")]
    dry_run: bool,
    /// With --label: do not ask before deleting
    #[arg(short, long, requires = "labels")]
    yes: bool,
    #[command(flatten)]
    namespace: Namespace,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

/// What is done to each job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    Pause,
    Resume,
    Delete,
}

impl Deed {
    fn verb(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Delete => "delete",
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Pause => "paused",
            Self::Resume => "resumed",
            Self::Delete => "deleted",
        }
    }
}

impl Act {
    pub fn run(self, deed: Deed) -> Result<()> {
        let client = Client::new(&self.connect)?;
        if !self.labels.is_empty() {
            return self.labelled(&client, deed);
        }
        match self.names.as_slice() {
            [name] => {
                let job = self.named(&client, deed, name)?;
                self.output.one(&job, |_| self.said(deed, name))
            }
            names => self.several(&client, deed, names),
        }
    }

    fn named(&self, client: &Client, deed: Deed, name: &str) -> Result<Value> {
        let namespace = &self.namespace.namespace;
        let path = path(namespace, name);
        match deed {
            Deed::Delete => {
                client.send(Call::new(Method::DELETE, path))?;
                Ok(json!({"namespace": namespace, "name": name, "deleted": true}))
            }
            deed => client.value(Call::post(format!("{path}/{}", deed.verb()))),
        }
    }

    fn said(&self, deed: Deed, name: &str) -> String {
        let namespace = &self.namespace.namespace;
        format!("job {namespace}/{name} {}\n", deed.done())
    }

    /// One that fails does not keep the others; the exit code is that of the worst. A server that does not answer is asked
    /// no more.
    fn several(&self, client: &Client, deed: Deed, names: &[String]) -> Result<()> {
        let namespace = &self.namespace.namespace;
        let mut items = Vec::new();
        let mut failures: Vec<(String, Failure)> = Vec::new();
        for name in names {
            match self.named(client, deed, name) {
                Ok(job) => {
                    if self.output.output == Format::Table {
                        write(&self.said(deed, name))?;
                    }
                    items.push(job);
                }
                Err(failure) => {
                    items.push(json!({
                        "namespace": namespace,
                        "name": name,
                        "result": "failed",
                        "problem": {"code": failure.code, "detail": failure.message()},
                    }));
                    let lost = failure.exit == Exit::Unavailable;
                    failures.push((format!("job {namespace}/{name}"), failure));
                    if lost {
                        break;
                    }
                }
            }
        }
        if self.output.output != Format::Table {
            self.output.list(items, &[], "")?;
        }
        let Some(worst) = failures.iter().map(|(_, failure)| failure.exit).max() else {
            return Ok(());
        };
        let told = failures.iter();
        let told: Vec<String> = told
            .map(|(title, failure)| format!("{title}: {}", failure.message()))
            .collect();
        Err(Failure::new(worst, told.join("\nerror: ")))
    }

    /// The server finds the jobs, so that none slips through while names are sent one by one.
    fn labelled(&self, client: &Client, deed: Deed) -> Result<()> {
        if deed == Deed::Delete && !self.yes && !self.dry_run {
            let count = self.call(client, deed, true)?.len();
            if count > 0 {
                let namespace = &self.namespace.namespace;
                confirm(&format!("delete {count} jobs of namespace `{namespace}`?"))?;
            }
        }
        let items = self.call(client, deed, self.dry_run)?;
        let failed = items
            .iter()
            .filter(|item| item["result"] == "failed")
            .count();
        if self.output.output == Format::Table {
            for item in &items {
                line(&self.told(deed, item))?;
            }
            if items.is_empty() {
                say(&format!(
                    "no job of namespace `{}` has these labels",
                    self.namespace.namespace
                ));
            }
        } else {
            self.output.list(items, &[], "")?;
        }
        match failed {
            0 => Ok(()),
            failed => Err(Failure::new(
                Exit::Failed,
                format!("{failed} jobs could not be {}", deed.done()),
            )),
        }
    }

    /// Call after call until no more jobs match.
    fn call(&self, client: &Client, deed: Deed, dry_run: bool) -> Result<Vec<Value>> {
        let path = format!(
            "/api/v1/namespaces/{}/jobs:{}",
            self.namespace.namespace,
            deed.verb()
        );
        let labels = pairs("--label", &self.labels)?;
        let mut items = Vec::new();
        let mut cursor = Value::Null;
        loop {
            let mut body = json!({"labels": labels, "dry_run": dry_run});
            if !cursor.is_null() {
                body["cursor"] = cursor;
            }
            let mut answer = client.value(Call::post(&path).json(body))?;
            if let Value::Array(page) = answer["items"].take() {
                items.extend(page);
            }
            cursor = answer["next"].take();
            if cursor.is_null() {
                return Ok(items);
            }
        }
    }

    fn told(&self, deed: Deed, item: &Value) -> String {
        let title = format!("job {}/{}", text(item, "namespace"), text(item, "name"));
        match (text(item, "result").as_str(), self.dry_run) {
            ("changed", true) => format!("{title} would be {}", deed.done()),
            ("changed", false) => format!("{title} {}", deed.done()),
            ("failed", _) => format!("{title} failed: {}", text(item, "problem.detail")),
            _ => format!("{title} unchanged"),
        }
    }
}
