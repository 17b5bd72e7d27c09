//! Webhooks: a signed `POST` through the guarded client.
//!
//! Headers follow the Standard Webhooks convention. Redirects are not followed; of the answer only the status counts.

use std::time::Duration;

use drumtower_core::model::WallMs;
use drumtower_outbound::{Client, Error, Limits, Policy, Request};
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method, StatusCode};

use super::key::Key;
use super::message::Message;
use super::outbox::Outcome;

const LIMITS: Limits = Limits {
    connect: Duration::from_secs(5),
    total: Duration::from_secs(15),
    body_bytes: 64 * 1024,
    redirects: 0,
};

pub struct Webhook {
    client: Client,
    key: Key,
}

impl Webhook {
    pub fn new(policy: Policy, key: Key) -> Result<Self, Error> {
        Ok(Self {
            client: Client::new(policy)?,
            key,
        })
    }

    pub async fn send(&self, url: &str, message: &Message, now: WallMs) -> Outcome {
        let body = message.json();
        let seconds = now.0.div_euclid(1000);
        let request = match self.headers(message, seconds, &body) {
            Some(headers) => Request {
                method: Method::POST,
                url: url.to_owned(),
                headers,
                body,
            },
            None => return Outcome::Never("its headers cannot be sent".to_owned()),
        };
        match self.client.send(request, LIMITS).await {
            Ok(answer) => judge(answer.status),
            Err(error) => failed(&error),
        }
    }

    fn headers(&self, message: &Message, seconds: i64, body: &[u8]) -> Option<HeaderMap> {
        let mut headers = HeaderMap::new();
        let signature = self.key.sign(&message.id, seconds, body);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert("webhook-id", message.id.parse().ok()?);
        headers.insert("webhook-timestamp", HeaderValue::from(seconds));
        headers.insert("webhook-signature", signature.parse().ok()?);
        Some(headers)
    }
}

/// What a status means. A refusal that a later try cannot change ends it.
fn judge(status: StatusCode) -> Outcome {
    let code = status.as_u16();
    if status.is_success() {
        Outcome::Delivered
    } else if status.is_redirection() {
        Outcome::Never(format!(
            "answered {code}: redirects are not followed, give the address it leads to"
        ))
    } else if status.is_client_error() && code != 408 && code != 429 {
        Outcome::Never(format!("answered {code}"))
    } else {
        Outcome::Again(format!("answered {code}"))
    }
}

fn failed(error: &Error) -> Outcome {
    match error {
        Error::Refused { host, refusal } => Outcome::Never(format!(
            "{host} is not reached: {refusal}; if that is meant, allow it in the server's configuration ([outbound] allow, --allow-outbound {})",
            refusal.address
        )),
        Error::Address { .. } | Error::Setup(_) => Outcome::Never(error.to_string()),
        _ => Outcome::Again(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_ends_it_and_a_breakdown_does_not() {
        let of = |code| judge(StatusCode::from_u16(code).unwrap());
        for code in [200, 202, 204] {
            assert_eq!(of(code), Outcome::Delivered);
        }
        for code in [301, 307, 400, 401, 404, 410] {
            assert!(matches!(of(code), Outcome::Never(_)), "{code}");
        }
        for code in [408, 429, 500, 503] {
            assert!(matches!(of(code), Outcome::Again(_)), "{code}");
        }
    }
}
