//! `drumtower config`: what is in force, and why.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};

use super::{Settings, file, log, outbound, server, tls, worker};
use crate::connect::own_dir;
use crate::failure::{Failure, Result};
use crate::output::{Cell, Column, Format, Output, line, say, write};

#[derive(Debug, Subcommand)]
pub enum Command {
    Check(Check),
    Show(Show),
}

/// Check the configuration, and say where each value came from
///
/// Reads what `serve`, `dev` and `work` would read: flags, DRUMTOWER_… variables, the file.
/// Every fault is told with its line. Fails when there is one, so that it can stand before a
/// restart.
///
///     drumtower config check
///     drumtower config check /etc/drumtower/drumtower.toml -o json
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Check {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    output: Output,
}

/// Print what is in force as a configuration file
///
///     drumtower config show
///     drumtower config show --data /var/lib/drumtower
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Show {
    #[command(flatten)]
    input: Input,
}

#[derive(Args, Debug)]
struct Input {
    /// The file; found as `drumtower serve` finds it unless given
    #[arg(value_name = "FILE", env = "DRUMTOWER_CONFIG")]
    file: Option<PathBuf>,
    #[command(flatten)]
    server: server::Flags,
    #[command(flatten)]
    tls: tls::Flags,
    #[command(flatten)]
    log: log::Flags,
}

impl Input {
    fn settle(&self) -> Result<Settings> {
        let given = self.log.given(self.tls.given(self.server.given()));
        super::settle(self.file.as_deref(), given)
    }
}

pub fn run(command: Command) -> Result<()> {
    match command {
        Command::Check(check) => check.run(),
        Command::Show(show) => show.run(),
    }
}

const COLUMNS: &[Column] = &[
    Column {
        head: "KEY",
        cell: |item| Cell::text(item, "key"),
    },
    Column {
        head: "VALUE",
        cell: |item| Cell::text(item, "shown"),
    },
    Column {
        head: "FROM",
        cell: |item| Cell::text(item, "from"),
    },
    Column {
        head: "PLACE",
        cell: |item| Cell::text(item, "place"),
    },
];

impl Check {
    fn run(self) -> Result<()> {
        let settings = self.input.settle()?;
        sound(&settings)?;
        let mut items = settings.listing();
        for warning in settings.warnings() {
            say(&format!("warning: {warning}"));
        }
        if self.output.output != Format::Table {
            for item in &mut items {
                item.as_object_mut().map(|item| item.remove("shown"));
            }
            let file = settings.file.as_ref();
            let answer = json!({
                "file": file.map(|file| file.display().to_string()),
                "warnings": settings.warnings(),
                "settings": items,
            });
            return self.output.one(&answer, |_| String::new());
        }
        self.output.list(items, COLUMNS, "")?;
        say(&summary(&settings));
        Ok(())
    }
}

/// What `serve` and `work` would refuse at their start, all at once. Nothing is made and nobody is called.
fn sound(settings: &Settings) -> Result<()> {
    let checks = [
        server::check(settings),
        worker::check(settings),
        outbound::policy(settings).map(|_| ()),
    ];
    let faults: Vec<Failure> = checks.into_iter().filter_map(Result::err).collect();
    if faults.is_empty() {
        return Ok(());
    }
    let told: Vec<&str> = faults.iter().map(Failure::message).collect();
    Err(Failure::usage(told.join("\nerror: ")))
}

fn summary(settings: &Settings) -> String {
    match &settings.file {
        Some(file) => format!("{} is sound", file.display()),
        None => format!(
            "there is no configuration file; everything is by flag, variable or default; it would be {}",
            file::places(own_dir(settings.path("data")).as_deref())
        ),
    }
}

impl Show {
    fn run(self) -> Result<()> {
        let settings = self.input.settle()?;
        if let Some(file) = &settings.file {
            line(&format!("# {}", file.display()))?;
        }
        write(&as_toml(&settings.listing()))
    }
}

/// The settings as a file would give them; what is not set is a comment.
pub(super) fn as_toml(items: &[Json]) -> String {
    let mut text = String::new();
    let mut section = "";
    for item in items {
        let field = |name: &str| item.get(name).and_then(Json::as_str).unwrap_or_default();
        let (path, shown) = (field("key"), field("shown"));
        let (of, name) = path.rsplit_once('.').unwrap_or(("", path));
        if of != section {
            text.push_str(&format!("\n[{of}]\n"));
            section = of;
        }
        let is_set = !item["value"].is_null() && shown != "…";
        let mark = if is_set { "" } else { "# " };
        let why = match field("place") {
            "" => field("from"),
            place => place,
        };
        text.push_str(&format!("{mark}{name} = {shown}  # {why}\n"));
    }
    text
}
