//! A task that is an HTTP request, and what answer counts as success.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{check_bytes, check_reserved};
use crate::model::{Limits, SpecError, job::is_default};
use crate::schedule;

/// An HTTP request made by a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Http {
    /// `GET` unless given.
    #[serde(default, skip_serializing_if = "is_default")]
    pub method: Method,
    /// Where to: `http://` or `https://`. Addresses of the worker's own network are refused unless the worker allows them.
    pub url: String,
    /// Headers of the request. The worker adds `Drumtower-*` headers that name the run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The body. Without one, `POST`, `PUT` and `PATCH` send the run's parameters as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// What answer counts as success; any status from 200 to 299 unless given.
    #[serde(default, skip_serializing_if = "is_default")]
    pub expect: Expect,
    /// How long the request may take, from its first connection to the last byte of the answer; `30s` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// How many redirects are followed; 0 takes a redirect as the answer.
    #[serde(default = "five", skip_serializing_if = "is_five")]
    #[schemars(range(max = 10))]
    pub follow_redirects: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    #[default]
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
    Options,
}

impl Method {
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Options => "OPTIONS",
        }
    }

    /// Whether parameters go out as its body.
    pub fn sends_params(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }

    fn takes_body(self) -> bool {
        self.sends_params() || self == Self::Delete
    }
}

/// What answer counts as success. Both keys must be met.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Status codes such as `200`, and classes such as `"2xx"`; any of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub status: Vec<StatusPattern>,
    /// A regular expression that is found in the body of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

/// One status code, or a class of a hundred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusPattern {
    Code(u16),
    /// The first digit.
    Class(u16),
}

impl StatusPattern {
    /// The first and the last status that fit.
    pub fn range(self) -> (u16, u16) {
        match self {
            Self::Code(code) => (code, code),
            Self::Class(class) => (class * 100, class * 100 + 99),
        }
    }

    fn from_code(code: u64) -> Option<Self> {
        let code = u16::try_from(code).ok()?;
        (100..600).contains(&code).then_some(Self::Code(code))
    }

    fn parse(text: &str) -> Option<Self> {
        match text.as_bytes() {
            [class @ b'1'..=b'5', b'x' | b'X', b'x' | b'X'] => {
                Some(Self::Class(u16::from(class - b'0')))
            }
            _ => Self::from_code(text.parse().ok()?),
        }
    }
}

impl fmt::Display for StatusPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "{code}"),
            Self::Class(class) => write!(f, "{class}xx"),
        }
    }
}

impl Serialize for StatusPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Code(code) => serializer.serialize_u16(*code),
            Self::Class(_) => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for StatusPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pattern;
        impl Visitor<'_> for Pattern {
            type Value = StatusPattern;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a status such as 200 or a class such as \"2xx\"")
            }

            fn visit_u64<E: de::Error>(self, code: u64) -> Result<StatusPattern, E> {
                StatusPattern::from_code(code)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Unsigned(code), &self))
            }

            fn visit_i64<E: de::Error>(self, code: i64) -> Result<StatusPattern, E> {
                self.visit_u64(u64::try_from(code).unwrap_or(0))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<StatusPattern, E> {
                StatusPattern::parse(text)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Pattern)
    }
}

impl JsonSchema for StatusPattern {
    fn schema_name() -> Cow<'static, str> {
        "StatusPattern".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"oneOf": [
            {"type": "integer", "minimum": 100, "maximum": 599},
            {"type": "string", "pattern": "^([1-5][xX][xX]|[1-5][0-9][0-9])$"},
        ]})
    }
}

impl Http {
    pub const DEFAULT_TIMEOUT_MS: u64 = 30_000;

    pub fn parsed_timeout(&self, field: &str) -> Result<u64, SpecError> {
        let Some(text) = &self.timeout else {
            return Ok(Self::DEFAULT_TIMEOUT_MS);
        };
        match schedule::parse_duration(text) {
            Ok(ms) if (1..=Limits::HTTP_TIMEOUT_MS).contains(&ms) => Ok(ms),
            Ok(_) => Err(SpecError::new(
                field,
                format!(
                    "`{text}` is not longer than 0 and at most a day: give it a duration such as `30s`"
                ),
            )),
            Err(error) => Err(SpecError::new(field, error.to_string())),
        }
    }

