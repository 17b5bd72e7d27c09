//! The file: found, read, and every fault in it with its line and column.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::key::{Key, Value};
use super::keys;
use crate::manifest::{Fault, unknown};

/// The name of the file in a data directory.
pub const NAME: &str = "drumtower.toml";
/// Where it is looked for last.
const SYSTEM: &str = "/etc/drumtower/drumtower.toml";
/// Nobody writes more by hand.
const MOST_BYTES: u64 = 1024 * 1024;

/// What the file says: each key that it gives, with the line.
pub type Said = BTreeMap<&'static str, (Value, usize)>;

/// The file to read when none was named: the one in the data directory, or the system's.
pub fn find(data: Option<&Path>) -> Option<PathBuf> {
    looked_at(data).find(|path| path.is_file())
}

/// Where [`find`] looks, in words.
pub fn places(data: Option<&Path>) -> String {
    let places: Vec<String> = looked_at(data)
        .map(|path| path.display().to_string())
        .collect();
    places.join(" or ")
}

fn looked_at(data: Option<&Path>) -> impl Iterator<Item = PathBuf> {
    let own = data.map(|data| data.join(NAME));
    own.into_iter().chain([PathBuf::from(SYSTEM)])
}

pub fn load(path: &Path) -> Result<Said, Vec<Fault>> {
    let wrong = |message: String| vec![fault(path, "", 0, None, message)];
    let size = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?;
    if size.len() > MOST_BYTES {
        return Err(wrong(format!(
            "it has {} bytes: a configuration has at most {MOST_BYTES}",
            size.len()
        )));
    }
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    parse(path, &text)
}

pub fn parse(path: &Path, text: &str) -> Result<Said, Vec<Fault>> {
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        vec![fault(path, text, at, None, error.message().to_owned())]
    })?;
    let mut reading = Reading {
        path,
        text,
        beside: path.parent().unwrap_or(Path::new("")),
        said: Said::new(),
        faults: Vec::new(),
    };
    reading.table("", table.get_ref());
    if reading.faults.is_empty() {
        Ok(reading.said)
    } else {
        Err(reading.faults)
    }
}

struct Reading<'a> {
    path: &'a Path,
    text: &'a str,
    beside: &'a Path,
    said: Said,
    faults: Vec<Fault>,
}

impl Reading<'_> {
    fn table(&mut self, section: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let path = match section {
                "" => name.get_ref().to_string(),
                section => format!("{section}.{}", name.get_ref()),
            };
            let at = name.span().start;
            if let Some(key) = keys().find(|key| key.path == path) {
                self.value(key, at, value);
            } else if let (DeValue::Table(inner), true) = (value.get_ref(), is_section(&path)) {
                self.table(&path, inner);
            } else if is_section(&path) {
                self.fault(
                    at,
                    None,
                    format!("`{path}` is a section: write [{path}] and its keys below"),
                );
            } else {
                let section = Some(section.to_owned()).filter(|section| !section.is_empty());
                let message = unknown("key", name.get_ref(), &names_in(section.as_deref()));
                self.fault(at, section, message);
            }
        }
    }

    fn value(&mut self, key: &'static Key, at: usize, value: &toml::Spanned<DeValue<'_>>) {
        match key.kind.read_toml(value.get_ref(), self.beside) {
            Ok(read) => {
                let line = place(self.text, at).0;
                self.said.insert(key.path, (read, line));
            }
            Err(message) => {
                self.fault(value.span().start, Some(key.path.to_owned()), message);
            }
        }
    }

    fn fault(&mut self, at: usize, field: Option<String>, message: String) {
        self.faults
            .push(fault(self.path, self.text, at, field, message));
    }
}

fn is_section(path: &str) -> bool {
    keys().any(|key| {
        key.path
            .strip_prefix(path)
            .is_some_and(|rest| rest.starts_with('.'))
    })
}

/// What may stand in a section: its keys, and for the file itself the sections too.
fn names_in(section: Option<&str>) -> Vec<&'static str> {
    let mut names: Vec<&str> = keys()
        .filter_map(|key| match section {
            None => key.path.split('.').next(),
            Some(section) => key.path.strip_prefix(section)?.strip_prefix('.'),
        })
        .collect();
    names.dedup();
    names
}

fn fault(path: &Path, text: &str, at: usize, field: Option<String>, message: String) -> Fault {
    let (line, column) = if text.is_empty() {
        (0, 0)
    } else {
        place(text, at)
    };
    Fault {
        file: path.display().to_string(),
        line: line as u64,
        column: column as u64,
        field,
        message,
    }
}

/// Line and column of a byte, both from 1.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    (line, column)
}
