//! `If-Match` and `If-None-Match` on changes: the revision of a thing as an ETag, and the condition a caller puts on it.
//!
//! A tag that came with a GET has a hash after the revision, which says nothing here.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use drumtower_core::engine::Condition;

use super::problem::{Kind, Problem};

/// How the ETags of one kind of thing look.
#[derive(Clone, Copy, Debug)]
pub struct Tags {
    noun: &'static str,
    /// Before the number: the tag of one kind is never taken for that of another.
    prefix: &'static str,
}

pub const JOB: Tags = Tags {
    noun: "job",
    prefix: "",
};

pub const CALENDAR: Tags = Tags {
    noun: "calendar",
    prefix: "v",
};

pub const QUEUE: Tags = Tags {
    noun: "queue",
    prefix: "q",
};

pub const SETTING: Tags = Tags {
    noun: "setting",
    prefix: "s",
};

pub const BACKFILL: Tags = Tags {
    noun: "backfill",
    prefix: "b",
};

impl Tags {
    /// The ETag of a revision.
    pub fn etag(self, revision: u64) -> HeaderValue {
        HeaderValue::from_str(&format!("\"{}{revision}\"", self.prefix))
            .unwrap_or(HeaderValue::from_static("\"\""))
    }

    /// The condition of an edit.
    pub fn condition(self, headers: &HeaderMap) -> Result<Condition, Problem> {
        match (
            text(headers, header::IF_MATCH)?,
            text(headers, header::IF_NONE_MATCH)?,
        ) {
            (None, None) => Ok(Condition::Any),
            (Some(given), None) => self.revision(given).map(Condition::Revision),
            (None, Some("*")) => Ok(Condition::Absent),
            (None, Some(_)) => Err(wrong(format!(
                "If-None-Match: only `*` is taken here: it means that there is no such {} yet",
                self.noun
            ))),
            (Some(_), Some(_)) => Err(wrong(
                "If-Match and If-None-Match exclude each other: send one of them",
            )),
        }
    }

    /// The condition of a change to something that must exist.
    pub fn condition_on_existing(self, headers: &HeaderMap) -> Result<Condition, Problem> {
        match self.condition(headers)? {
            Condition::Absent => Err(wrong(format!(
                "If-None-Match: this needs a {} that exists: send If-Match, or neither",
                self.noun
            ))),
            condition => Ok(condition),
        }
    }

    fn revision(self, given: &str) -> Result<u64, Problem> {
        let inner = given
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'))
            .and_then(|inner| inner.strip_prefix(self.prefix));
        let inner = inner.map(|inner| match inner.split_once('.') {
            Some((revision, hash)) if hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => revision,
            _ => inner,
        });
        let digits = inner.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| {
            let given: String = given.chars().take(64).collect();
            let Self { noun, prefix } = self;
            wrong(format!(
                "If-Match: `{given}` is not an ETag of a {noun}: send it as the {noun}'s ETag came, such as `\"{prefix}3\"`"
            ))
        })
    }
}

fn text(headers: &HeaderMap, name: HeaderName) -> Result<Option<&str>, Problem> {
    let mut values = headers.get_all(&name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value
            .to_str()
            .map(|text| Some(text.trim()))
            .map_err(|_| wrong(format!("{name}: not text"))),
        (Some(_), Some(_)) => Err(wrong(format!("{name}: given twice: send it once"))),
    }
}

fn wrong(detail: impl Into<std::borrow::Cow<'static, str>>) -> Problem {
    Problem::new(Kind::InvalidHeader, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    #[test]
    fn conditions_are_read_strictly() {
        let read = |pairs: &[(HeaderName, &str)]| JOB.condition(&headers(pairs));
        assert_eq!(read(&[]), Ok(Condition::Any));
        assert_eq!(
            read(&[(header::IF_MATCH, JOB.etag(7).to_str().unwrap())]),
            Ok(Condition::Revision(7))
        );
        assert_eq!(
            read(&[(header::IF_MATCH, "\"7.00000000000000ab\"")]),
            Ok(Condition::Revision(7))
        );
        assert_eq!(read(&[(header::IF_NONE_MATCH, "*")]), Ok(Condition::Absent));
        for wrong in [
            "7",
            "W/\"7\"",
            "*",
            "\"x\"",
            "\"\"",
            "\"1\", \"2\"",
            "\"+1\"",
            "\"v7\"",
            "\"7.x\"",
            "\".7\"",
        ] {
            assert!(read(&[(header::IF_MATCH, wrong)]).is_err(), "{wrong}");
        }
        assert!(read(&[(header::IF_NONE_MATCH, "\"1\"")]).is_err());
        assert!(
            JOB.condition_on_existing(&headers(&[(header::IF_NONE_MATCH, "*")]))
                .is_err()
        );
    }

    #[test]
    fn a_tag_of_a_job_is_none_of_a_calendar() {
        let read = |tag: &str| CALENDAR.condition(&headers(&[(header::IF_MATCH, tag)]));
        assert_eq!(read("\"v3\""), Ok(Condition::Revision(3)));
        assert_eq!(CALENDAR.etag(3), "\"v3\"");
        assert!(read("\"3\"").is_err());
    }
}
