//! `drumtower calendar`: named sets of days that schedules share.

use clap::{Args, Subcommand};
use drumtower_core::model::NamespaceName;
use serde_json::{Value, json};
use ureq::http::Method;

use crate::apply::{Apply, Telling};
use crate::client::{Call, Client, segment};
use crate::connect::Connect;
use crate::failure::Result;
use crate::output::{self, Cell, Column, Output, View, text};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make or change calendars and jobs from YAML files
    ///
    /// As `drumtower job apply`: files may hold all kinds, and jobs are sent last.
    /// A changed calendar is in force for the times after the change; jobs that use it are
    /// planned anew in the background, and `calendar show` says how far that is.
    ///
    ///     drumtower calendar apply -f - <<'EOF'
    ///     kind: Calendar
    ///     name: holidays
    ///     include: [12-25, 12-26, 2026-10-01..2026-10-07]
    ///     EOF
    ///
    /// `drumtower schema calendar` prints everything that a manifest may say.
    #[command(verbatim_doc_comment)]
    Apply(Apply),
    List(List),
    Show(Show),
    /// Show the versions of a calendar, the newest first
    ///
    /// Those of a deleted calendar are kept too: they explain the past.
    ///
    ///     drumtower calendar versions holidays
    #[command(verbatim_doc_comment)]
    Versions(Show),
    /// Delete calendars that no job uses
    ///
    ///     drumtower calendar delete holidays
    #[command(verbatim_doc_comment)]
    Delete(Delete),
}

/// List calendars
///
/// Without -n the calendars of every namespace that the token may see.
///
///     drumtower calendar list
///     drumtower calendar list -n billing
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct List {
    /// Only calendars of this namespace
    #[arg(short, long, env = "DRUMTOWER_NAMESPACE")]
    namespace: Option<NamespaceName>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

/// Show one calendar: its days, the jobs that use it, and how far they are planned anew
///
///     drumtower calendar show holidays
///     drumtower calendar show holidays -o yaml
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Show {
    /// The calendar's name
    name: String,
    #[command(flatten)]
    namespace: Namespace,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

#[derive(Args, Debug)]
pub struct Delete {
    /// The names of the calendars
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    namespace: Namespace,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

#[derive(Args, Clone, Debug)]
pub struct Namespace {
    /// The namespace of the calendar
    #[arg(short, long, env = "DRUMTOWER_NAMESPACE", default_value = "default")]
    namespace: NamespaceName,
}

const COLUMNS: &[Column] = &[
    Column {
        head: "NAMESPACE",
        cell: |calendar| Cell::text(calendar, "namespace"),
    },
    Column {
        head: "NAME",
        cell: |calendar| Cell::text(calendar, "name"),
    },
    Column {
        head: "DAYS",
        cell: |calendar| Cell::Text(days(calendar)),
    },
    Column {
        head: "VERSION",
        cell: |calendar| Cell::text(calendar, "version"),
    },
    Column {
        head: "CHANGED",
        cell: |calendar| Cell::time(calendar, "created"),
    },
];

const VERSION_COLUMNS: &[Column] = &[
    Column {
        head: "VERSION",
        cell: |version| Cell::text(version, "version"),
    },
    Column {
        head: "MADE",
        cell: |version| Cell::time(version, "created"),
    },
    Column {
        head: "BY",
        cell: |version| Cell::text(version, "actor"),
    },
    Column {
        head: "DAYS",
        cell: |version| match version["deleted"] == true {
            true => Cell::Text("deleted".to_owned()),
            false => Cell::Text(days(version)),
        },
    },
];

pub fn run(command: Command) -> Result<()> {
    match command {
        Command::Apply(apply) => apply.run(Telling::Lines),
        Command::List(list) => list.run(),
        Command::Show(show) => show.run(),
        Command::Versions(show) => show.versions(),
        Command::Delete(delete) => delete.run(),
    }
}

/// The address of a calendar.
pub fn path(namespace: &NamespaceName, name: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/calendars/{}", segment(name))
}

/// The days of a calendar in one line, such as `mon-fri less 12 entries`.
fn days(calendar: &Value) -> String {
    let list = |key: &str| {
        let items = calendar.pointer(&format!("/spec/{key}"));
        let items = items.and_then(Value::as_array).into_iter().flatten();
        items.filter_map(Value::as_str).collect::<Vec<_>>()
    };
    let some = |items: Vec<&str>| match items.len() {
        0..=3 => items.join(", "),
        count => format!("{count} entries"),
    };
    let mut words = week(&list("weekly"));
    let (include, exclude) = (list("include"), list("exclude"));
    if !exclude.is_empty() {
        words = format!("{words} less {}", some(exclude));
    }
    match (words.is_empty(), include.is_empty()) {
        (true, true) => "no day".to_owned(),
        (true, false) => some(include),
        (false, true) => words,
        (false, false) => format!("{words} and {}", some(include)),
    }
}

/// Days of the week, those that follow each other as a range.
fn week(given: &[&str]) -> String {
    const WEEK: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    let has = |day: usize| given.contains(&WEEK[day]);
    let mut parts = Vec::new();
    let mut day = 0;
    while day < 7 {
        let first = day;
        while day < 7 && has(day) {
            day += 1;
        }
        match day - first {
            0 => day += 1,
            1 => parts.push(WEEK[first].to_owned()),
            _ => parts.push(format!("{}-{}", WEEK[first], WEEK[day - 1])),
        }
    }
    parts.join(", ")
}

impl List {
    fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let page = || Call::get("/api/v1/calendars").maybe("namespace", self.namespace.as_ref());
        self.output.list(
            client.list(page, None)?,
            COLUMNS,
            "no calendars; make one with `drumtower calendar apply -f FILE`",
        )
    }
}

impl Show {
    fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let calendar = client.value(Call::get(path(&self.namespace.namespace, &self.name)))?;
        self.output.one(&calendar, |view| describe(&calendar, view))
    }

    fn versions(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let path = format!("{}/versions", path(&self.namespace.namespace, &self.name));
        let versions = client.list(|| Call::get(&path), None)?;
        self.output.list(versions, VERSION_COLUMNS, "")
    }
}

impl Delete {
    fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let namespace = &self.namespace.namespace;
        for name in &self.names {
            client.send(Call::new(Method::DELETE, path(namespace, name)))?;
            let deleted = json!({"namespace": namespace, "name": name, "deleted": true});
            self.output.one(&deleted, |_| {
                format!("calendar {namespace}/{name} deleted\n")
            })?;
        }
        Ok(())
    }
}

