//! Request bodies: bounded, JSON, and strict. An unknown key is refused with the nearest known one.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::de::{Deserialize, DeserializeOwned};
use serde_json::Value;
use serde_json::error::Category;
use tokio_stream::StreamExt;

use super::problem::{Kind, Problem};

/// The bytes of a body of at most `LIMIT` bytes that does not claim to be anything but JSON.
pub struct Bounded<const LIMIT: usize>(pub Bytes);

/// The bound of ordinary bodies.
pub const ORDINARY: usize = 1 << 20;
/// The bound of a batch.
pub const BATCH: usize = 8 << 20;
/// Up to here a body is waited for before anything is answered.
const SHORT: usize = 64 << 10;
const SHORT_WITHIN: Duration = Duration::from_secs(60);

/// Lets a request in when its short body is there. An answer given before that, by a route that wants no body or to
/// someone who may not ask, would leave the body unread on the connection; HTTP/1 has no way then but to close it, and
/// the client's next request on it would fail.
pub async fn arrive(request: Request, next: Next) -> Response {
    let is_short = claimed(request.headers()).is_some_and(|bytes| (1..=SHORT).contains(&bytes));
    if request.version() >= Version::HTTP_2 || !is_short {
        return next.run(request).await;
    }
    let (head, body) = request.into_parts();
    let whole = tokio::time::timeout(SHORT_WITHIN, axum::body::to_bytes(body, SHORT)).await;
    match whole {
        Ok(Ok(bytes)) => next.run(Request::from_parts(head, Body::from(bytes))).await,
        Ok(Err(_)) | Err(_) => cut().into_response(),
    }
}

fn claimed(headers: &HeaderMap) -> Option<usize> {
    headers
        .get(header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

fn cut() -> Problem {
    Problem::new(
        Kind::MalformedJson,
        "the body ended before its announced length",
    )
}

impl<S: Send + Sync, const LIMIT: usize> FromRequest<S> for Bounded<LIMIT> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        check_type(request.headers())?;
        let (head, body) = request.into_parts();
        whole(&head.headers, body, LIMIT).await.map(Self)
    }
}

/// All of a body, within its bound.
pub async fn whole(headers: &HeaderMap, body: Body, limit: usize) -> Result<Bytes, Problem> {
    if claimed(headers).is_some_and(|bytes| bytes <= limit) {
        let whole = axum::body::to_bytes(body, limit).await;
        return whole.map_err(|_| cut());
    }
    match collect(body, limit).await {
        Some(bytes) => Ok(bytes),
        None => Err(Problem::new(
            Kind::TooLarge,
            format!("the body may have {limit} bytes: send less at once"),
        )),
    }
}

/// A body of unknown or excessive length; `None` when it exceeds the limit. Then it is still read for a while and thrown
/// away: most clients look for an answer only when they have sent everything.
async fn collect(body: Body, limit: usize) -> Option<Bytes> {
    const PATIENCE: usize = 4;
    let (mut kept, mut seen) = (Vec::new(), 0_usize);
    let mut pieces = body.into_data_stream();
    while let Some(Ok(piece)) = pieces.next().await {
        seen = seen.saturating_add(piece.len());
        if seen <= limit {
            kept.extend_from_slice(&piece);
        } else if seen > PATIENCE * limit {
            break;
        }
    }
    (seen <= limit).then(|| kept.into())
}

fn check_type(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(given) = headers.get(header::CONTENT_TYPE) else {
        return Ok(());
    };
    let text = given.to_str().unwrap_or("");
    let essence = text
        .split(';')
        .next()
        .unwrap_or("")
        .trim()
        .to_ascii_lowercase();
    if essence == "application/json"
        || (essence.starts_with("application/") && essence.ends_with("+json"))
    {
        Ok(())
    } else {
        let detail = format!("`{text}` is not JSON: send `Content-Type: application/json`");
        Err(Problem::new(Kind::UnsupportedMediaType, detail))
    }
}

