//! One setting: its names, its kind, what holds without it.
//!
//! A value is read by the same rule wherever it comes from; only lists and labels have two spellings, one for TOML and one
//! for variables (`a,b` and `key=value,key=value`).

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value as Json, json};
use toml::de::DeValue;

use crate::duration;

/// A setting that the file, a variable and perhaps a flag can give.
#[derive(Debug)]
pub struct Key {
    /// Its place in the file, such as `log.level`.
    pub path: &'static str,
    pub variable: &'static str,
    pub kind: Kind,
    pub flag: Option<&'static str>,
    /// What holds without it, as a variable would give it.
    pub default: Option<&'static str>,
    /// What holds without it, in words, where that is not one value.
    pub unset: &'static str,
    /// Never shown; a file that holds it must be its owner's alone.
    pub secret: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Text for which the function has no objection.
    Text(fn(&str) -> Result<(), String>),
    /// A file or directory. In the configuration file it is relative to that file.
    Path,
    Address,
    Switch,
    Duration,
    Count {
        least: u64,
        most: u64,
    },
    Choice(&'static [&'static str]),
    /// A list of texts, each without an objection.
    Texts(fn(&str) -> Result<(), String>),
    Labels,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Text(String),
    Path(PathBuf),
    Address(SocketAddr),
    Switch(bool),
    Duration(Duration),
    Count(u64),
    Texts(Vec<String>),
    Labels(BTreeMap<String, String>),
}

/// Text that may be anything but empty.
pub fn any(text: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err("it is empty: remove the key, or give a value".to_owned());
    }
    Ok(())
}

impl Key {
    pub const fn new(path: &'static str, variable: &'static str, kind: Kind) -> Self {
        Self {
            path,
            variable,
            kind,
            flag: None,
            default: None,
            unset: "none",
            secret: false,
        }
    }

    pub const fn flag(self, flag: &'static str) -> Self {
        Self {
            flag: Some(flag),
            ..self
        }
    }

    pub const fn default(self, default: &'static str) -> Self {
        Self {
            default: Some(default),
            ..self
        }
    }

    pub const fn unset(self, unset: &'static str) -> Self {
        Self { unset, ..self }
    }

    pub const fn secret(self) -> Self {
        Self {
            secret: true,
            ..self
        }
    }
}

impl Kind {
    /// Reads what a variable or a default holds.
    pub fn read_text(self, text: &str) -> Result<Value, String> {
        let given = || shown(text);
        match self {
            Self::Text(check) => check(text).map(|()| Value::Text(text.to_owned())),
            Self::Path => any(text).map(|()| Value::Path(PathBuf::from(text))),
            Self::Address => text.parse().map(Value::Address).map_err(|_| {
                format!(
                    "{} is no address and port: write it as `127.0.0.1:7070`",
                    given()
                )
            }),
            Self::Switch => match text {
                "true" | "1" | "yes" => Ok(Value::Switch(true)),
                "false" | "0" | "no" => Ok(Value::Switch(false)),
                _ => Err(format!("{} is neither true nor false", given())),
            },
            Self::Duration => duration::parse(text).map(Value::Duration),
            Self::Count { least, most } => {
                let count = text
                    .parse()
                    .map_err(|_| format!("{} is no whole number", given()))?;
                within(count, least, most)
            }
            Self::Choice(choices) => {
                if choices.contains(&text) {
                    return Ok(Value::Text(text.to_owned()));
                }
                Err(crate::manifest::unknown("value", text, choices))
            }
            Self::Texts(check) => {
                let texts: Vec<String> = pieces(text).map(str::to_owned).collect();
                texts.iter().try_for_each(|text| check(text))?;
                Ok(Value::Texts(texts))
            }
            Self::Labels => pieces(text)
                .map(|piece| match piece.split_once('=') {
                    Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
                    None => Err(format!(
                        "{} is no label: write it as KEY=VALUE",
                        shown(piece)
                    )),
                })
                .collect::<Result<_, _>>()
                .map(Value::Labels),
        }
    }

