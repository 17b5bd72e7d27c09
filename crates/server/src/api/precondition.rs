//! `If-Match` and `If-None-Match`: the revision of a job as an ETag, and the condition a caller puts on it.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use drumtower_core::engine::Condition;

use super::problem::{Kind, Problem};

/// The ETag of a revision.
pub fn etag(revision: u64) -> HeaderValue {
    HeaderValue::from_str(&format!("\"{revision}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}

/// The condition of an edit.
pub fn condition(headers: &HeaderMap) -> Result<Condition, Problem> {
    match (
        text(headers, header::IF_MATCH)?,
        text(headers, header::IF_NONE_MATCH)?,
    ) {
        (None, None) => Ok(Condition::Any),
        (Some(given), None) => revision(given).map(Condition::Revision),
        (None, Some("*")) => Ok(Condition::Absent),
        (None, Some(_)) => Err(wrong(
            "If-None-Match: only `*` is taken here: it means that there is no such job yet",
        )),
        (Some(_), Some(_)) => Err(wrong(
            "If-Match and If-None-Match exclude each other: send one of them",
        )),
    }
}

/// The condition of a change to something that must exist.
pub fn condition_on_existing(headers: &HeaderMap) -> Result<Condition, Problem> {
    match condition(headers)? {
        Condition::Absent => Err(wrong(
            "If-None-Match: this needs a job that exists: send If-Match, or neither",
        )),
        condition => Ok(condition),
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

fn revision(given: &str) -> Result<u64, Problem> {
    let inner = given
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    let digits = inner.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| {
        let given: String = given.chars().take(64).collect();
        wrong(format!("If-Match: `{given}` is not an ETag of a job: send it as the job's ETag came, such as `\"3\"`"))
    })
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
        let read = |pairs: &[(HeaderName, &str)]| condition(&headers(pairs));
        assert_eq!(read(&[]), Ok(Condition::Any));
        assert_eq!(
            read(&[(header::IF_MATCH, etag(7).to_str().unwrap())]),
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
        ] {
            assert!(read(&[(header::IF_MATCH, wrong)]).is_err(), "{wrong}");
        }
        assert!(read(&[(header::IF_NONE_MATCH, "\"1\"")]).is_err());
        assert!(condition_on_existing(&headers(&[(header::IF_NONE_MATCH, "*")])).is_err());
    }
}
