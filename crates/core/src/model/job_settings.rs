//! What holds for the jobs of the whole installation: what they get where they say nothing, and what they may not exceed.
//!
//! It is applied when a definition is put, whichever server does that, and the version holds what came of it. So a version
//! says by itself how its runs go, and a job that exists stays as it is until somebody puts it again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schedule::parse_duration;

use super::job::is_default;
use super::{JobSpec, JsonText, Limits, Retention, RetryPolicy, SpecError};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobSettings {
    /// What a job gets that does not say it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub defaults: JobDefaults,
    /// What a job may say at most.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: JobCeilings,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobDefaults {
    /// How long finished runs are kept; `7d` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// How long an attempt may run, such as `30m`; `1h` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// How many attempts may fail in all, the first included; 3 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub max_attempts: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobCeilings {
    /// The longest `timeout` of a job, such as `6h`; none unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// The most attempts that a job may say under `retry`; none beyond the usual 100 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub max_attempts: Option<u32>,
}

impl JobSettings {
    /// Reads and checks them; `field` names them in errors.
    pub fn parse(field: &str, value: &JsonText) -> Result<Self, SpecError> {
        let parsed: Result<Self, _> = serde_json::from_str(value.as_str());
        let settings = parsed.map_err(|error| SpecError::new(field, error.to_string()))?;
        settings.check(field)?;
        Ok(settings)
    }

    pub fn check(&self, field: &str) -> Result<(), SpecError> {
        let (defaults, limits) = (&self.defaults, &self.limits);
        for (of, attempts) in [
            ("defaults", defaults.max_attempts),
            ("limits", limits.max_attempts),
        ] {
            if let Some(attempts) = attempts
                && (attempts == 0 || attempts > Limits::ATTEMPTS)
            {
                let message = format!("`{attempts}` is not between 1 and {}", Limits::ATTEMPTS);
                return Err(SpecError::new(
                    format!("{field}.{of}.max_attempts"),
                    message,
                ));
            }
        }
        let usual = timeout_ms(&format!("{field}.defaults.timeout"), &defaults.timeout)?;
        let most = timeout_ms(&format!("{field}.limits.timeout"), &limits.timeout)?;
        if let (Some((given, usual)), Some((limit, most))) = (usual, most)
            && usual > most
        {
            let message = format!(
                "`{given}` is longer than `{limit}` under limits.timeout: shorten it, or raise the limit"
            );
            return Err(SpecError::new(format!("{field}.defaults.timeout"), message));
        }
        if let (Some(usual), Some(most)) = (defaults.max_attempts, limits.max_attempts)
            && usual > most
        {
            let message = format!(
                "`{usual}` is more than `{most}` under limits.max_attempts: lower it, or raise the limit"
            );
            return Err(SpecError::new(
                format!("{field}.defaults.max_attempts"),
                message,
            ));
        }
        Ok(())
    }

