//! `drumtower job create`: a job from the command line, without a file.

use clap::Args;
use drumtower_core::model::{JobName, JobSpec, SpecError};
use serde_json::{Map, Value, json};
use ureq::http::{Method, StatusCode};

use super::create_flags::{Action, Times, Traits};
use super::{Namespace, path};
use crate::client::{Call, Client};
use crate::connect::Connect;
use crate::failure::{Exit, Failure, Result};
use crate::manifest::{Document, Spec};
use crate::output::{Cell, Format, Output, View, say, write};

/// Make a job from the command line
///
/// What comes after `--` is the program and its arguments, run without a shell. Without a
/// schedule the job runs only when it is triggered. --every, --cron and --at may be repeated and
/// given together. A job that exists is left alone unless --replace is given.
///
///     drumtower job create hello --every 10s -- echo hello
///     drumtower job create report --cron '30 2 * * mon-fri' --timezone Asia/Shanghai \
///         --timeout 20m --label team=billing -- /usr/local/bin/report --all
///     drumtower job create disk --every 1h --shell 'df -h | sort'
///     drumtower job create greet --param name=Ada -- sh -c 'echo "$DRUMTOWER_PARAMS"'
///     drumtower job create ping --every 1m --http https://example.com/health
///     drumtower job create load --after extract --after check -- /usr/local/bin/load
///     drumtower job create bill --handler bill --dry-run
///
/// --dry-run prints the manifest instead, for a file to keep and to `drumtower apply`.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Create {
    /// The job's name
    name: JobName,
    #[command(flatten)]
    times: Times,
    #[command(flatten)]
    action: Action,
    #[command(flatten)]
    traits: Traits,
    /// Change the job if there is one with this name
    #[arg(long)]
    replace: bool,
    /// Print the manifest and send nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    namespace: Namespace,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

impl Create {
    pub fn run(self) -> Result<()> {
        let spec = self.spec()?;
        if let Some(warning) = self.action.warning() {
            say(&format!("warning: {warning}"));
        }
        let document = Document::made(Spec::Job(Box::new(spec)), "the command line".to_owned(), 1);
        if self.dry_run {
            return match self.output.output {
                Format::Json => self.output.one(&document.body()?, |_| String::new()),
                _ => write(&document.yaml()?),
            };
        }
        self.send(&document)
    }

    /// The manifest that the flags make.
    fn spec(&self) -> Result<JobSpec> {
        let mut keys = Map::new();
        keys.insert("kind".to_owned(), json!("Job"));
        keys.insert("name".to_owned(), json!(self.name));
        keys.insert("namespace".to_owned(), json!(self.namespace.namespace));
        keys.insert("task".to_owned(), self.action.task()?);
        self.times.write(&mut keys);
        self.traits.write(&mut keys)?;
        let spec: JobSpec = serde_json::from_value(Value::Object(keys))
            .map_err(|error| Failure::usage(error.to_string()))?;
        spec.check().map_err(refused)?;
        Ok(spec)
    }

    fn send(&self, document: &Document) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let (namespace, name) = (&self.namespace.namespace, self.name.as_str());
        let call = Call::new(Method::PUT, path(namespace, name)).json(document.body()?);
        let call = match self.replace {
            true => call,
            false => call.header("if-none-match", "*"),
        };
        let (status, job) = client
            .send(call)
            .map_err(|failure| match failure.code.as_deref() {
                Some("already_there") => Failure::new(
                    Exit::Refused,
                    format!("there is a job `{name}` in namespace `{namespace}` already"),
                )
                .remedy("add --replace to change it, or use `drumtower job edit`"),
                _ => failure,
            })?;
        let done = match status {
            StatusCode::CREATED => "created",
            _ => "replaced",
        };
        self.output.one(&job, |view| {
            told(&job, namespace.as_str(), name, done, view)
        })
    }
}

fn told(job: &Value, namespace: &str, name: &str, done: &str, view: View) -> String {
    let made = format!("job {namespace}/{name} {done}");
    match (view.terminal, job["next_due"].is_null()) {
        (false, _) => format!("{made}\n"),
        (true, true) => {
            let of = match namespace {
                "default" => String::new(),
                namespace => format!(" -n {namespace}"),
            };
            format!("{made}; it runs when triggered: drumtower job trigger {name}{of}\n")
        }
        (true, false) => format!("{made}; next {}\n", Cell::time(job, "next_due").words(view)),
    }
}

/// Names the flag instead of the manifest's key where there is one.
fn refused(error: SpecError) -> Failure {
    let flag = match error.field.as_str() {
        "jitter" | "timeout" | "weight" | "priority" | "params" | "description" => {
            format!("--{}", error.field)
        }
        "progress_timeout" => "--progress-timeout".to_owned(),
        "bounds.max_fires" => "--max-fires".to_owned(),
        "bounds.start" => "--start".to_owned(),
        "bounds.end" => "--end".to_owned(),
        "misfire.window" => "--misfire-window".to_owned(),
        "task.exec.cwd" | "task.exec.user" | "task.exec.stdin" | "task.exec.shell" => {
            error.field.replace("task.exec.", "--")
        }
        "after.jobs" => "--after".to_owned(),
        "task.http.url" => "--http".to_owned(),
        "task.http.body" => "--body".to_owned(),
        field if field.starts_with("labels") => "--label".to_owned(),
        field if field.starts_with("task.exec.env") => "--env".to_owned(),
        field if field.starts_with("task.http.headers") => "--header".to_owned(),
        field => field.to_owned(),
    };
    Failure::usage(format!("{flag}: {}", error.message))
}
