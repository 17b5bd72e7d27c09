//! Manifests: YAML files in, jobs, calendars and queues out, or every fault with its file, line, column and key.
//!
//! A file may hold several documents. Nothing is sent anywhere before everything was understood, and all faults are
//! reported at once. What types alone do not check is checked here too, so that the line can be named; the server checks
//! again.

mod fault;
mod places;
mod source;

use drumtower_core::model::{CalendarSpec, JobSpec, QueueSpec, SpecError};
use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::Error;

use crate::client::segment;
use crate::failure::Failure;

use fault::describe;
pub use fault::{Fault, unknown};
pub use places::Places;
pub use source::{Source, collect};

/// What a manifest gives, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub spec: Spec,
    /// A job shall be made paused. No manifest says so; what is imported may.
    pub paused: bool,
    file: String,
    line: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Spec {
    Job(Box<JobSpec>),
    Calendar(CalendarSpec),
    Queue(QueueSpec),
}

impl Document {
    /// A document that was not read from a file of its own; `place` says where it came from.
    pub fn made(spec: Spec, file: String, line: u64) -> Self {
        Self {
            spec,
            paused: false,
            file,
            line,
        }
    }

    /// Its kind, namespace and name.
    pub fn address(&self) -> (Kind, String, String) {
        match &self.spec {
            Spec::Job(spec) => (Kind::Job, spec.namespace.to_string(), spec.name.to_string()),
            Spec::Calendar(spec) => (
                Kind::Calendar,
                spec.namespace.to_string(),
                spec.name.to_string(),
            ),
            Spec::Queue(spec) => (
                Kind::Queue,
                spec.namespace.to_string(),
                spec.name.to_string(),
            ),
        }
    }

    /// As the API takes it.
    pub fn body(&self) -> crate::failure::Result<Value> {
        let body = match &self.spec {
            Spec::Job(spec) => serde_json::to_value(spec),
            Spec::Calendar(spec) => serde_json::to_value(spec),
            Spec::Queue(spec) => serde_json::to_value(spec),
        };
        body.map_err(|error| Failure::failed(format!("{}: {error}", self.place())))
    }

    /// As people write it, keys in the order of the documentation.
    pub fn yaml(&self) -> crate::failure::Result<String> {
        let yaml = match &self.spec {
            Spec::Job(spec) => serde_saphyr::to_string(spec),
            Spec::Calendar(spec) => serde_saphyr::to_string(spec),
            Spec::Queue(spec) => serde_saphyr::to_string(spec),
        };
        yaml.map_err(|error| {
            Failure::failed(format!("{} has no form in YAML: {error}", self.title()))
        })
    }

    /// Its kind and its full name, as people are told of it.
    pub fn title(&self) -> String {
        let (kind, namespace, name) = self.address();
        format!("{} {namespace}/{name}", kind.noun())
    }

    /// The file and the line that it begins at.
    pub fn place(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }
}

/// All that is read of a document before its kind is known.
#[derive(Deserialize)]
struct Peek {
    #[serde(default)]
    kind: Option<Kind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Kind {
    Job,
    Calendar,
    Queue,
}

impl Kind {
    /// As in a manifest.
    pub fn name(self) -> &'static str {
        match self {
            Self::Job => "Job",
            Self::Calendar => "Calendar",
            Self::Queue => "Queue",
        }
    }

    pub fn noun(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::Calendar => "calendar",
            Self::Queue => "queue",
        }
    }

    /// The address of one of them in the API.
    pub fn path(self, namespace: &str, name: &str) -> String {
        let (namespace, name) = (segment(namespace), segment(name));
        format!("/api/v1/namespaces/{namespace}/{}s/{name}", self.noun())
    }

    /// The ETag of what the API showed.
    pub fn etag(self, object: &Value) -> String {
        match self {
            Self::Job => format!("\"{}\"", object["revision"]),
            Self::Calendar => format!("\"v{}\"", object["version"]),
            Self::Queue => format!("\"q{}\"", object["revision"]),
        }
    }
}

