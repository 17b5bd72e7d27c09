//! Where messages go.

use std::fmt;

use drumtower_core::model::{NamespaceName, NotifyRule};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    Webhook(String),
    Email(String),
}

/// A target as a namespace uses it. Namespaces share neither messages nor bounds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    pub namespace: NamespaceName,
    pub target: Target,
}

/// What [`Target::channel`] may say.
pub const CHANNELS: [&str; 2] = ["webhook", "email"];

impl Target {
    /// Each address by itself, so that one that is refused stops no other.
    pub fn of_rule(rule: &NotifyRule) -> impl Iterator<Item = Self> {
        let webhook = rule.webhook.iter().cloned().map(Self::Webhook);
        webhook.chain(rule.email.iter().cloned().map(Self::Email))
    }

    pub fn channel(&self) -> &'static str {
        match self {
            Self::Webhook(_) => CHANNELS[0],
            Self::Email(_) => CHANNELS[1],
        }
    }
}

/// As it may be shown: paths of webhooks often hold a secret.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Email(address) => f.write_str(address),
            Self::Webhook(url) => {
                let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
                let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
                let host = host.rsplit('@').next().unwrap_or_default();
                let more = rest
                    .split_once('/')
                    .is_some_and(|(_, path)| !path.is_empty());
                write!(f, "{scheme}://{host}/{}", if more { "…" } else { "" })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_secret_of_an_address_is_not_shown() {
        let cases = [
            (
                "https://h.example/services/T0/B0/s3cret",
                "https://h.example/…",
            ),
            (
                "https://u:s3cret@h.example:8443/?k=s3cret",
                "https://h.example:8443/…",
            ),
            ("http://h.example?s3cret", "http://h.example/"),
            ("http://h.example/", "http://h.example/"),
        ];
        for (url, shown) in cases {
            assert_eq!(Target::Webhook(url.to_owned()).to_string(), shown);
        }
    }
}
