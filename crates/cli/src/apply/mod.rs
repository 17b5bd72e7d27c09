//! `drumtower apply`, and the `apply` of jobs, calendars and queues: make the server what the files say.
//!
//! All of them take every kind. Everything is read and compared with the server before the first change. Calendars and
//! queues are sent first, whatever their place in the files: jobs name them. What goes, goes last.

mod carry_out;
mod change;
mod plan;
mod prune;
mod words;

use std::path::PathBuf;

use clap::Args;
use serde_json::Value;

use crate::client::Client;
use crate::connect::Connect;
use crate::failure::{Exit, Failure, Result};
use crate::manifest::{self, Document, Spec};
use crate::output::{Format, Output, View, line, write};

use carry_out::{carry_out, results};
use plan::plan;
pub use plan::{Action, Step};
use prune::Prune;
pub use words::changes as change_lines;

/// Make or change jobs, calendars and queues from YAML files
///
/// Nothing is sent before every file was understood. Applying the same file again changes
/// nothing. A file may hold several documents, separated by `---`, of kind Job, Calendar and
/// Queue in any order: jobs are sent last. A directory stands for all .yaml and .yml files in it;
/// `-` is standard input.
///
///     drumtower job apply -f hello.yaml
///     drumtower job apply -f jobs/ --dry-run
///     drumtower job apply -f - <<'EOF'
///     kind: Job
///     name: hello
///     schedule:
///       - cron: "*/5 * * * *"
///     task:
///       exec:
///         argv: ["echo", "hello"]
///     EOF
///
/// `drumtower schema job`, `schema calendar` and `schema queue` print everything that manifests
/// may say.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Apply {
    /// A file, a directory, or `-` for standard input; may be repeated
    #[arg(short = 'f', long = "file", required = true, value_name = "FILE|DIR|-")]
    files: Vec<PathBuf>,
    /// Only print what would be done
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    prune: Prune,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

/// How much is told on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// The plan first, then each change as it is done.
    Plan,
    /// One line for each document, with what became of it.
    Lines,
}

impl Apply {
    pub fn run(self, telling: Telling) -> Result<()> {
        let documents = read(&self.files)?;
        let client = Client::new(&self.connect)?;
        let mut steps = plan(&client, documents)?;
        steps.extend(self.prune.steps(&client, &steps)?);
        if self.dry_run {
            return print(&steps, self.output);
        }
        let table = self.output.output == Format::Table;
        if table && (telling == Telling::Plan || self.prune.is_asked(&steps)) {
            write(&words::plan(&steps, View::of_stdout()))?;
        }
        self.prune.confirm(&steps)?;
        apply(&client, &steps, telling, self.output)
    }
}

/// Prints a plan.
pub fn print(steps: &[Step], output: Output) -> Result<()> {
    match output.output {
        Format::Table => write(&words::plan(steps, View::of_stdout())),
        _ => output.list(steps.iter().map(Step::to_value).collect(), &[], ""),
    }
}

/// Carries out a plan and tells what became of it.
fn apply(client: &Client, steps: &[Step], telling: Telling, output: Output) -> Result<()> {
    let table = output.output == Format::Table;
    let outcome = carry_out(client, steps, |step| {
        let silent = telling == Telling::Plan && step.action == Action::Unchanged;
        match table && !silent {
            true => line(&format!("{} {}", step.title(), step.action.done())),
            false => Ok(()),
        }
    })?;
    if !table {
        let told: Vec<Value> = match telling {
            Telling::Plan => results(steps, &outcome),
            Telling::Lines => outcome.objects,
        };
        output.list(told, &[], "")?;
    }
    match outcome.failure {
        Some(failure) => Err(failure),
        None => Ok(()),
    }
}

/// Plans, prints and applies documents that were made here. What exists under their names is changed only on purpose.
pub fn apply_documents(
    client: &Client,
    documents: Vec<Document>,
    replace: bool,
    output: Output,
) -> Result<()> {
    let steps = plan(client, documents)?;
    if output.output == Format::Table {
        write(&words::plan(&steps, View::of_stdout()))?;
    }
    let others = steps.iter().filter(|step| step.action == Action::Change);
    let others: Vec<String> = others.map(Step::title).collect();
    if !replace && !others.is_empty() {
        let message = format!("there is already {}: nothing was done", others.join(", "));
        return Err(Failure::new(Exit::Refused, message)
            .remedy("--replace changes them, --prefix gives the new ones other names"));
    }
    apply(client, &steps, Telling::Plan, output)
}

/// What applying these files would do.
pub fn plan_files(client: &Client, files: &[PathBuf]) -> Result<Vec<Step>> {
    plan(client, read(files)?)
}

/// All documents of all files with the jobs last, or all faults.
fn read(files: &[PathBuf]) -> Result<Vec<Document>> {
    let mut documents: Vec<Document> = Vec::new();
    let mut faults = Vec::new();
    for source in manifest::collect(files)? {
        let (found, wrong) = manifest::parse(&source);
        if found.is_empty() && wrong.is_empty() {
            faults.push(format!("{}: there is no document in it", source.name));
        }
        faults.extend(wrong.iter().map(ToString::to_string));
        documents.extend(found);
    }
    for (index, document) in documents.iter().enumerate() {
        let same = |other: &&Document| other.title() == document.title();
        if let Some(first) = documents[..index].iter().find(same) {
            faults.push(format!(
                "{}: {} is given twice, first in {}",
                document.place(),
                document.title(),
                first.place()
            ));
        }
    }
    documents.sort_by_key(|document| matches!(document.spec, Spec::Job(_)));
    match faults.len() {
        0 => Ok(documents),
        _ => Err(Failure::usage(faults.join("\nerror: ")).remedy(
            "`drumtower schema job`, `schema calendar` and `schema queue` say what a manifest may hold",
        )),
    }
}

/// Applies documents without a word.
pub fn put_all(client: &Client, documents: Vec<Document>) -> Result<()> {
    let steps = plan(client, documents)?;
    match carry_out(client, &steps, |_| Ok(()))?.failure {
        Some(failure) => Err(failure),
        None => Ok(()),
    }
}
