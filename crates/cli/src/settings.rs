//! `drumtower settings`: what holds for the jobs of the whole installation, kept in the database and changed while servers run.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use drumtower_core::model::JobSettings;
use serde_json::Value;
use ureq::http::Method;

use crate::client::{Call, Client};
use crate::connect::Connect;
use crate::failure::{Exit, Failure, Result};
use crate::manifest::collect;
use crate::output::{Output, pairs};

const PATH: &str = "/api/v1/settings/jobs";

#[derive(Debug, Subcommand)]
pub enum Command {
    Show(Show),
    Set(Set),
    Unset(Unset),
}

/// Show what jobs get that do not say it, and what they may say at most
///
///     drumtower settings show
///     drumtower settings show -o yaml
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Show {
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

/// Set what jobs get that do not say it, and what they may say at most
///
/// The file holds the settings in YAML or JSON and replaces those there are. They hold for every
/// job that is applied from then on, at all servers; jobs that exist stay as they are until they
/// are applied again. It takes the token of an admin.
///
///     drumtower settings set -f settings.yaml
///     drumtower settings set -f settings.yaml --if-revision 3
///
/// Such as, with all keys there are:
///
///     defaults:
///       retention: 30d
///       timeout: 30m
///       max_attempts: 5
///     limits:
///       timeout: 6h
///       max_attempts: 10
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Set {
    /// The file with the settings, or `-` for standard input
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    file: PathBuf,
    /// Refuse unless they stand at this revision, as `show` tells it
    #[arg(long, value_name = "N")]
    if_revision: Option<u64>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

/// Take the settings back: what is built in holds again
///
///     drumtower settings unset
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Unset {
    #[command(flatten)]
    connect: Connect,
}

pub fn run(command: Command) -> Result<()> {
    match command {
        Command::Show(show) => show.run(),
        Command::Set(set) => set.run(),
        Command::Unset(unset) => unset.run(),
    }
}

/// What the server has; nothing where nothing is set, or where a server is older than these settings.
pub fn of_jobs(client: &Client) -> Result<JobSettings> {
    let setting = match client.value(Call::get(PATH)) {
        Ok(setting) => setting,
        Err(failure) if failure.exit == Exit::NotFound => return Ok(JobSettings::default()),
        Err(failure) => return Err(failure),
    };
    serde_json::from_value(setting["value"].clone()).map_err(|error| {
        Failure::failed(format!(
            "the settings of the server say more than is known here: {error}"
        ))
        .remedy("use a `drumtower` of the server's version")
    })
}

impl Show {
    fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let setting = client.value(Call::get(PATH))?;
        self.output.one(&setting["value"], |_| words(&setting))
    }
}

impl Set {
    fn run(self) -> Result<()> {
        let [source] = &collect(std::slice::from_ref(&self.file))?[..] else {
            return Err(Failure::usage("give one file, not a directory"));
        };
        let place = |error: String| Failure::usage(format!("{}: {error}", source.name));
        // YAML holds JSON too.
        let settings: JobSettings =
            serde_saphyr::from_str(&source.text).map_err(|error| place(error.to_string()))?;
        settings
            .check("jobs")
            .map_err(|error| place(error.to_string()))?;
        let body = serde_json::to_value(&settings).map_err(|error| place(error.to_string()))?;
        let mut call = Call::new(Method::PUT, PATH).json(body);
        if let Some(revision) = self.if_revision {
            call = call.header("if-match", format!("\"s{revision}\""));
        }
        let setting = Client::new(&self.connect)?.value(call)?;
        self.output.one(&setting["value"], |_| words(&setting))
    }
}

impl Unset {
    fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        client.send(Call::new(Method::DELETE, PATH))?;
        crate::output::line("what is built in holds again for jobs that are applied from now on")
    }
}

fn words(setting: &Value) -> String {
    let revision = format!(
        "{}, by {}",
        setting["revision"],
        crate::output::text(setting, "actor")
    );
    let mut lines = vec![("revision", revision)];
    let said = |path: &str| match setting["value"].pointer(path)? {
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    for (label, path) in [
        ("default retention", "/defaults/retention"),
        ("default timeout", "/defaults/timeout"),
        ("default attempts", "/defaults/max_attempts"),
        ("longest timeout", "/limits/timeout"),
        ("most attempts", "/limits/max_attempts"),
    ] {
        lines.extend(said(path).map(|value| (label, value)));
    }
    pairs(&lines)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_set_is_told_and_nothing_else() {
        let setting = json!({
            "revision": 4, "actor": "ann",
            "value": {"defaults": {"retention": "30d"}, "limits": {"max_attempts": 7}},
        });
        let told = words(&setting);
        let lines: Vec<Vec<&str>> = told
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(lines[0].last(), Some(&"ann"));
        assert_eq!(lines[1].last(), Some(&"30d"));
        assert_eq!(lines[2].last(), Some(&"7"));
        assert_eq!(lines.len(), 3, "{told}");
    }
}