    /// Says for a job what it does not say itself, and refuses what it may not. A built-in default beyond a limit is the
    /// limit.
    pub fn complete(&self, spec: &mut JobSpec) -> Result<(), SpecError> {
        let (defaults, limits) = (&self.defaults, &self.limits);
        spec.retention = spec.retention.or(defaults.retention);
        if spec.timeout.is_none() {
            spec.timeout = defaults.timeout.clone();
        }
        if let Some((limit, most)) = timeout_ms("limits.timeout", &limits.timeout)?
            && spec.parsed_timeout()? > most
        {
            if let Some(given) = &spec.timeout {
                let message = format!(
                    "`{given}` is longer than `{limit}`, the longest that this installation allows: shorten it, or have an admin raise limits.timeout of the setting `jobs`"
                );
                return Err(SpecError::new("timeout", message));
            }
            spec.timeout = Some(limit.to_owned());
        }
        let retry = &mut spec.retry;
        retry.max_attempts = retry.max_attempts.or(defaults.max_attempts);
        if let Some(most) = limits.max_attempts {
            match retry.max_attempts {
                Some(given) if given > most => {
                    let message = format!(
                        "`{given}` is more than `{most}`, the most that this installation allows: lower it, or have an admin raise limits.max_attempts of the setting `jobs`"
                    );
                    return Err(SpecError::new("retry.max_attempts", message));
                }
                None if RetryPolicy::default().max_attempts > most => {
                    retry.max_attempts = Some(most);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// A timeout as it is written, and in milliseconds.
fn timeout_ms<'a>(
    field: &str,
    text: &'a Option<String>,
) -> Result<Option<(&'a str, u64)>, SpecError> {
    let Some(text) = text else {
        return Ok(None);
    };
    match parse_duration(text) {
        Ok(0) => {
            let message = "must be longer than 0: give it a duration such as `30m` or leave it out";
            Err(SpecError::new(field, message))
        }
        Ok(ms) => Ok(Some((text, ms))),
        Err(error) => Err(SpecError::new(field, error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Result<JobSettings, SpecError> {
        JobSettings::parse("value", &JsonText::parse("value", text).expect("JSON"))
    }

    fn completed(settings_text: &str, keys: &str) -> Result<JobSpec, SpecError> {
        let text = format!(
            r#"{{"kind": "Job", "name": "j", "task": {{"exec": {{"argv": ["true"]}}}}{keys}}}"#
        );
        let mut spec: JobSpec = serde_json::from_str(&text).expect("a manifest");
        settings(settings_text)
            .expect("settings")
            .complete(&mut spec)?;
        Ok(spec)
    }

    const ALL: &str = r#"{"defaults": {"retention": "30d", "timeout": "10m", "max_attempts": 5}}"#;

    #[test]
    fn a_job_gets_what_it_does_not_say() {
        let spec = completed(ALL, "").unwrap();
        assert_eq!(spec.retention(), Retention::Month);
        assert_eq!(spec.timeout.as_deref(), Some("10m"));
        assert_eq!(spec.parsed_retry().unwrap().max_attempts, 5);
    }

    #[test]
    fn what_a_job_says_stays_also_when_it_is_the_built_in_default() {
        let said = r#", "retention": "7d", "timeout": "1h", "retry": {"max_attempts": 3}"#;
        let spec = completed(ALL, said).unwrap();
        assert_eq!(spec.retention(), Retention::Week);
        assert_eq!(spec.timeout.as_deref(), Some("1h"));
        assert_eq!(spec.retry.max_attempts, Some(3));
        // It is still said when the definition was written down and read again.
        let written = serde_json::to_value(&spec).unwrap();
        assert_eq!(written["retention"], "7d");
    }

    #[test]
    fn a_built_in_default_gives_way_to_a_limit_and_what_is_said_is_refused() {
        let limits = r#"{"limits": {"timeout": "30m", "max_attempts": 2}}"#;
        let spec = completed(limits, "").unwrap();
        assert_eq!(spec.timeout.as_deref(), Some("30m"));
        assert_eq!(spec.retry.max_attempts, Some(2));
        let refused = |keys| completed(limits, keys).unwrap_err();
        assert_eq!(refused(r#", "timeout": "31m""#).field, "timeout");
        let attempts = refused(r#", "retry": {"max_attempts": 3}"#);
        assert_eq!(attempts.field, "retry.max_attempts");
        assert!(attempts.message.contains("`3` is more than `2`"));
    }

    #[test]
    fn nothing_set_changes_nothing() {
        let spec = completed("{}", "").unwrap();
        assert_eq!(
            (spec.retention, spec.timeout, spec.retry.max_attempts),
            (None, None, None)
        );
    }

    #[test]
    fn what_cannot_hold_is_refused_by_name() {
        for (text, field) in [
            (
                r#"{"defaults": {"timeout": "0s"}}"#,
                "value.defaults.timeout",
            ),
            (r#"{"limits": {"timeout": "soon"}}"#, "value.limits.timeout"),
            (
                r#"{"defaults": {"max_attempts": 101}}"#,
                "value.defaults.max_attempts",
            ),
            (
                r#"{"limits": {"max_attempts": 0}}"#,
                "value.limits.max_attempts",
            ),
            (
                r#"{"defaults": {"timeout": "2h"}, "limits": {"timeout": "1h"}}"#,
                "value.defaults.timeout",
            ),
            (
                r#"{"defaults": {"max_attempts": 4}, "limits": {"max_attempts": 3}}"#,
                "value.defaults.max_attempts",
            ),
        ] {
            assert_eq!(settings(text).unwrap_err().field, field, "{text}");
        }
        let unknown = settings(r#"{"defaults": {"retries": 3}}"#).unwrap_err();
        assert!(unknown.message.contains("`retries`"), "{unknown}");
        let unknown = settings(r#"{"default": {}}"#).unwrap_err();
        assert!(unknown.message.contains("`default`"), "{unknown}");
    }
}
