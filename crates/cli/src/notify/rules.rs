//! The rules of a namespace: show, set, unset.

use std::path::PathBuf;

use clap::Args;
use drumtower_core::model::{NamespaceName, Notify};
use serde_json::Value;
use ureq::http::Method;

use super::{rule_words, setting_path};
use crate::client::{Call, Client};
use crate::connect::Connect;
use crate::failure::{Failure, Result};
use crate::manifest::collect;
use crate::output::Output;

/// Show who is told of the jobs of a namespace
///
///     drumtower notify show
///     drumtower notify show -n billing -o yaml
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Show {
    /// The namespace; default unless given
    #[arg(short, long, env = "DRUMTOWER_NAMESPACE", default_value = "default")]
    namespace: NamespaceName,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

/// Set who is told of the jobs of a namespace
///
/// The file holds the rules in YAML or JSON and replaces those there are. A job with the key
/// `notify` in its own manifest has its own rules instead.
///
///     drumtower notify set -f notify.yaml
///     drumtower notify set -f - -n billing
///
/// Such as:
///
///     rules:
///       - on: [failure, recovery, late]
///         email: [ops@example.com]
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Set {
    /// The file with the rules, or `-` for standard input
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    file: PathBuf,
    /// The namespace; default unless given
    #[arg(short, long, env = "DRUMTOWER_NAMESPACE", default_value = "default")]
    namespace: NamespaceName,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

/// Take the rules of a namespace back
///
///     drumtower notify unset -n billing
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Unset {
    /// The namespace; default unless given
    #[arg(short, long, env = "DRUMTOWER_NAMESPACE", default_value = "default")]
    namespace: NamespaceName,
    #[command(flatten)]
    connect: Connect,
}

impl Show {
    pub fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let path = setting_path(&self.namespace);
        let setting = client.value(Call::get(path))?;
        self.output.one(&setting["value"], |_| words(&setting))
    }
}

impl Set {
    pub fn run(self) -> Result<()> {
        let namespace = self.namespace;
        let [source] = &collect(std::slice::from_ref(&self.file))?[..] else {
            return Err(Failure::usage("give one file, not a directory"));
        };
        let place = |error: String| Failure::usage(format!("{}: {error}", source.name));
        // YAML holds JSON too.
        let rules: Notify =
            serde_saphyr::from_str(&source.text).map_err(|error| place(error.to_string()))?;
        rules
            .check("notify")
            .map_err(|error| place(error.to_string()))?;
        let body = serde_json::to_value(&rules).map_err(|error| place(error.to_string()))?;
        let client = Client::new(&self.connect)?;
        let call = Call::new(Method::PUT, setting_path(&namespace)).json(body);
        let setting = client.value(call)?;
        self.output.one(&setting["value"], |_| words(&setting))
    }
}

impl Unset {
    pub fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let namespace = self.namespace;
        client.send(Call::new(Method::DELETE, setting_path(&namespace)))?;
        crate::output::line(&format!(
            "nobody is told of the jobs of {namespace} any more"
        ))
    }
}

fn words(setting: &Value) -> String {
    let rules = setting["value"]["rules"].as_array();
    let lines: Vec<String> = rules
        .into_iter()
        .flatten()
        .map(|rule| format!("{}\n", rule_words(rule)))
        .collect();
    match lines.is_empty() {
        true => "no rules: nobody is told\n".to_owned(),
        false => lines.concat(),
    }
}
