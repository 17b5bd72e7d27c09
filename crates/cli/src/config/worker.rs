//! `[worker]`: which server a worker joins, and what it offers.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use drumtower_core::model::WorkerName;
use drumtower_sdk::tls::Trust;
use drumtower_worker::agent::Options;

use super::{Given, Key, Kind, Settings, Value, any};
use crate::connect::{Connect, check_url};
use crate::duration;
use crate::failure::{Failure, Result};

/// The largest capacity that a server takes.
const MOST_CAPACITY: u64 = 20_000;

pub const KEYS: &[Key] = &[
    Key::new("worker.url", "DRUMTOWER_URL", Kind::Text(any))
        .flag("--url")
        .unset("the server on this machine"),
    Key::new("worker.token", "DRUMTOWER_TOKEN", Kind::Text(any))
        .flag("--token")
        .secret(),
    Key::new("worker.token_file", "DRUMTOWER_TOKEN_FILE", Kind::Path).flag("--token-file"),
    Key::new("worker.ca", "DRUMTOWER_CA", Kind::Path)
        .flag("--ca")
        .unset("the system's authorities"),
    Key::new("worker.cert", "DRUMTOWER_CERT", Kind::Path).flag("--cert"),
    Key::new("worker.key", "DRUMTOWER_KEY", Kind::Path).flag("--key"),
    Key::new("worker.name", "DRUMTOWER_WORKER_NAME", Kind::Text(name))
        .flag("--name")
        .unset("the name of the machine"),
    Key::new(
        "worker.capacity",
        "DRUMTOWER_WORKER_CAPACITY",
        Kind::Count {
            least: 1,
            most: MOST_CAPACITY,
        },
    )
    .flag("--capacity")
    .unset("8 for each core"),
    Key::new("worker.labels", "DRUMTOWER_WORKER_LABELS", Kind::Labels).flag("--label"),
    Key::new("worker.scratch", "DRUMTOWER_WORKER_SCRATCH", Kind::Path)
        .flag("--scratch")
        .unset("drumtower-scratch-UID in the temporary directory"),
    Key::new("worker.drain", "DRUMTOWER_WORKER_DRAIN", Kind::Duration)
        .flag("--drain")
        .default("30s"),
];

#[derive(Args, Clone, Debug, Default)]
#[group(skip)]
pub struct Flags {
    /// How the worker is called in listings; the name of the machine unless given
    #[arg(long, env = "DRUMTOWER_WORKER_NAME")]
    name: Option<WorkerName>,
    /// How much weight it runs at once; eight for each core unless given
    #[arg(long, env = "DRUMTOWER_WORKER_CAPACITY", value_name = "WEIGHT")]
    capacity: Option<u32>,
    /// A label, shown in listings; may be repeated
    #[arg(long = "label", value_parser = label, value_name = "KEY=VALUE")]
    labels: Vec<(String, String)>,
    /// Where commands get their working directories
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// How long runs may take to end by themselves once the worker is told to stop; 30s unless given
    #[arg(long, value_parser = duration::parse, value_name = "DURATION")]
    drain: Option<Duration>,
    /// A file whose first line is the token, so that no list of processes shows it
    #[arg(long, env = "DRUMTOWER_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// A certificate of the worker's own, for servers that ask for one
    #[arg(long, env = "DRUMTOWER_CERT", value_name = "FILE")]
    cert: Option<PathBuf>,
    /// The key of --cert
    #[arg(long, env = "DRUMTOWER_KEY", value_name = "FILE")]
    key: Option<PathBuf>,
}

fn label(text: &str) -> std::result::Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write it as KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

fn name(text: &str) -> std::result::Result<(), String> {
    WorkerName::new(text)
        .map(|_| ())
        .map_err(|error| error.to_string())
}

impl Flags {
    pub fn given(&self, connect: &Connect) -> Given {
        let labels = self.labels.iter().cloned().collect();
        let labels = (!self.labels.is_empty()).then_some(Value::Labels(labels));
        Given::default()
            .path("data", connect.data.as_ref())
            .text("worker.url", connect.url.as_ref())
            .text("worker.token", connect.token.as_ref())
            .path("worker.token_file", self.token_file.as_ref())
            .path("worker.ca", connect.ca.as_ref())
            .switch("insecure", connect.insecure)
            .path("worker.cert", self.cert.as_ref())
            .path("worker.key", self.key.as_ref())
            .text("worker.name", self.name.as_ref())
            .set(
                "worker.capacity",
                self.capacity.map(|weight| Value::Count(weight.into())),
            )
            .set("worker.labels", labels)
            .path("worker.scratch", self.scratch.as_ref())
            .set("worker.drain", self.drain.map(Value::Duration))
    }
}

