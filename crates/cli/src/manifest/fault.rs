//! What is wrong with a manifest, in words for people: the parser's errors name types of ours, these name what to write.

use std::fmt;

use serde_saphyr::Error;

use super::places::Places;
use super::source::Source;

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

/// Puts an error of the parser into our words.
pub fn describe(source: &Source, error: &Error, places: Option<&Places>) -> Fault {
    let error = error.without_snippet();
    let location = error.location();
    let (line, column) = location.map_or((0, 0), |location| (location.line(), location.column()));
    let column = match error {
        Error::SerdeUnknownVariant { variant, .. } => column_of(source, (line, column), variant),
        _ => column,
    };
    let enclosing = places.and_then(|places| places.at(line, column));
    let (field, message) = match error {
        Error::SerdeUnknownField {
            field, expected, ..
        } => (parent(enclosing, field), unknown("key", field, expected)),
        Error::SerdeUnknownVariant { variant, .. } if variant == "CronJob" => (
            enclosing,
            "this is a CronJob of Kubernetes: `drumtower import k8s-cronjob FILE` makes a job of it".to_owned(),
        ),
        Error::SerdeUnknownVariant {
            variant, expected, ..
        } => match places.is_some_and(|places| places.begins(line, column)) {
            true => (parent(enclosing, variant), unknown("key", variant, expected)),
            false => (enclosing, unknown("value", variant, expected)),
        },
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
        Error::Unexpected { expected, .. } => (
            places.and_then(|places| places.around(line, column)),
            shape(expected),
        ),
        Error::ExpectedMappingEndAfterEnumVariantValue { .. } => {
            let key = enclosing.as_deref().and_then(|path| path.rsplit('.').next());
            let message = format!(
                "takes one key, and `{}` is one too many: remove it, or indent it further if it belongs to the key above",
                key.unwrap_or_default()
            );
            (places.and_then(|places| places.around(line, column)), message)
        }
        Error::ExternallyTaggedEnumExpectedScalarOrMapping { .. } => {
            (enclosing, "found a list, expected one key with its value".to_owned())
        }
        Error::NullIntoString { .. } => (enclosing, "is empty: give it a value".to_owned()),
        Error::UnknownAnchor { .. } => (
            enclosing,
            "a value that begins with `*` must be quoted, as in \"*/5 * * * *\"".to_owned(),
        ),
        other => return unreadable(source, line, column, enclosing, &words(other)),
    };
    Fault {
        file: source.name.clone(),
        line,
        column,
        field,
        message,
    }
}

/// Where a word stands that the parser may have told by the place of the key before it.
fn column_of(source: &Source, (line, column): (u64, u64), word: &str) -> u64 {
    let index = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
    let before = usize::try_from(column.saturating_sub(1)).unwrap_or(usize::MAX);
    let text = source.text.lines().nth(index).unwrap_or_default();
    let rest: String = text.chars().skip(before).collect();
    let value = rest.split_once(": ").filter(|_| !rest.starts_with(word));
    match value {
        Some((key, value)) if value.trim_start().starts_with(word) => {
            let spaces = value.chars().count() - value.trim_start().chars().count();
            column + (key.chars().count() + 2 + spaces) as u64
        }
        _ => column,
    }
}

/// Text that is not YAML. The parser says what it wanted; people need to know what they probably did.
fn unreadable(source: &Source, line: u64, column: u64, field: Option<String>, said: &str) -> Fault {
    let tab = source.text.lines().enumerate().find(|(_, line)| {
        let indent = line.trim_start_matches(' ');
        indent.starts_with('\t') && !indent.trim().is_empty()
    });
    let fault = |line, column, message| Fault {
        file: source.name.clone(),
        line,
        column,
        field: field.clone(),
        message,
    };
    if let (Some((index, text)), true) = (tab, said.contains("tab") || said.contains("indent")) {
        let column = text.find('\t').unwrap_or(0) as u64 + 1;
        return Fault {
            field: None,
            ..fault(
                index as u64 + 1,
                column,
                "a tab: indent with spaces".to_owned(),
            )
        };
    }
    let hint = if said.contains("mapping values are not allowed") {
        ": quote a text that holds `: `, or check how far the line is indented"
    } else if said.contains("quoted scalar") {
        ": is a quote left open above?"
    } else if said.contains("flow mapping") || said.contains("flow sequence") {
        ": is a bracket left open?"
    } else {
        ""
    };
    fault(line, column, format!("{said}{hint}"))
}

/// What was expected, when it was another shape altogether.
fn shape(expected: &str) -> String {
    match expected {
        "sequence start" => {
            "expected a list: begin each entry with `- `, or write [a, b]".to_owned()
        }
        "mapping start" => "expected keys with values, such as `key: value`".to_owned(),
        "string scalar" | "scalar" => "expected a single value".to_owned(),
        other => format!("expected {other}"),
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
    // Of numbers the nearest in spelling means nothing.
    let worded = !found.contains(|c: char| c.is_ascii_digit());
    match near {
        Some((distance, name)) if worded && distance <= 1 + found.chars().count() / 3 => {
            format!("unknown {what} `{found}`: did you mean `{name}`?")
        }
        _ => format!("unknown {what} `{found}`: there is {}", expected.join(", ")),
    }
}
