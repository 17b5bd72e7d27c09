//! `drumtower import crontab`: a job for each line of a crontab, with the meaning that cron gives it.

mod line;

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};

use super::jobs::{Imported, Names};
use super::{Options, name, read, times, zone};
use crate::failure::Result;
use crate::manifest::Source;
use line::{Entry, Line};

/// Make jobs of a crontab
///
/// Prints manifests, or applies them with --apply; what has no counterpart or means something
/// else is listed, line by line. Understood are the format of users and, with --system, that of
/// /etc/crontab; NAME=value lines, CRON_TZ, SHELL, `%`, and comments, which become descriptions.
/// A line that is not understood is told and left out; the rest is taken, and the exit code is 2.
///
///     crontab -l | drumtower import crontab -
///     drumtower import crontab /etc/crontab --system --prefix web1- --label host=web1
///     crontab -l | drumtower import crontab - --apply
///
/// Jobs keep what cron does: runs may overlap, times that were missed make no run, and failed
/// runs are not tried again. Take `overlap`, `misfire` and `retry` out of the manifests for what
/// is usual here.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Crontab {
    /// The file, or `-` for standard input
    #[arg(value_name = "FILE|-")]
    file: PathBuf,
    /// Lines name a user after the times, as in /etc/crontab and /etc/cron.d
    #[arg(long)]
    system: bool,
    #[command(flatten)]
    options: Options,
}

impl Crontab {
    pub fn run(self) -> Result<()> {
        let source = read(&self.file)?;
        let system = self.system
            || self.file.starts_with("/etc/crontab")
            || self.file.starts_with("/etc/cron.d");
        let imported = import(&source, system, &self.options)?;
        self.options.finish(imported)
    }
}

/// What holds for the lines below it.
struct Context {
    env: BTreeMap<String, String>,
    shell: String,
    /// The line that names a zone which is not known is the fault of all lines below it.
    zone: std::result::Result<String, u64>,
    /// The comment directly above.
    comment: Vec<String>,
}

fn import(source: &Source, system: bool, options: &Options) -> Result<Imported> {
    let mut imported = Imported::new(&source.name);
    let mut names = Names::default();
    let zone = usual_zone(options, &mut imported);
    let mut context = Context {
        env: BTreeMap::new(),
        shell: "/bin/sh".to_owned(),
        zone: Ok(zone),
        comment: Vec::new(),
    };
    for (index, text) in source.text.lines().enumerate() {
        let number = index as u64 + 1;
        match line::read(text, system) {
            Err(message) => imported.fault(number, message),
            Ok(Line::Blank) => context.comment.clear(),
            Ok(Line::Comment(comment)) => context.comment(comment, system),
            Ok(Line::Setting { name, value }) => {
                context.comment.clear();
                context.set(number, name, value, &mut imported);
            }
            Ok(Line::Entry(entry)) => {
                let name = name::of_command(&entry.command);
                let name = names.unique("", &format!("{}{name}", options.prefix));
                let keys = context.job(number, &entry, &name, options, &mut imported);
                if let Some(keys) = keys {
                    imported.add(options, number, keys, false)?;
                }
                context.comment.clear();
            }
        }
    }
    in_general(system, options, &mut imported);
    Ok(imported)
}

/// The zone of lines without `CRON_TZ`: cron goes by the clock of its machine.
fn usual_zone(options: &Options, imported: &mut Imported) -> String {
    if let Some(zone) = &options.timezone {
        return zone.clone();
    }
    match zone::local() {
        Some(zone) => {
            imported.note(
                0,
                format!(
                    "times are read in {zone}, the zone of this machine; --timezone names another"
                ),
            );
            zone
        }
        None => {
            imported.note(
                0,
                "times are read in UTC: this machine's zone has no name; --timezone names another",
            );
            "UTC".to_owned()
        }
    }
}

/// What holds for every job alike is said once.
fn in_general(system: bool, options: &Options, imported: &mut Imported) {
    if imported.documents.is_empty() {
        return;
    }
    imported.note(
        0,
        format!(
            "a run is stopped after {}; cron sets no limit; --timeout names another",
            options.timeout
        ),
    );
    imported.note(0, "runs may overlap, missed times make no run and failed runs are not tried again, as with cron; remove `overlap`, `misfire` and `retry` for what is usual here");
    imported.note(0, "commands run on any worker, in an empty directory of their own unless HOME is set above them; cron runs them in the home directory of their user");
    if system {
        imported.note(0, "`user` needs a worker that runs as root");
    }
}

impl Context {
    /// A comment is a description unless it is a line that was put out of use, or the heading that crontabs come with.
    fn comment(&mut self, comment: String, system: bool) {
        let heading = comment.contains("dom") && comment.contains("dow");
        let entry = matches!(line::read(&comment, system), Ok(Line::Entry(entry)) if times::read(&entry.times, "UTC").is_ok());
        match heading || entry || comment.is_empty() {
            true => self.comment.clear(),
            false => self.comment.push(comment),
        }
    }

