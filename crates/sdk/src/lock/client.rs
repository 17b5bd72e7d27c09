//! The requests of locks, over the same way to the server as a worker's.

use std::time::Duration;

use drumtower_core::model::{LockName, NamespaceName};
use drumtower_core::schedule::format_duration;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use serde_json::{Value, json};
use tokio::time::timeout;
use tonic::body::Body;
use tonic::metadata::{Ascii, MetadataValue};
use tower::ServiceExt;

use super::millis;
use crate::Error;
use crate::runtime::Server;

/// Beyond what a request itself asked to wait.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
const ANSWER_BYTES: usize = 64 * 1024;

pub(super) struct Client {
    pub(super) server: Server,
    pub(super) token: Option<MetadataValue<Ascii>>,
    pub(super) namespace: NamespaceName,
}

/// What the server says of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Held {
        fence: u64,
    },
    /// Another holds it, or the hold is over.
    Refused,
}

impl Client {
    pub(super) async fn acquire(
        &self,
        name: &LockName,
        owner: &str,
        ttl: Duration,
        wait: Duration,
    ) -> Result<Answer, Error> {
        let body = json!({
            "owner": owner,
            "ttl": format_duration(millis(ttl)),
            "wait": format_duration(millis(wait)),
        });
        let within = ANSWER_WITHIN + wait;
        let asked = timeout(within, self.post(name, "acquire", &body)).await;
        held(asked.map_err(|_| silent())??, "lock_held")
    }

    pub(super) async fn renew(&self, name: &LockName, fence: u64) -> Result<Answer, Error> {
        let body = json!({"fence": fence.to_string()});
        held(self.post(name, "renew", &body).await?, "lock_lost")
    }

    pub(super) async fn release(&self, name: &LockName, fence: u64) -> Result<(), Error> {
        let body = json!({"fence": fence.to_string()});
        let (status, answer) = self.post(name, "release", &body).await?;
        match status.is_success() || answer["code"] == "lock_lost" {
            true => Ok(()),
            false => Err(refusal(status, &answer)),
        }
    }

    async fn post(
        &self,
        name: &LockName,
        verb: &str,
        body: &Value,
    ) -> Result<(StatusCode, Value), Error> {
        let path = format!("/api/v1/namespaces/{}/locks/{name}/{verb}", self.namespace);
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(CONTENT_TYPE, "application/json");
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token.as_encoded_bytes());
        }
        let request = request
            .body(Body::new(Full::from(body.to_string())))
            .map_err(|error| Error::configuration(error.to_string()))?;
        let complaint = self.server.complaint();
        let lost = |error: &dyn std::error::Error| {
            let words = complaint.take().unwrap_or_else(|| causes(error));
            let place = self.server.place();
            Error::unreachable(format!("the server at {place} cannot be reached: {words}"))
        };
        let channel = self.server.clone().connect().await;
        let channel = channel.map_err(|error| lost(&error))?;
        let answer = channel
            .oneshot(request)
            .await
            .map_err(|error| lost(&error))?;
        let status = answer.status();
        let bytes = Limited::new(answer.into_body(), ANSWER_BYTES)
            .collect()
            .await;
        let bytes = bytes.map_err(|error| lost(error.as_ref()))?.to_bytes();
        Ok((status, serde_json::from_slice(&bytes).unwrap_or_default()))
    }
}

/// A hold, or the one refusal that is expected.
fn held((status, answer): (StatusCode, Value), expected: &str) -> Result<Answer, Error> {
    let fence = answer["fence"].as_str().and_then(|text| text.parse().ok());
    match fence {
        Some(fence) if status.is_success() => Ok(Answer::Held { fence }),
        _ if answer["code"] == expected => Ok(Answer::Refused),
        _ => Err(refusal(status, &answer)),
    }
}

fn refusal(status: StatusCode, answer: &Value) -> Error {
    let detail = answer["detail"].as_str().or(answer["title"].as_str());
    let words = detail.map_or_else(|| format!("the server answered {status}"), str::to_owned);
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Error::unauthorized(words),
        StatusCode::TOO_MANY_REQUESTS => Error::unreachable(words),
        _ if status.is_server_error() => Error::unreachable(words),
        _ => Error::rejected(words),
    }
}

fn silent() -> Error {
    Error::unreachable("the server does not answer")
}

/// The innermost cause says the most.
fn causes(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart() {
        let granted = json!({"fence": "18446744073709551615", "ttl_ms": 1000});
        let answer = held((StatusCode::OK, granted), "lock_held").expect("held");
        assert_eq!(answer, Answer::Held { fence: u64::MAX });
        let taken = json!({"code": "lock_held", "detail": "held by `me`"});
        let answer = held((StatusCode::CONFLICT, taken.clone()), "lock_held").expect("told");
        assert_eq!(answer, Answer::Refused);
        let error = held((StatusCode::CONFLICT, taken), "lock_lost").expect_err("unexpected");
        assert!(error.is_rejected(), "{error}");
        let error = held((StatusCode::FORBIDDEN, Value::Null), "lock_held").expect_err("no");
        assert!(error.is_unauthorized(), "{error}");
        let error = held((StatusCode::SERVICE_UNAVAILABLE, Value::Null), "lock_held");
        assert!(error.expect_err("busy").is_unreachable());
        let nonsense = held((StatusCode::OK, json!({"fence": 7})), "lock_held");
        assert!(nonsense.is_err());
    }
}
