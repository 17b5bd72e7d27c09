//! Why a request got no answer.

use std::time::Duration;

use crate::guard::Refusal;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{url}` is not an address: {why}")]
    Address { url: String, why: String },
    #[error("{host} cannot be resolved: {why}")]
    Unresolved { host: String, why: String },
    #[error(
        "{host} is not reached: {refusal}; if that is meant, allow it in the worker's configuration (--allow-outbound {})",
        refusal.address
    )]
    Refused { host: String, refusal: Refusal },
    #[error("no connection to {host}: {why}")]
    Connect { host: String, why: String },
    #[error("no connection to {host} within {}", seconds(*.after))]
    ConnectTimeout { host: String, after: Duration },
    #[error("TLS with {host} failed: {why}")]
    Tls { host: String, why: String },
    #[error("the proxy did not connect to {host}: {why}")]
    Proxy { host: String, why: String },
    #[error("{host} broke off: {why}")]
    Exchange { host: String, why: String },
    #[error("no complete answer within {}", seconds(*.after))]
    Timeout { after: Duration },
    #[error("more than {most} redirects; the last one was to {url}")]
    TooManyRedirects { most: u32, url: String },
    #[error("the redirect to {url} is not followed: {why}")]
    Redirect { url: String, why: &'static str },
    #[error("the client cannot be set up: {0}")]
    Setup(String),
}

fn seconds(span: Duration) -> String {
    if span.subsec_millis() == 0 {
        format!("{} s", span.as_secs())
    } else {
        format!("{} ms", span.as_millis())
    }
}
