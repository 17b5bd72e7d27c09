//! `drumtower doctor`: whether an installation is well, each finding with what to do about it.
//!
//! [`server`] asks the server as any client does, [`cluster`] looks at those that share its database, [`data`] looks at the data directory on the server's machine, and
//! [`machine`] at the machine itself; [`shared`] asks the database that servers share. Nothing is changed.

mod cluster;
mod data;
mod machine;
mod server;
mod shared;

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde::Serialize;
use serde_json::json;

use crate::connect::{Connect, data_dir};
use crate::failure::{Exit, Failure, Result};
use crate::output::{Output, View, tame};

/// Check an installation, from here and on the machine of the server
///
/// Asks the server whether it is ready, looks at its certificate, the token, the clocks, the
/// versions, the servers that share a database, the workers and what runs wait for. On the machine of the server it also looks at
/// the data directory, the free space, the configuration and the limits of the system.
///
///     drumtower doctor
///     drumtower doctor --url https://scheduler:7070 -o json
///     drumtower doctor --deep --data /var/lib/drumtower
///     drumtower doctor --only ready
///
/// --deep reads the whole database, which needs the server to be stopped. The exit code is 1 if
/// anything failed; warnings leave it at 0.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Doctor {
    /// Read the whole database of a server that does not run
    #[arg(long)]
    deep: bool,
    /// Do not ask a server; look at the data directory and the machine
    #[arg(long, conflicts_with = "url")]
    offline: bool,
    /// Only this check, and whether the server answers; may be repeated
    #[arg(long, value_name = "CHECK", value_parser = PossibleValuesParser::new(CHECKS))]
    only: Vec<String>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

const CHECKS: [&str; 16] = [
    "server", "ready", "tls", "token", "version", "clock", "cluster", "workers", "waiting",
    "backup", "data", "space", "config", "database", "files", "cgroups",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Ok,
    Warn,
    Fail,
}

/// One finding.
#[derive(Debug, Serialize)]
pub struct Finding {
    check: &'static str,
    state: State,
    words: String,
    remedy: Option<String>,
}

/// What was found so far.
#[derive(Debug, Default)]
pub struct Findings(Vec<Finding>);

impl Findings {
    pub fn ok(&mut self, check: &'static str, words: impl Into<String>) {
        self.add(check, State::Ok, words.into(), None);
    }

    pub fn warn(&mut self, check: &'static str, words: impl Into<String>, remedy: &str) {
        self.add(check, State::Warn, words.into(), Some(remedy.to_owned()));
    }

    pub fn fail(&mut self, check: &'static str, words: impl Into<String>, remedy: &str) {
        self.add(check, State::Fail, words.into(), Some(remedy.to_owned()));
    }

    fn add(&mut self, check: &'static str, state: State, words: String, remedy: Option<String>) {
        debug_assert!(CHECKS.contains(&check), "{check} can be asked for");
        self.0.push(Finding {
            check,
            state,
            words,
            remedy,
        });
    }

    fn count_all(&self) -> usize {
        self.0.len()
    }

    /// Whether it is well, and the words, of each.
    #[cfg(test)]
    fn told(&self) -> Vec<(bool, String)> {
        let told = |it: &Finding| (it.state == State::Ok, it.words.clone());
        self.0.iter().map(told).collect()
    }

    fn count(&self, state: State) -> usize {
        self.0.iter().filter(|it| it.state == state).count()
    }

    fn words(&self, view: View) -> String {
        let mut text = String::new();
        for finding in &self.0 {
            let (mark, color) = match finding.state {
                State::Ok => ("ok  ", "\u{1b}[32m"),
                State::Warn => ("warn", "\u{1b}[33m"),
                State::Fail => ("FAIL", "\u{1b}[31m"),
            };
            let (on, off) = if view.color {
                (color, "\u{1b}[0m")
            } else {
                ("", "")
            };
            let words = tame(&finding.words);
            text.push_str(&format!("{on}{mark}{off}  {:<9}  {words}\n", finding.check));
            if let Some(remedy) = &finding.remedy {
                text.push_str(&format!("                 try: {}\n", tame(remedy)));
            }
        }
        let (failed, warned) = (self.count(State::Fail), self.count(State::Warn));
        text.push_str(&match (failed, warned) {
            (0, 0) => "all is well\n".to_owned(),
            (failed, warned) => format!("{failed} failed, {warned} to look at\n"),
        });
        text
    }
}

impl Doctor {
    pub fn run(self) -> Result<()> {
        let mut findings = Findings::default();
        let here = data_dir(self.connect.data.as_deref())?;
        let here = here.filter(|dir| self.connect.data.is_some() || dir.exists());
        if !self.offline {
            server::check(&self.connect, &mut findings);
        }
        // Another machine's server says nothing of a directory that happens to be here.
        let local = self.connect.url.is_none() || self.connect.data.is_some();
        if let Some(dir) = here.filter(|_| local) {
            data::check(&dir, self.deep, &mut findings);
        }
        machine::check(&mut findings);
        if !self.only.is_empty() {
            let wanted = |check: &str| check == "server" || self.only.iter().any(|it| it == check);
            findings.0.retain(|finding| wanted(finding.check));
        }
        let failed = findings.count(State::Fail) > 0;
        let value = json!({"ok": !failed, "findings": findings.0});
        self.output.one(&value, |view| findings.words(view))?;
        if failed {
            Err(Failure::wordless(Exit::Failed))
        } else {
            Ok(())
        }
    }
}
