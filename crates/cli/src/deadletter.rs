//! `drumtower deadletter`: runs that failed for good.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use drumtower_core::model::{NamespaceName, Reason, failures};
use serde_json::{Map, Value, json};

use crate::client::{Call, Client, segment};
use crate::connect::Connect;
use crate::failure::{Failure, Result};
use crate::moment::Moment;
use crate::output::{Cell, Column, Output, text};
use crate::run;

#[derive(Debug, Subcommand)]
pub enum Command {
    List(List),
    Show(Show),
    /// Make new runs of dead letters
    ///
    /// Each new run has the parameters of the old one, by the job as it is now, and names it; the
    /// letter is gone. Up to 1,000 at once; with --dry-run only told.
    ///
    ///     drumtower deadletter requeue run_06d4ztbp00000
    ///     drumtower deadletter requeue --job import --reason timed_out --dry-run
    ///     drumtower deadletter requeue --since -2h
    ///     drumtower deadletter requeue --job import --all --obey-overlap
    #[command(verbatim_doc_comment)]
    Requeue(Requeue),
    /// Throw dead letters away
    ///
    /// The runs stay in the history for their retention.
    ///
    ///     drumtower deadletter discard run_06d4ztbp00000
    ///     drumtower deadletter discard --job import --until -7d
    #[command(verbatim_doc_comment)]
    Discard(Choose),
}

/// List dead letters, the newest first
///
/// A run that has failed and is not tried again is kept for 30 days, whole, until it is
/// requeued or discarded.
///
///     drumtower deadletter list
///     drumtower deadletter list --job import --reason worker_lost --since -1d
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct List {
    #[command(flatten)]
    filter: Filter,
    /// How many at most
    #[arg(short, long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    namespace: Namespace,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

/// Show one dead letter: the run with all its attempts and their causes
///
///     drumtower deadletter show run_06d4ztbp00000
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Show {
    /// The run's id
    run: String,
    #[command(flatten)]
    namespace: Namespace,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

#[derive(Args, Debug)]
pub struct Requeue {
    /// Count the new runs for the `overlap` of their jobs: where a job is full they wait in its
    /// queue, or stay letters if it has none
    #[arg(long)]
    obey_overlap: bool,
    #[command(flatten)]
    choose: Choose,
}

#[derive(Args, Debug)]
pub struct Choose {
    /// The ids of the runs, instead of a filter
    #[arg(value_name = "RUN", conflicts_with_all = ["job", "reason", "since", "until", "all", "limit"])]
    runs: Vec<String>,
    #[command(flatten)]
    filter: Filter,
    /// All of the namespace
    #[arg(long)]
    all: bool,
    /// How many at most, the newest first
    #[arg(short, long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: Option<u32>,
    /// Only tell what would be done
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    namespace: Namespace,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

#[derive(Args, Debug)]
struct Filter {
    /// Only runs of this job
    #[arg(short, long, value_name = "NAME")]
    job: Option<String>,
    /// Only runs that failed for this reason
    #[arg(short, long, value_parser = PossibleValuesParser::new(reasons()))]
    reason: Option<String>,
    /// Only runs that failed at or after this instant: RFC 3339, or a duration such as `-2h` from now
    #[arg(long, value_name = "INSTANT", allow_hyphen_values = true)]
    since: Option<Moment>,
    /// Only runs that failed before this instant
    #[arg(long, value_name = "INSTANT", allow_hyphen_values = true)]
    until: Option<Moment>,
}

#[derive(Args, Clone, Debug)]
struct Namespace {
    /// The namespace of the runs
    #[arg(short, long, env = "DRUMTOWER_NAMESPACE", default_value = "default")]
    namespace: NamespaceName,
}

impl Namespace {
    fn path(&self) -> String {
        format!("/api/v1/namespaces/{}/deadletters", self.namespace)
    }
}

const COLUMNS: &[Column] = &[
    Column {
        head: "RUN",
        cell: |letter| Cell::text(letter, "run"),
    },
    Column {
        head: "JOB",
        cell: |letter| Cell::text(letter, "job"),
    },
    Column {
        head: "DIED",
        cell: |letter| Cell::time(letter, "died"),
    },
    Column {
        head: "REASON",
        cell: |letter| Cell::text(letter, "reason"),
    },
    Column {
        head: "ATTEMPTS",
        cell: |letter| Cell::text(letter, "attempts"),
    },
    Column {
        head: "ERROR",
        cell: |letter| Cell::text(letter, "error"),
    },
];

pub fn run(command: Command) -> Result<()> {
    match command {
        Command::List(list) => list.run(),
        Command::Show(show) => show.run(),
        Command::Requeue(requeue) => requeue.choose.run("requeue", requeue.obey_overlap),
        Command::Discard(choose) => choose.run("discard", false),
    }
}

impl List {
    fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let page = || {
            Call::get(self.namespace.path())
                .maybe("job", self.filter.job.as_ref())
                .maybe("reason", self.filter.reason.as_ref())
                .maybe("since", self.filter.since.map(Moment::instant))
                .maybe("until", self.filter.until.map(Moment::instant))
        };
        let letters = client.list(page, Some(self.limit as usize))?;
        self.output.list(letters, COLUMNS, "no dead letters")
    }
}

impl Show {
    fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let path = format!("{}/{}", self.namespace.path(), segment(&self.run));
        let letter = client.value(Call::get(path))?;
        self.output
            .one(&letter, |view| run::show::describe(&letter, view))
    }
}

impl Choose {
    fn run(self, verb: &str, obey_overlap: bool) -> Result<()> {
        let mut body = Map::new();
        let filter = [
            ("job", self.filter.job.clone()),
            ("reason", self.filter.reason.clone()),
            ("since", instant(self.filter.since)),
            ("until", instant(self.filter.until)),
        ];
        for (key, given) in filter {
            if let Some(given) = given {
                body.insert(key.to_owned(), Value::from(given));
            }
        }
        if self.all {
            body.insert("all".to_owned(), Value::from(true));
        }
        if !self.runs.is_empty() {
            body.insert("runs".to_owned(), json!(self.runs));
        }
        if body.is_empty() {
            return Err(Failure::usage(format!(
                "name the runs, or say which are meant with --job, --reason, --since, --until or --all: `drumtower deadletter {verb} --help`"
            )));
        }
        if let Some(limit) = self.limit {
            body.insert("limit".to_owned(), Value::from(limit));
        }
        if obey_overlap {
            body.insert("overlap".to_owned(), Value::from("obey"));
        }
        body.insert("dry_run".to_owned(), Value::from(self.dry_run));
        let client = Client::new(&self.connect)?;
        let call = Call::post(format!("{}:{verb}", self.namespace.path()));
        let answer = client.value(call.json(Value::Object(body)))?;
        let dry_run = self.dry_run;
        self.output.one(&answer, |_| told(&answer, verb, dry_run))?;
        let failed = answer["matched"] != answer["changed"];
        match failed {
            true => Err(Failure::failed("not all of them could be done")),
            false => Ok(()),
        }
    }
}

/// What a run can fail for.
fn reasons() -> Vec<&'static str> {
    failures().into_iter().map(Reason::as_str).collect()
}