    /// Reads what the file holds. `beside` is the directory of the file.
    pub fn read_toml(self, value: &DeValue<'_>, beside: &Path) -> Result<Value, String> {
        match (self, value) {
            (Self::Path, DeValue::String(text)) => {
                any(text).map(|()| Value::Path(beside.join(text.as_ref())))
            }
            (Self::Switch, DeValue::Boolean(switch)) => Ok(Value::Switch(*switch)),
            (Self::Count { least, most }, DeValue::Integer(number)) => {
                let count = u64::from_str_radix(number.as_str(), number.radix())
                    .map_err(|_| format!("`{number}` is not between {least} and {most}"))?;
                within(count, least, most)
            }
            (Self::Texts(check), DeValue::Array(items)) => {
                let text = |item: &toml::Spanned<DeValue<'_>>| match item.get_ref() {
                    DeValue::String(text) => check(text).map(|()| text.to_string()),
                    other => Err(format!("holds {}, expected text", found(other))),
                };
                items
                    .iter()
                    .map(text)
                    .collect::<Result<_, _>>()
                    .map(Value::Texts)
            }
            (Self::Labels, DeValue::Table(table)) => table
                .iter()
                .map(|(key, value)| match value.get_ref() {
                    DeValue::String(text) => Ok((key.get_ref().to_string(), text.to_string())),
                    other => Err(format!(
                        "`{}` is {}, expected text",
                        key.get_ref(),
                        found(other)
                    )),
                })
                .collect::<Result<_, _>>()
                .map(Value::Labels),
            (
                Self::Text(_) | Self::Address | Self::Duration | Self::Choice(_),
                DeValue::String(text),
            ) => self.read_text(text),
            (_, other) => Err(format!("found {}, expected {}", found(other), self.words())),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Text(_) | Self::Choice(_) => "text in quotes",
            Self::Path => "a path in quotes",
            Self::Address => "an address and port in quotes",
            Self::Switch => "true or false",
            Self::Duration => "a duration in quotes, such as \"30s\"",
            Self::Count { .. } => "a whole number",
            Self::Texts(_) => "a list of texts",
            Self::Labels => "a table of texts, such as { zone = \"a\" }",
        }
    }
}

fn within(count: u64, least: u64, most: u64) -> Result<Value, String> {
    if (least..=most).contains(&count) {
        Ok(Value::Count(count))
    } else {
        Err(format!("`{count}` is not between {least} and {most}"))
    }
}

fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split(',')
        .map(str::trim)
        .filter(|piece| !piece.is_empty())
}

fn found(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => shown(text),
        DeValue::Integer(number) => format!("the number {number}"),
        DeValue::Float(number) => format!("the number {number}"),
        DeValue::Boolean(switch) => format!("`{switch}`"),
        DeValue::Datetime(_) => "a time".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// What was given, as far as it fits in a message.
fn shown(text: &str) -> String {
    let short: String = text.chars().take(64).collect();
    let dots = if short.len() < text.len() { "…" } else { "" };
    format!("`{}{dots}`", short.escape_debug())
}

impl Value {
    /// As it stands in JSON.
    pub fn json(&self) -> Json {
        match self {
            Self::Text(text) => json!(text),
            Self::Path(path) => json!(path.display().to_string()),
            Self::Address(address) => json!(address.to_string()),
            Self::Switch(switch) => json!(switch),
            Self::Duration(duration) => json!(duration::words(*duration)),
            Self::Count(count) => json!(count),
            Self::Texts(texts) => json!(texts),
            Self::Labels(labels) => json!(labels),
        }
    }
}

/// As it stands in TOML.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // A basic string of TOML has the escapes of JSON.
            Self::Labels(labels) if labels.is_empty() => f.write_str("{}"),
            Self::Labels(labels) => {
                let pairs: Vec<String> = labels
                    .iter()
                    .map(|(key, value)| format!("{} = {}", json!(key), json!(value)))
                    .collect();
                write!(f, "{{ {} }}", pairs.join(", "))
            }
            other => write!(f, "{}", other.json()),
        }
    }
}
