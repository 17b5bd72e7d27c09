//! The values in force, each with its origin.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::file::Said;
use super::key::{Key, Value};
use super::keys;
use crate::failure::{Failure, Result};

/// What the command line gave.
#[derive(Debug, Default)]
pub struct Given(BTreeMap<&'static str, Value>);

impl Given {
    pub fn path(self, key: &'static str, path: Option<&PathBuf>) -> Self {
        self.set(key, path.cloned().map(Value::Path))
    }

    pub fn text(self, key: &'static str, text: Option<impl ToString>) -> Self {
        self.set(key, text.map(|text| Value::Text(text.to_string())))
    }

    pub fn switch(self, key: &'static str, on: bool) -> Self {
        self.set(key, on.then_some(Value::Switch(true)))
    }

    pub fn set(mut self, key: &'static str, value: Option<Value>) -> Self {
        if let Some(value) = value {
            self.0.insert(key, value);
        }
        self
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Flag(&'static str),
    Variable(&'static str),
    /// The line in the file.
    File(usize),
    Default,
}

impl Origin {
    /// Whether what was said here wins over what was said there.
    pub fn wins_over(self, other: Self) -> bool {
        let rank = |origin| match origin {
            Self::Flag(_) => 3,
            Self::Variable(_) => 2,
            Self::File(_) => 1,
            Self::Default => 0,
        };
        rank(self) > rank(other)
    }
}

#[derive(Debug)]
pub struct Settings {
    values: BTreeMap<&'static str, (Value, Origin)>,
    /// The file that was read.
    pub file: Option<PathBuf>,
}

impl Settings {
    /// What flags and variables say. `variable` looks one up.
    pub fn of(mut given: Given, variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let mut values = BTreeMap::new();
        for key in keys() {
            let from_variable = match variable(key.variable).filter(|text| !text.trim().is_empty())
            {
                Some(text) => Some(read_variable(key, &text)?),
                None => None,
            };
            // The parser of flags looks at variables too, so an equal value may be either's; both are true.
            let found = match (given.0.remove(key.path), from_variable) {
                (Some(flag), Some(variable)) if flag == variable => {
                    (variable, Origin::Variable(key.variable))
                }
                (Some(flag), _) => (flag, Origin::Flag(key.flag.unwrap_or(key.path))),
                (None, Some(variable)) => (variable, Origin::Variable(key.variable)),
                (None, None) => continue,
            };
            values.insert(key.path, found);
        }
        debug_assert!(
            given.0.is_empty(),
            "flags for keys that do not exist: {given:?}"
        );
        Ok(Self { values, file: None })
    }

    /// Adds what the file says where nothing else has spoken.
    pub fn add_file(&mut self, path: PathBuf, said: Said) {
        for (key, (value, line)) in said {
            self.values
                .entry(key)
                .or_insert((value, Origin::File(line)));
        }
        self.file = Some(path);
    }

    /// The value in force. `None` where nothing was given and no single value holds by itself.
    fn get(&self, path: &str) -> Option<Value> {
        if let Some((value, _)) = self.values.get(path) {
            return Some(value.clone());
        }
        let key = keys().find(|key| key.path == path);
        let default = key.and_then(|key| key.default)?;
        key?.kind.read_text(default).ok()
    }

    pub fn origin(&self, path: &str) -> Origin {
        self.values
            .get(path)
            .map_or(Origin::Default, |(_, origin)| *origin)
    }

    pub fn text(&self, path: &str) -> Option<String> {
        match self.get(path) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// A path that was given; paths have no defaults of one value.
    pub fn path(&self, path: &str) -> Option<&Path> {
        match self.values.get(path) {
            Some((Value::Path(path), _)) => Some(path),
            _ => None,
        }
    }

    pub fn address(&self, path: &str) -> Option<SocketAddr> {
        match self.get(path) {
            Some(Value::Address(address)) => Some(address),
            _ => None,
        }
    }

    pub fn switch(&self, path: &str) -> bool {
        self.get(path) == Some(Value::Switch(true))
    }

    pub fn duration(&self, path: &str) -> Option<Duration> {
        match self.get(path) {
            Some(Value::Duration(duration)) => Some(duration),
            _ => None,
        }
    }

    pub fn count(&self, path: &str) -> Option<u64> {
        match self.get(path) {
            Some(Value::Count(count)) => Some(count),
            _ => None,
        }
    }

    pub fn labels(&self, path: &str) -> BTreeMap<String, String> {
        match self.get(path) {
            Some(Value::Labels(labels)) => labels,
            _ => BTreeMap::new(),
        }
    }

    pub fn texts(&self, path: &str) -> Vec<String> {
        match self.get(path) {
            Some(Value::Texts(texts)) => texts,
            _ => Vec::new(),
        }
    }

    /// Secrets that others could read, in words.
    pub fn warnings(&self) -> Vec<String> {
        let holds_secret =
            |key: &&Key| key.secret && matches!(self.origin(key.path), Origin::File(_));
        let mut exposed: Vec<String> = Vec::new();
        if let (Some(file), Some(key)) = (&self.file, keys().find(holds_secret))
            && others_can_read(file)
        {
            exposed.push(format!(
                "{} holds {} and other users can read it: chmod 600 {0}",
                file.display(),
                key.path
            ));
        }
        for key in keys().filter(|key| key.path.ends_with("_file")) {
            if let Some(path) = self.path(key.path).filter(|path| others_can_read(path)) {
                exposed.push(format!(
                    "{} ({}) can be read by other users: chmod 600 {0}",
                    path.display(),
                    key.path
                ));
            }
        }
        exposed
    }

    /// Every key with its value and its origin.
    pub fn listing(&self) -> Vec<Json> {
        keys().map(|key| self.line(key)).collect()
    }

    fn line(&self, key: &Key) -> Json {
        let value = self.get(key.path);
        let json = match &value {
            Some(_) if key.secret => json!("…"),
            Some(value) => value.json(),
            None => Json::Null,
        };
        let shown = match &value {
            Some(_) if key.secret => "…".to_owned(),
            Some(value) => value.to_string(),
            None => key.unset.to_owned(),
        };
        let (from, place) = match self.origin(key.path) {
            Origin::Flag(flag) => ("flag", flag.to_owned()),
            Origin::Variable(name) => ("variable", name.to_owned()),
            Origin::File(line) => {
                let file = self.file.as_deref().unwrap_or(Path::new(""));
                ("file", format!("{}:{line}", file.display()))
            }
            Origin::Default => ("default", String::new()),
        };
        json!({"key": key.path, "value": json, "shown": shown, "from": from, "place": place})
    }
}

fn read_variable(key: &Key, text: &str) -> Result<Value> {
    key.kind
        .read_text(text)
        .map_err(|message| Failure::usage(format!("{}: {message}", key.variable)))
}

#[cfg(unix)]
fn others_can_read(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|data| data.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn others_can_read(_: &Path) -> bool {
    false
}