/// Where the server is, from the settings instead of flags alone.
pub fn connect(settings: &Settings) -> Result<Connect> {
    Ok(Connect {
        url: settings.text("worker.url"),
        token: token(settings)?,
        data: settings.path("data").map(PathBuf::from),
        ca: settings.path("worker.ca").map(PathBuf::from),
        insecure: settings.switch("insecure"),
    })
}

/// Refuses what a worker would refuse before it calls its server.
pub fn check(settings: &Settings) -> Result<()> {
    let connect = connect(settings)?;
    if let Some(url) = &connect.url {
        check_url(url).map_err(|failure| failure.at("worker.url"))?;
    }
    let trust = trust(
        settings,
        Trust {
            ca: connect.ca,
            ..Trust::default()
        },
    )?;
    // The system's authorities are nobody's setting.
    if trust == Trust::default() {
        return Ok(());
    }
    let read = trust.config(&[]).map(|_| ());
    read.map_err(|why| Failure::usage(format!("[worker]: {why}")))
}

/// Adds the worker's own certificate.
pub fn trust(settings: &Settings, trust: Trust) -> Result<Trust> {
    let file = |key| settings.path(key).map(PathBuf::from);
    let identity = match (file("worker.cert"), file("worker.key")) {
        (None, None) => None,
        (Some(cert), Some(key)) => Some((cert, key)),
        (Some(_), None) => {
            return Err(Failure::usage("worker.cert needs worker.key: give its key"));
        }
        (None, Some(_)) => {
            return Err(Failure::usage(
                "worker.key needs worker.cert: give the certificate",
            ));
        }
    };
    Ok(Trust { identity, ..trust })
}

/// The token itself wins over a file that holds one, unless the file was named where it counts for more: `--token-file` is
/// not meant to give way to a variable that was set for something else.
fn token(settings: &Settings) -> Result<Option<String>> {
    let file = settings.origin("worker.token_file");
    if let Some(token) = settings.text("worker.token")
        && !file.wins_over(settings.origin("worker.token"))
    {
        return Ok(Some(token));
    }
    let Some(path) = settings.path("worker.token_file") else {
        return Ok(None);
    };
    let text = std::fs::read_to_string(path).map_err(|error| Failure::file(path, &error))?;
    match text.lines().next().map(str::trim) {
        Some(token) if !token.is_empty() => Ok(Some(token.to_owned())),
        _ => Err(Failure::usage(format!(
            "worker.token_file: {} is empty: put the token on its first line",
            path.display()
        ))),
    }
}

/// What the worker offers, from the settings.
pub fn offer(settings: &Settings, standard: Options) -> Options {
    let capacity = settings.count("worker.capacity");
    let capacity = capacity.and_then(|weight| u32::try_from(weight).ok());
    let scratch = settings.path("worker.scratch").map(PathBuf::from);
    Options {
        name: settings.text("worker.name"),
        capacity: capacity.unwrap_or(standard.capacity),
        labels: settings.labels("worker.labels"),
        scratch_root: scratch.unwrap_or(standard.scratch_root),
        drain_timeout: settings
            .duration("worker.drain")
            .unwrap_or(standard.drain_timeout),
        ..standard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_named_by_a_flag_wins_over_a_variable_that_holds_a_token() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("agents.token");
        std::fs::write(&path, "drt_file\n").expect("it is written");
        let found = |given: Given, variables: &[(&str, &str)]| {
            let variable = |name: &str| {
                let found = variables.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            let settings = Settings::of(given, variable).expect("sound");
            token(&settings).expect("it is read").expect("there is one")
        };
        let flag = || Given::default().path("worker.token_file", Some(&path));
        let variable = ("DRUMTOWER_TOKEN", "drt_variable");
        assert_eq!(found(flag(), &[variable]), "drt_file");
        let both = flag().text("worker.token", Some("drt_flag"));
        assert_eq!(found(both, &[]), "drt_flag");
        let text = path.to_string_lossy();
        let file = ("DRUMTOWER_TOKEN_FILE", &*text);
        assert_eq!(found(Given::default(), &[variable, file]), "drt_variable");
    }
}
