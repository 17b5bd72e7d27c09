//! Manifests: YAML files in, jobs and calendars out, or every fault with its file, line, column and key.
//!
//! A file may hold several documents. Nothing is sent anywhere before everything was understood, and all faults are
//! reported at once. What types alone do not check is checked here too, so that the line can be named; the server checks
//! again.

mod places;
mod source;

use std::fmt;

use drumtower_core::model::{CalendarSpec, JobSpec, SpecError};
use serde::Deserialize;
use serde_saphyr::Error;

use places::Places;
pub use source::{Source, collect};

/// What a manifest gives, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub spec: Spec,
    file: String,
    line: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Spec {
    Job(Box<JobSpec>),
    Calendar(CalendarSpec),
}

impl Document {
    /// Its kind and its full name, as people are told of it.
    pub fn title(&self) -> String {
        match &self.spec {
            Spec::Job(spec) => format!("job {}/{}", spec.namespace, spec.name),
            Spec::Calendar(spec) => format!("calendar {}/{}", spec.namespace, spec.name),
        }
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

#[derive(Clone, Copy, Deserialize)]
enum Kind {
    Job,
    Calendar,
}

/// Something in a file that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub file: String,
    /// From 1; 0 when unknown.
    pub line: u64,
    pub column: u64,
    /// The key it concerns, such as `task.exec.argv`.
    pub field: Option<String>,
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        match &self.field {
            Some(field) => write!(f, ": {field}: {}", self.message),
            None => write!(f, ": {}", self.message),
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
    for peek in read::<Peek>(&source.text) {
        let places = places.next().and_then(Result::ok);
        let (job, calendar) = (jobs.next(), calendars.next());
        let read = match (peek, job, calendar) {
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
            ) => calendar.map(Spec::Calendar),
            (
                Ok(Peek {
                    kind: Some(Kind::Job),
                }),
                Some(job),
                _,
            ) => job.map(|spec| Spec::Job(Box::new(spec))),
            _ => continue,
        };
        let read = read.map_err(|error| describe(source, &error, places.as_ref()));
        match read.and_then(|spec| check(source, spec, places.as_ref())) {
            Ok(spec) => documents.push(Document {
                spec,
                file: source.name.clone(),
                line: places.map_or(1, |places| places.line()),
            }),
            Err(fault) => faults.push(fault),
        }
    }
    (documents, faults)
}

fn kindless(source: &Source, places: Option<&Places>) -> Fault {
    Fault {
        file: source.name.clone(),
        line: places.map_or(1, Places::line),
        column: 1,
        field: None,
        message: "`kind` is missing: write `kind: Job` or `kind: Calendar`".to_owned(),
    }
}

fn read<'a, T: serde::de::DeserializeOwned + 'a>(
    text: &'a str,
) -> impl Iterator<Item = Result<T, Error>> + 'a {
    // The iterator borrows its reader for as long as it lives, so the reader must outlive this call.
    let mut parsed = Vec::new();
    let mut bytes = text.as_bytes();
    for document in serde_saphyr::read(&mut bytes) {
        parsed.push(document);
    }
    parsed.into_iter()
}

fn check(source: &Source, spec: Spec, places: Option<&Places>) -> Result<Spec, Fault> {
    let checked: Result<(), SpecError> = match &spec {
        Spec::Job(spec) => spec.check(),
        Spec::Calendar(spec) => spec.days().map(|_| ()),
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

/// Puts an error of the parser into our words.
fn describe(source: &Source, error: &Error, places: Option<&Places>) -> Fault {
    let error = error.without_snippet();
    let location = error.location();
    let (line, column) = location.map_or((0, 0), |location| (location.line(), location.column()));
    let enclosing = places.and_then(|places| places.at(line, column));
    let (field, message) = match error {
        Error::SerdeUnknownField {
            field, expected, ..
        } => (parent(enclosing, field), unknown("key", field, expected)),
        Error::SerdeUnknownVariant {
            variant, expected, ..
        } => (enclosing, unknown("value", variant, expected)),
        Error::SerdeMissingField { field, .. } => (
            places.and_then(|places| places.mapping(line, column)),
            format!("`{field}` is missing: add it"),
        ),
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            (None, format!("`{key}` is given twice: remove one"))
        }
        Error::SerdeInvalidType {
            unexpected,
            expected,
            ..
        }
        | Error::SerdeInvalidValue {
            unexpected,
            expected,
            ..
        } => (
            enclosing,
            format!("found {unexpected}, expected {expected}"),
        ),
        Error::InvalidScalar { ty, .. } => (enclosing, format!("expected {}", kind(ty))),
        other => (enclosing, words(other)),
    };
    Fault {
        file: source.name.clone(),
        line,
        column,
        field,
        message,
    }
}

/// What people call a type of ours.
fn kind(ty: &str) -> &str {
    match ty {
        "bool" => "true or false",
        "f32" | "f64" => "a number",
        _ if ty.starts_with(['u', 'i']) && ty[1..].bytes().all(|byte| byte.is_ascii_digit()) => {
            "a whole number"
        }
        other => other,
    }
}

/// The parser names the place in its message too; once is enough.
fn words(error: &Error) -> String {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or(&message).trim();
    message
        .lines()
        .next()
        .unwrap_or("cannot be read as YAML")
        .to_owned()
}

/// The path of the mapping that a key was found in.
fn parent(enclosing: Option<String>, key: &str) -> Option<String> {
    let path = enclosing?;
    match path.strip_suffix(key) {
        Some(rest) => Some(rest.trim_end_matches('.').to_owned()).filter(|rest| !rest.is_empty()),
        None => Some(path),
    }
}

/// What to say of a name that is not among those expected: the nearest of them, or all.
pub fn unknown(what: &str, found: &str, expected: &[&str]) -> String {
    let near = expected
        .iter()
        .map(|name| (strsim::damerau_levenshtein(found, name), name))
        .min();
    match near {
        Some((distance, name)) if distance <= 1 + found.chars().count() / 3 => {
            format!("unknown {what} `{found}`: did you mean `{name}`?")
        }
        _ => format!("unknown {what} `{found}`: there is {}", expected.join(", ")),
    }
}

#[cfg(test)]
mod tests;