/// Reads every document of a file. The first list is of use only if the second is empty.
pub fn parse(source: &Source) -> (Vec<Document>, Vec<Fault>) {
    let mut documents = Vec::new();
    let mut faults = Vec::new();
    let mut places = read::<Places>(&source.text);
    let mut jobs = read::<JobSpec>(&source.text);
    let mut calendars = read::<CalendarSpec>(&source.text);
    let mut queues = read::<QueueSpec>(&source.text);
    for peek in read::<Peek>(&source.text) {
        let places = places.next().and_then(Result::ok);
        let (job, calendar, queue) = (jobs.next(), calendars.next(), queues.next());
        let read = match (peek, job, calendar, queue) {
            (Err(error), ..) => Err(error),
            (Ok(Peek { kind: None }), ..) => {
                faults.push(kindless(source, places.as_ref()));
                continue;
            }
            (
                Ok(Peek {
                    kind: Some(Kind::Calendar),
                }),
                _,
                Some(calendar),
                _,
            ) => calendar.map(Spec::Calendar),
            (
                Ok(Peek {
                    kind: Some(Kind::Job),
                }),
                Some(job),
                ..,
            ) => job.map(|spec| Spec::Job(Box::new(spec))),
            (
                Ok(Peek {
                    kind: Some(Kind::Queue),
                }),
                ..,
                Some(queue),
            ) => queue.map(Spec::Queue),
            _ => continue,
        };
        let read = read.map_err(|error| describe(source, &error, places.as_ref()));
        let read = read.and_then(|spec| numbers(source, spec, places.as_ref()));
        match read.and_then(|spec| check(source, spec, places.as_ref())) {
            Ok(spec) => documents.push(Document::made(
                spec,
                source.name.clone(),
                places.map_or(1, |places| places.line()),
            )),
            Err(fault) => faults.push(fault),
        }
    }
    (documents, faults)
}

/// Where the keys of each document stand; `None` of one that cannot be read.
pub fn places_of(text: &str) -> Vec<Option<Places>> {
    read::<Places>(text).map(Result::ok).collect()
}

/// Each document as it is, or why it cannot be read.
pub fn values_of(source: &Source) -> Vec<Result<Value, Fault>> {
    let values = read::<Value>(&source.text);
    let values = values.map(|value| value.map_err(|error| describe(source, &error, None)));
    values.collect()
}

fn kindless(source: &Source, places: Option<&Places>) -> Fault {
    Fault {
        file: source.name.clone(),
        line: places.map_or(1, Places::line),
        column: 1,
        field: None,
        message: "`kind` is missing: write `kind: Job`, `kind: Calendar` or `kind: Queue`"
            .to_owned(),
    }
}

fn read<'a, T: serde::de::DeserializeOwned + 'a>(
    text: &'a str,
) -> impl Iterator<Item = Result<T, Error>> + 'a {
    // The iterator borrows its reader for as long as it lives, so the reader must outlive this call.
    let mut parsed = Vec::new();
    let mut bytes = text.as_bytes();
    // Of YAML 1.2: `NO` and `on` are words. The text is in memory already and has its own bound.
    let options = serde_saphyr::options! {
        strict_booleans: true,
        budget: serde_saphyr::budget! { max_reader_input_bytes: None },
    };
    for document in serde_saphyr::read_with_options(&mut bytes, options) {
        parsed.push(document);
    }
    parsed.into_iter()
}

/// Refuses numbers in parameters that would become others: digits with a zero in front, and more digits than are kept.
fn numbers(source: &Source, spec: Spec, places: Option<&Places>) -> Result<Spec, Fault> {
    let changed = places.and_then(|places| places.changed_number("params", &source.text));
    let Some((field, line, column, digits)) = changed else {
        return Ok(spec);
    };
    Err(Fault {
        file: source.name.clone(),
        line,
        column,
        field: Some(field),
        message: format!(
            "`{digits}` would not be kept as it is written: put it in quotes to make it text"
        ),
    })
}

fn check(source: &Source, spec: Spec, places: Option<&Places>) -> Result<Spec, Fault> {
    let checked: Result<(), SpecError> = match &spec {
        Spec::Job(spec) => spec.check(),
        Spec::Calendar(spec) => spec.days().map(|_| ()),
        Spec::Queue(spec) => spec.limits().map(|_| ()),
    };
    let Err(error) = checked else {
        return Ok(spec);
    };
    let (line, column) = places
        .and_then(|places| places.of(&error.field))
        .unwrap_or_default();
    Err(Fault {
        file: source.name.clone(),
        line,
        column,
        field: Some(error.field),
        message: error.message,
    })
}

#[cfg(test)]
mod broken;
#[cfg(test)]
mod tests;