    pub(super) fn check(&self, field: &str) -> Result<(), SpecError> {
        check_url(&format!("{field}.url"), &self.url)?;
        self.check_headers(&format!("{field}.headers"))?;
        if let Some(body) = &self.body {
            let field = format!("{field}.body");
            if !self.method.takes_body() {
                let message = format!("{} carries no body: use POST", self.method.name());
                return Err(SpecError::new(field, message));
            }
            check_bytes(&field, body, Limits::HTTP_BODY_BYTES)?;
            check_reserved(&field, body)?;
        }
        self.expect.check(&format!("{field}.expect"))?;
        self.parsed_timeout(&format!("{field}.timeout"))?;
        if self.follow_redirects > Limits::HTTP_REDIRECTS {
            let message = format!(
                "`{}` is not between 0 and {}",
                self.follow_redirects,
                Limits::HTTP_REDIRECTS
            );
            return Err(SpecError::new(format!("{field}.follow_redirects"), message));
        }
        Ok(())
    }

    fn check_headers(&self, field: &str) -> Result<(), SpecError> {
        let bytes: usize = self.headers.iter().map(|(k, v)| k.len() + v.len()).sum();
        if self.headers.len() > Limits::HTTP_HEADERS || bytes > Limits::HTTP_HEADER_BYTES {
            let message = format!(
                "may have {} headers and {} bytes, has {} and {bytes}",
                Limits::HTTP_HEADERS,
                Limits::HTTP_HEADER_BYTES,
                self.headers.len()
            );
            return Err(SpecError::new(field, message));
        }
        for (name, value) in &self.headers {
            check_header(&format!("{field}.{name}"), name, value)?;
        }
        Ok(())
    }
}

impl Expect {
    fn check(&self, field: &str) -> Result<(), SpecError> {
        if self.status.len() > Limits::HTTP_STATUSES {
            let message = format!(
                "may have {} entries, has {}: use classes such as 2xx",
                Limits::HTTP_STATUSES,
                self.status.len()
            );
            return Err(SpecError::new(format!("{field}.status"), message));
        }
        let Some(pattern) = &self.body else {
            return Ok(());
        };
        let field = format!("{field}.body");
        check_bytes(&field, pattern, Limits::PATTERN_BYTES)?;
        match regex::RegexBuilder::new(pattern)
            .size_limit(1 << 20)
            .build()
        {
            Ok(_) => Ok(()),
            Err(regex::Error::CompiledTooBig(_)) => Err(SpecError::new(
                field,
                format!("`{pattern}` is too large a pattern: shorten it"),
            )),
            Err(error) => {
                let why = error.to_string();
                let why = why.lines().last().unwrap_or_default();
                let why = why.trim_start_matches("error: ");
                let message = format!("`{pattern}` is not a regular expression: {why}");
                Err(SpecError::new(field, message))
            }
        }
    }
}

/// Enough to tell people early; the client that dials parses the address in full.
fn check_url(field: &str, url: &str) -> Result<(), SpecError> {
    let refuse = |why: &str| Err(SpecError::new(field, format!("`{url}` {why}")));
    if url.len() > Limits::HTTP_URL_BYTES {
        let message = format!(
            "may have {} bytes, has {}",
            Limits::HTTP_URL_BYTES,
            url.len()
        );
        return Err(SpecError::new(field, message));
    }
    check_reserved(field, url)?;
    let rest = url
        .strip_prefix("http://")
        .or_else(|| url.strip_prefix("https://"));
    let Some(rest) = rest else {
        return refuse("is no address: begin it with http:// or https://");
    };
    if !url.bytes().all(|byte| byte.is_ascii_graphic()) {
        return refuse("holds a space or a character beyond ASCII: write it percent-encoded");
    }
    if url.contains('#') {
        return refuse("holds a `#`, which is never sent: remove what follows it");
    }
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    if authority.contains('@') {
        return refuse("holds a user or a password: put credentials in an Authorization header");
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    };
    if host.is_empty() {
        return refuse("names no host: write it as https://host/path");
    }
    if port.is_some_and(|port| !port.parse::<u16>().is_ok_and(|port| port > 0)) {
        return refuse("has a port that is not between 1 and 65535");
    }
    Ok(())
}

fn check_header(field: &str, name: &str, value: &str) -> Result<(), SpecError> {
    /// What the client itself writes.
    const OURS: [&str; 8] = [
        "connection",
        "content-length",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        let message = format!("`{name}` cannot name a header: use letters, digits and -");
        return Err(SpecError::new(field, message));
    }
    let lower = name.to_ascii_lowercase();
    if OURS.contains(&lower.as_str()) || lower.starts_with("drumtower-") {
        return Err(SpecError::new(field, "is set by the worker: remove it"));
    }
    let printable = |c: char| c == '\t' || (' '..='~').contains(&c);
    if !value.chars().all(printable) {
        let message = "holds a line break or a character beyond ASCII: remove it";
        return Err(SpecError::new(field, message));
    }
    check_reserved(field, value)
}

fn five() -> u32 {
    5
}

fn is_five(value: &u32) -> bool {
    *value == 5
}
