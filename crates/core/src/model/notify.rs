//! Who is told when a job fails, recovers or starts late: of one job, or of a namespace.
//!
//! A rule says on what, and how: by webhook or e-mail. How messages are grouped and delivered is not decided here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schedule::parse_duration;

use super::{JsonText, Limits, SpecError};

/// The rules of a job or a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Notify {
    /// Each rule is looked at by itself.
    #[serde(default)]
    pub rules: Vec<NotifyRule>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotifyRule {
    /// What to tell of.
    #[schemars(length(min = 1))]
    pub on: Vec<NotifyOn>,
    /// An address that gets a signed `POST`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<String>,
    /// Who gets an e-mail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub email: Vec<String>,
    /// With `late`: how long after its due time a run that has not started is late, such as `5m`; a minute unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_after: Option<String>,
    /// How long messages of one job are gathered after the first was sent, such as `10m`; five minutes unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_for: Option<String>,
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum NotifyOn {
    /// A run ended FAILED.
    Failure,
    /// A run completed, and the one that ended before it had failed.
    Recovery,
    /// A run did not start in time.
    Late,
}

impl NotifyOn {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failure => "failure",
            Self::Recovery => "recovery",
            Self::Late => "late",
        }
    }
}

impl Notify {
    /// Reads and checks rules; `field` names them in errors.
    pub fn parse(field: &str, value: &JsonText) -> Result<Self, SpecError> {
        let parsed: Result<Self, _> = serde_json::from_str(value.as_str());
        let notify = parsed.map_err(|error| SpecError::new(field, error.to_string()))?;
        notify.check(field)?;
        Ok(notify)
    }

    pub fn check(&self, field: &str) -> Result<(), SpecError> {
        if self.rules.len() > Limits::NOTIFY_RULES {
            let message = format!(
                "may have {} rules, has {}",
                Limits::NOTIFY_RULES,
                self.rules.len()
            );
            return Err(SpecError::new(format!("{field}.rules"), message));
        }
        for (index, rule) in self.rules.iter().enumerate() {
            rule.check(&format!("{field}.rules[{index}]"))?;
        }
        Ok(())
    }
}

impl NotifyRule {
    pub const DEFAULT_LATE_MS: u64 = 60_000;
    pub const DEFAULT_GROUP_MS: u64 = 300_000;

    pub fn late_after_ms(&self) -> u64 {
        duration_or(self.late_after.as_deref(), Self::DEFAULT_LATE_MS)
    }

    pub fn group_for_ms(&self) -> u64 {
        duration_or(self.group_for.as_deref(), Self::DEFAULT_GROUP_MS)
    }

    fn check(&self, field: &str) -> Result<(), SpecError> {
        if self.on.is_empty() {
            let message = "is empty: give failure, recovery or late";
            return Err(SpecError::new(format!("{field}.on"), message));
        }
        if self.webhook.is_none() && self.email.is_empty() {
            let message = "says nowhere to send to: give `webhook` or `email`";
            return Err(SpecError::new(field, message));
        }
        if let Some(url) = &self.webhook {
            check_url(&format!("{field}.webhook"), url)?;
        }
        if self.email.len() > Limits::NOTIFY_ADDRESSES {
            let message = format!("may have {} addresses", Limits::NOTIFY_ADDRESSES);
            return Err(SpecError::new(format!("{field}.email"), message));
        }
        for (index, address) in self.email.iter().enumerate() {
            check_address(&format!("{field}.email[{index}]"), address)?;
        }
        for (key, text) in [
            ("late_after", &self.late_after),
            ("group_for", &self.group_for),
        ] {
            if let Some(text) = text {
                parse_duration(text)
                    .map_err(|error| SpecError::new(format!("{field}.{key}"), error.to_string()))?;
            }
        }
        Ok(())
    }
}

fn duration_or(text: Option<&str>, default: u64) -> u64 {
    text.and_then(|text| parse_duration(text).ok())
        .unwrap_or(default)
}

fn check_url(field: &str, url: &str) -> Result<(), SpecError> {
    let host = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"))
        .map(|rest| rest.split(['/', '?', '#']).next().unwrap_or(""));
    let plain = !url.chars().any(|c| c.is_control() || c.is_whitespace());
    if plain && url.len() <= Limits::URL_BYTES && host.is_some_and(|host| !host.is_empty()) {
        Ok(())
    } else {
        let given: String = url.chars().take(64).collect();
        let message = format!("`{given}` is not an address such as https://example.com/hook");
        Err(SpecError::new(field, message))
    }
}

fn check_address(field: &str, address: &str) -> Result<(), SpecError> {
    let plain = !address.chars().any(|c| c.is_control() || c.is_whitespace());
    let parts = address.rsplit_once('@');
    let whole = parts.is_some_and(|(name, host)| !name.is_empty() && !host.is_empty());
    if plain && whole && address.len() <= Limits::EMAIL_BYTES && !address.contains([',', '<', '>'])
    {
        Ok(())
    } else {
        let given: String = address.chars().take(64).collect();
        let message = format!("`{given}` is not an e-mail address such as ops@example.com");
        Err(SpecError::new(field, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(text: &str) -> String {
        let value = JsonText::parse("value", text).unwrap();
        match Notify::parse("value", &value) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn good_rules_are_taken() {
        let text = r#"{"rules":[{"on":["failure","late"],"webhook":"https://example.com/x","email":["a@b"],"late_after":"5m"}]}"#;
        assert_eq!(field(text), "");
        assert_eq!(field("{}"), "");
    }

    #[test]
    fn faults_are_named_with_their_place() {
        let cases = [
            (
                r#"{"rules":[{"on":[],"webhook":"https://a/"}]}"#,
                "value.rules[0].on: is empty",
            ),
            (
                r#"{"rules":[{"on":["late"]}]}"#,
                "value.rules[0]: says nowhere",
            ),
            (
                r#"{"rules":[{"on":["late"],"webhook":"ftp://x"}]}"#,
                "value.rules[0].webhook: `ftp://x`",
            ),
            (
                r#"{"rules":[{"on":["late"],"webhook":"http:///x"}]}"#,
                "value.rules[0].webhook",
            ),
            (
                r#"{"rules":[{"on":["late"],"email":["ops"]}]}"#,
                "value.rules[0].email[0]: `ops`",
            ),
            (
                r#"{"rules":[{"on":["late"],"email":["a@b"],"group_for":"soon"}]}"#,
                "value.rules[0].group_for",
            ),
            (
                r#"{"rules":[{"on":["never"],"email":["a@b"]}]}"#,
                "value: unknown variant `never`",
            ),
        ];
        for (text, start) in cases {
            let error = field(text);
            assert!(error.starts_with(start), "{text}: {error}");
        }
    }
}