/// A calendar in words.
fn describe(calendar: &Value, view: View) -> String {
    let time = |field: &str| Cell::time(calendar, field).words(view);
    let list = |pointer: &str| {
        let items = calendar.pointer(pointer).and_then(Value::as_array);
        let items = items.into_iter().flatten().filter_map(Value::as_str);
        items.collect::<Vec<_>>().join(", ")
    };
    let mut lines = vec![
        (
            "name",
            format!("{}/{}", text(calendar, "namespace"), text(calendar, "name")),
        ),
        ("version", text(calendar, "version")),
        (
            "changed",
            format!("{} by {}", time("created"), text(calendar, "actor")),
        ),
    ];
    let told = [
        ("description", text(calendar, "spec.description")),
        ("weekly", list("/spec/weekly")),
        ("include", list("/spec/include")),
        ("exclude", list("/spec/exclude")),
        ("days ahead", list("/days_ahead")),
    ];
    lines.extend(told.into_iter().filter(|(_, words)| !words.is_empty()));
    lines.push(("jobs", text(calendar, "jobs")));
    if calendar["replan"].is_object() {
        let (looked, changed) = (
            text(calendar, "replan.looked"),
            text(calendar, "replan.changed"),
        );
        let state = match calendar["replan"]["finished"].is_null() {
            true => format!("going on since {}", time("replan.started")),
            false => format!("done {}", time("replan.finished")),
        };
        lines.push((
            "replanning",
            format!("{state}: {looked} jobs looked at, {changed} changed"),
        ));
    }
    output::pairs(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_read_in_one_line() {
        let line = |spec: Value| days(&json!({"spec": spec}));
        let week = ["mon", "tue", "wed", "thu", "fri"];
        assert_eq!(line(json!({"weekly": week})), "mon-fri");
        assert_eq!(
            line(json!({"weekly": week, "exclude": ["12-25"], "include": ["2026-10-10"]})),
            "mon-fri less 12-25 and 2026-10-10"
        );
        assert_eq!(
            line(json!({"weekly": ["sun", "wed", "sat"]})),
            "wed, sat-sun"
        );
        assert_eq!(
            line(json!({"include": ["01-01", "05-01", "12-24", "12-25"]})),
            "4 entries"
        );
        assert_eq!(line(json!({})), "no day");
    }
}
