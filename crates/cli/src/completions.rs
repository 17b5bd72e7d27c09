//! `drumtower completions`: what a shell needs to complete a command line, names of the server's own things included.
//!
//! The script that a shell loads asks this program at each press of the key, with [`VARIABLE`] set. Verbs and flags come
//! from the definition of the command line; names come from the server that the environment points at, if it answers
//! at once: a key must not hang.

use std::ffi::OsStr;
use std::sync::mpsc;
use std::time::Duration;

use clap::builder::StyledStr;
use clap::{Args, Command, ValueEnum};
use clap_complete::env::Shells;
use clap_complete::{ArgValueCompleter, CompleteEnv, CompletionCandidate};
use serde_json::Value;

use crate::client::{Call, Client, Items};
use crate::connect::Connect;
use crate::failure::{Failure, Result};
use crate::output::{tame, text, write};

/// Set by the script when it asks.
const VARIABLE: &str = "DRUMTOWER_COMPLETE";
/// How long a key may wait for names.
const PATIENCE: Duration = Duration::from_secs(1);
const MOST_NAMES: usize = 200;
const MOST_RUNS: usize = 30;

/// Print what makes a shell complete commands, flags and names
///
/// Names of jobs, calendars, queues and workers and ids of recent runs come from the server that
/// DRUMTOWER_URL or the data directory points at.
///
///     source <(drumtower completions bash)
///     drumtower completions bash > ~/.local/share/bash-completion/completions/drumtower
///     drumtower completions zsh > ~/.zfunc/_drumtower
///     drumtower completions fish > ~/.config/fish/completions/drumtower.fish
///
/// Load it anew after an upgrade.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    Powershell,
}

impl Shell {
    fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
            Self::Powershell => "powershell",
        }
    }
}

impl Completions {
    pub fn run(self) -> Result<()> {
        let shells = Shells::builtins();
        let shell = shells
            .completer(self.shell.name())
            .ok_or_else(|| Failure::usage(format!("{} is not known", self.shell.name())))?;
        let mut script = Vec::new();
        shell.write_registration(VARIABLE, "drumtower", "drumtower", "drumtower", &mut script)?;
        write(&String::from_utf8_lossy(&script))
    }
}

/// Answers a shell and ends the process, if it is one that asks.
pub fn answer(command: impl Fn() -> Command) {
    if std::env::var_os(VARIABLE).is_some() {
        CompleteEnv::with_factory(|| with_names(command()))
            .var(VARIABLE)
            .complete();
    }
}

/// Where names of the server's things stand: noun, argument, whose names.
const PLACES: &[(&str, &[&str], Thing)] = &[
    ("job", &["name", "names", "job", "jobs"], Thing::Job),
    ("calendar", &["name", "names"], Thing::Calendar),
    ("queue", &["name", "names"], Thing::Queue),
    ("worker", &["name", "worker"], Thing::Worker),
    ("run", &["run", "runs"], Thing::Run),
    ("run", &["job"], Thing::Job),
];

/// Verbs whose names are new ones.
const MAKERS: &[&str] = &["create", "apply"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thing {
    Job,
    Calendar,
    Queue,
    Worker,
    Run,
}

fn with_names(command: Command) -> Command {
    command.mut_subcommands(|noun| {
        let places: Vec<_> = PLACES
            .iter()
            .filter(|(name, _, _)| *name == noun.get_name())
            .collect();
        noun.mut_subcommands(|verb| {
            if MAKERS.contains(&verb.get_name()) {
                return verb;
            }
            verb.mut_args(|argument| {
                let id = argument.get_id().as_str();
                let found = places.iter().find(|(_, ids, _)| ids.contains(&id));
                match found {
                    Some((_, _, thing)) => {
                        let thing = *thing;
                        argument.add(ArgValueCompleter::new(move |typed: &OsStr| {
                            candidates(thing, typed)
                        }))
                    }
                    None => argument,
                }
            })
        })
    })
}

fn candidates(thing: Thing, typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy().into_owned();
    let (found, items) = mpsc::channel();
    std::thread::spawn(move || found.send(ask(thing)));
    let items = items.recv_timeout(PATIENCE).ok().and_then(Result::ok);
    let shown = items.unwrap_or_default().into_iter();
    shown
        .map(|item| described(thing, &item))
        .filter(|(name, _)| !name.is_empty() && name.starts_with(&typed))
        .map(|(name, help)| CompletionCandidate::new(name).help(Some(StyledStr::from(tame(&help)))))
        .collect()
}

/// What the environment says of the server; flags on the line being typed are not looked at.
fn connect() -> Connect {
    let variable = |name| {
        std::env::var(name)
            .ok()
            .filter(|value: &String| !value.is_empty())
    };
    Connect {
        url: variable("DRUMTOWER_URL"),
        token: variable("DRUMTOWER_TOKEN"),
        data: variable("DRUMTOWER_DATA").map(Into::into),
        ca: variable("DRUMTOWER_CA").map(Into::into),
        insecure: variable("DRUMTOWER_INSECURE").is_some_and(|it| it == "1" || it == "true"),
    }
}

fn ask(thing: Thing) -> Result<Items> {
    let client = Client::new(&connect())?;
    let (path, most) = match thing {
        Thing::Job => ("/api/v1/jobs", MOST_NAMES),
        Thing::Calendar => ("/api/v1/calendars", MOST_NAMES),
        Thing::Queue => ("/api/v1/queues", MOST_NAMES),
        Thing::Worker => return client.items(Call::get("/api/v1/workers")),
        Thing::Run => ("/api/v1/runs", MOST_RUNS),
    };
    client.list(|| Call::get(path), Some(most))
}

fn described(thing: Thing, item: &Value) -> (String, String) {
    match thing {
        Thing::Run => {
            let help = format!("{} {}", text(item, "job"), text(item, "state"));
            (text(item, "id"), help)
        }
        Thing::Worker => (text(item, "name"), text(item, "state")),
        Thing::Job | Thing::Calendar | Thing::Queue => {
            (text(item, "name"), text(item, "namespace"))
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_place_of_names_is_there() {
        let command = crate::Cli::command();
        for (noun, ids, _) in PLACES {
            let noun = command.find_subcommand(noun).expect("a noun");
            let has = |verb: &Command| {
                verb.get_arguments()
                    .any(|it| ids.contains(&it.get_id().as_str()))
            };
            assert!(
                noun.get_subcommands().any(has),
                "{}: none of {ids:?}",
                noun.get_name()
            );
        }
        with_names(command).debug_assert();
    }
}