/// Reads a body. The ordinary way costs nothing extra; only a failure is looked at twice, to say where it is.
pub fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|error| {
        let mut deserializer = serde_json::Deserializer::from_slice(bytes);
        match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
            Ok(_) => explain("", &error),
            Err(located) => explain(&located.path().to_string(), located.inner()),
        }
    })
}

/// Reads a value that was already parsed.
pub fn parse_value<T: DeserializeOwned>(value: serde_json::Value) -> Result<T, Problem> {
    serde_path_to_error::deserialize(value)
        .map_err(|error| explain(&error.path().to_string(), error.inner()))
}

/// Reads a manifest for the thing that the path names. What the path says may be left out, not contradicted.
pub fn manifest<T: DeserializeOwned>(
    bytes: &[u8],
    kind: &str,
    namespace: &str,
    name: &str,
) -> Result<T, Problem> {
    let mut document: Value = parse(bytes)?;
    let Some(keys) = document.as_object_mut() else {
        return Err(Problem::new(
            Kind::InvalidField,
            format!("the body is not a manifest: send a JSON object with `kind: {kind}`"),
        ));
    };
    for (key, named) in [("namespace", namespace), ("name", name)] {
        let given = keys.entry(key).or_insert_with(|| Value::from(named));
        if given.as_str().is_some_and(|given| given != named) {
            return Err(Problem::field(
                key,
                format!(
                    "{key}: the manifest says {given}, the path says `{named}`: make them equal"
                ),
            ));
        }
    }
    parse_value(document)
}

fn explain(path: &str, error: &serde_json::Error) -> Problem {
    let message = error.to_string();
    if matches!(
        error.classify(),
        Category::Syntax | Category::Eof | Category::Io
    ) {
        return Problem::new(
            Kind::MalformedJson,
            format!("the body is not JSON: {message}"),
        );
    }
    let (given, known) = quoted(&message);
    let hint = super::nearest(given, known.iter().copied())
        .map(|name| format!("; did you mean `{name}`?"));
    let detail = format!("{message}{}", hint.unwrap_or_default());
    let field = (!path.is_empty() && path != ".").then(|| path.to_owned());
    let kind = if message.starts_with("unknown field") {
        Kind::UnknownField
    } else {
        Kind::InvalidField
    };
    Problem {
        field,
        ..Problem::new(kind, detail)
    }
}

/// serde says "unknown field `x`, expected one of `a`, `b`": the name given, and the names it knows.
fn quoted(message: &str) -> (&str, Vec<&str>) {
    if !message.starts_with("unknown ") {
        return ("", Vec::new());
    }
    let mut names = message.split('`').skip(1).step_by(2);
    (names.next().unwrap_or(""), names.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only the errors are looked at")]
    struct Outer {
        inner: Inner,
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only the errors are looked at")]
    struct Inner {
        weight: u32,
        labels: Vec<String>,
    }

    fn problem(text: &str) -> Problem {
        parse::<Outer>(text.as_bytes()).expect_err(text)
    }

    #[test]
    fn an_unknown_key_is_named_with_its_place_and_the_nearest_known_one() {
        let problem = problem(r#"{"inner":{"wieght":1,"labels":[]}}"#);
        assert_eq!(problem.kind, Kind::UnknownField);
        assert_eq!(problem.field.as_deref(), Some("inner.wieght"));
        assert!(
            problem.detail.contains("did you mean `weight`?"),
            "{}",
            problem.detail
        );
    }

    #[test]
    fn a_wrong_type_is_named_with_its_place() {
        let problem = problem(r#"{"inner":{"weight":1,"labels":[1]}}"#);
        assert_eq!(
            (problem.kind, problem.field.as_deref()),
            (Kind::InvalidField, Some("inner.labels[0]"))
        );
    }

    #[test]
    fn text_that_is_not_json_is_said_to_be_so() {
        for text in ["", "{", "nonsense", "{\"inner\":}", "\u{0}"] {
            assert_eq!(problem(text).kind, Kind::MalformedJson, "{text:?}");
        }
    }
}