fn instant(moment: Option<Moment>) -> Option<String> {
    moment.map(|moment| moment.instant().to_string())
}

/// What became of each, line by line.
fn told(answer: &Value, verb: &str, dry_run: bool) -> String {
    let done = match verb {
        "requeue" => "requeued",
        _ => "discarded",
    };
    let mut words = String::new();
    for item in answer["items"].as_array().into_iter().flatten() {
        let run = text(item, "run");
        let line = match (item["done"] == true, text(item, "new_run")) {
            (false, _) => format!("{run}: {}", text(item, "problem.detail")),
            (true, _) if dry_run => format!("{run}: would be {done}"),
            (true, new) if new.is_empty() => format!("{run}: {done}"),
            (true, new) => format!("{run}: {done} as {new}"),
        };
        words.push_str(&line);
        words.push('\n');
    }
    if words.is_empty() {
        words.push_str("no dead letters fit\n");
    }
    if answer["more"] == true {
        words.push_str("more of them fit: repeat the command\n");
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_letter_is_told_of() {
        let answer = json!({"items": [
            {"run": "run_1", "new_run": "run_9", "done": true},
            {"run": "run_2", "new_run": null, "done": false, "problem": {"detail": "gone"}},
        ], "more": true});
        assert_eq!(
            told(&answer, "requeue", false),
            "run_1: requeued as run_9\nrun_2: gone\nmore of them fit: repeat the command\n"
        );
        assert_eq!(
            told(&json!({"items": []}), "discard", false),
            "no dead letters fit\n"
        );
    }
}