    fn set(&mut self, line: u64, name: String, value: String, imported: &mut Imported) {
        match name.as_str() {
            "CRON_TZ" => match zone::is_known(&value) {
                true => {
                    imported.note(line, "CRON_TZ is the zone of the times below, as with cronie; the cron of Debian and Ubuntu does not know it and goes by the machine's: take the line out if yours is that one");
                    self.zone = Ok(value);
                }
                false => {
                    imported.fault(line, format!("`{value}` is not in the time-zone database: use an IANA name such as `Europe/Berlin`"));
                    self.zone = Err(line);
                }
            },
            "TZ" => {
                imported.note(line, "TZ is handed to the commands, as with cron; it does not move their times: CRON_TZ or --timezone does");
                self.env.insert(name, value);
            }
            "SHELL" => self.shell = value,
            "MAILTO" | "MAILFROM" => imported.note(
                line,
                format!("{name} is not carried over: what a command prints is kept as the log of its run"),
            ),
            "RANDOM_DELAY" | "START_HOURS_RANGE" | "CONTENT_TYPE" | "CONTENT_TRANSFER_ENCODING" => {
                imported.note(line, format!("{name} is not carried over"));
            }
            _ => {
                self.env.insert(name, value);
            }
        }
    }

    /// The keys of the job for an entry; `None` when there can be none.
    fn job(
        &self,
        line: u64,
        entry: &Entry,
        name: &str,
        options: &Options,
        imported: &mut Imported,
    ) -> Option<Map<String, Value>> {
        if entry.times.eq_ignore_ascii_case("@reboot") {
            imported.note(line, format!("@reboot makes no job: nothing here happens at the start of a machine; let the system start `{}`", entry.command));
            return None;
        }
        let times = entry.times.to_ascii_lowercase();
        let zone = match &self.zone {
            Ok(zone) => zone,
            Err(setting) => {
                imported.fault(
                    line,
                    format!("its zone is that of line {setting}, which is not known"),
                );
                return None;
            }
        };
        let changes = match times::read(&times, zone) {
            Ok(changes) => changes,
            Err(message) => {
                imported.fault(line, message);
                return None;
            }
        };
        let mut when = json!({"cron": times});
        if !zone::is_utc(zone) {
            when["timezone"] = json!(zone);
        }
        self.suspicions(line, entry, name, imported);
        if changes.gap {
            when["dst_gap"] = json!("at_transition");
            imported.note(line, format!("{name}: at a time that clocks skip it runs when they change, as with cron (dst_gap: at_transition)"));
        }
        if both_days(&times) {
            imported.note(line, format!("{name}: both days are given, and either counts, as with cron; `day_rule: and` asks for both"));
        }
        let keys = json!({
            "name": name,
            "schedule": [when],
            "overlap": "allow",
            "misfire": {"policy": "skip"},
            "retry": {"max_attempts": 1, "max_lost": 1},
            "timeout": options.timeout,
            "task": {"exec": self.exec(entry)},
        });
        let Value::Object(mut keys) = keys else {
            return None;
        };
        if !self.comment.is_empty() {
            keys.insert("description".to_owned(), json!(self.comment.join("\n")));
        }
        Some(keys)
    }

    /// What can be read in two ways.
    fn suspicions(&self, line: u64, entry: &Entry, name: &str, imported: &mut Imported) {
        let first = entry.command.split_whitespace().next().unwrap_or_default();
        if entry.user.is_none() && is_user(first) {
            imported.note(line, format!("{name}: the command begins with `{first}`, which is a user: if this is the format of /etc/crontab, import it with --system"));
        }
        if entry.command.contains("\\\\") {
            imported.note(line, format!("{name}: both backslashes of `\\\\` stay: only `\\%` is an escape, as the manual says; ISC and FreeBSD cron make one of them"));
        }
    }

    fn exec(&self, entry: &Entry) -> Value {
        let mut exec = match self.shell.as_str() {
            "/bin/sh" | "sh" => json!({"shell": entry.command}),
            shell => json!({"argv": [shell, "-c", entry.command]}),
        };
        if !self.env.is_empty() {
            exec["env"] = json!(self.env);
        }
        if let Some(home) = self.env.get("HOME") {
            exec["cwd"] = json!(home);
        }
        if let Some(user) = &entry.user {
            exec["user"] = json!(user);
        }
        if let Some(stdin) = &entry.stdin {
            exec["stdin"] = json!(stdin);
        }
        exec
    }
}

/// Users that systems come with, and those of this machine. No command is called like them.
fn is_user(word: &str) -> bool {
    const USUAL: &[&str] = &["root", "nobody", "daemon", "www-data", "postgres", "mysql"];
    let known = || {
        let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        users
            .lines()
            .any(|line| line.split(':').next() == Some(word))
    };
    let is_command = || {
        let places = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"];
        places
            .iter()
            .any(|place| PathBuf::from(place).join(word).exists())
    };
    USUAL.contains(&word) || (!word.is_empty() && !word.contains('/') && known() && !is_command())
}

fn both_days(times: &str) -> bool {
    let fields: Vec<&str> = times.split(' ').collect();
    let restricted = |at: usize| {
        fields
            .get(at)
            .is_some_and(|field| !field.starts_with(['*', '?']))
    };
    restricted(2) && restricted(4)
}

#[cfg(test)]
mod tests;
