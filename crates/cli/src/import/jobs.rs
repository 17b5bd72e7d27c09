//! The jobs that an import makes, and what is to be said about them.

use std::collections::BTreeSet;

use drumtower_core::model::JobSpec;
use serde_json::{Map, Value, json};

use super::Options;
use crate::failure::Result;
use crate::job::pairs;
use crate::manifest::{Document, Spec};

/// Something to know, and the line that it is about; 0 when it is about the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub line: u64,
    pub text: String,
}

impl Note {
    pub fn new(line: u64, text: impl Into<String>) -> Self {
        Self {
            line,
            text: text.into(),
        }
    }

    pub fn at(&self, source: &str) -> String {
        match self.line {
            0 => format!("{source}: {}", self.text),
            line => format!("{source}:{line}: {}", self.text),
        }
    }
}

#[derive(Debug)]
pub struct Imported {
    pub source: String,
    pub documents: Vec<Document>,
    /// What has no counterpart or means something else.
    pub notes: Vec<Note>,
    /// What cannot be understood and is left out.
    pub faults: Vec<Note>,
}

impl Imported {
    pub fn new(source: &str) -> Self {
        Self {
            source: source.to_owned(),
            documents: Vec::new(),
            notes: Vec::new(),
            faults: Vec::new(),
        }
    }

    pub fn note(&mut self, line: u64, text: impl Into<String>) {
        self.notes.push(Note::new(line, text));
    }

    pub fn fault(&mut self, line: u64, text: impl Into<String>) {
        self.faults.push(Note::new(line, text));
    }

    /// Makes a job of a manifest's keys, with what the flags add. A manifest that is refused is a fault of its line.
    pub fn add(
        &mut self,
        options: &Options,
        line: u64,
        mut keys: Map<String, Value>,
        paused: bool,
    ) -> Result<()> {
        keys.insert("kind".to_owned(), json!("Job"));
        let named = keys.get("namespace").and_then(Value::as_str);
        let namespace = options.namespace_of(named)?;
        keys.insert("namespace".to_owned(), json!(namespace));
        let given = pairs("--label", &options.labels)?;
        if !given.is_empty() {
            let labels = keys.entry("labels").or_insert_with(|| json!({}));
            for (key, value) in given {
                labels[key] = value;
            }
        }
        let read = serde_json::from_value::<JobSpec>(Value::Object(keys));
        let read = read.map_err(|error| error.to_string());
        match read.and_then(|spec| {
            spec.check()
                .map(|()| spec)
                .map_err(|error| error.to_string())
        }) {
            Ok(spec) => {
                let spec = Spec::Job(Box::new(spec));
                let mut document = Document::made(spec, self.source.clone(), line);
                document.paused = paused;
                self.documents.push(document);
            }
            Err(message) => self.fault(line, message),
        }
        Ok(())
    }
}

/// Names that were given already, each in its namespace.
#[derive(Debug, Default)]
pub struct Names(BTreeSet<(String, String)>);

impl Names {
    /// The name itself, or with the first number that makes it another.
    pub fn unique(&mut self, namespace: &str, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        let mut number = 1_u64;
        while !self.0.insert((namespace.to_owned(), name.clone())) {
            number += 1;
            let end = format!("-{number}");
            let room = super::name::MOST.saturating_sub(end.len());
            let start: String = wanted.chars().take(room).collect();
            name = format!("{start}{end}");
        }
        name
    }
}
