//! The ETag of what a GET answers, and 304 when the caller has just that.
//!
//! Every whole answer gets one: a hash of its bytes. A thing with a revision has its revision before the hash, as in
//! `"3.9e1c…"`, so that the same tag also serves `If-Match`, which asks for the revision only: a job's next time moves
//! without an edit. Streams have no tag.

use axum::body::{Body, HttpBody};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use xxhash_rust::xxh3::xxh3_64;

use super::internal;

/// Answers are built in memory, so their length is bounded by what built them; this only names a bound.
const LARGEST: usize = 256 << 20;

/// Gives the answer to a GET its tag, or 304 in its place.
pub async fn tagged(asked: &HeaderMap, response: Response) -> Response {
    if response.status() != StatusCode::OK || response.body().size_hint().exact().is_none() {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let bytes = match axum::body::to_bytes(body, LARGEST).await {
        Ok(bytes) => bytes,
        Err(error) => return internal(&error).into_response(),
    };
    let tag = tag(parts.headers.get(header::ETAG), xxh3_64(&bytes));
    if is_known(asked, &tag) {
        return (StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response();
    }
    parts.headers.insert(header::ETAG, tag);
    Response::from_parts(parts, Body::from(bytes))
}

fn tag(revision: Option<&HeaderValue>, hash: u64) -> HeaderValue {
    let revision = revision.and_then(|value| value.to_str().ok());
    let text = match revision.map(|revision| revision.trim_matches('"')) {
        Some(revision) => format!("\"{revision}.{hash:016x}\""),
        None => format!("\"{hash:016x}\""),
    };
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("\"\""))
}

/// `If-None-Match` names the tag, weakly or strongly, or says `*`.
fn is_known(asked: &HeaderMap, tag: &HeaderValue) -> bool {
    let given = asked.get_all(header::IF_NONE_MATCH).iter();
    given
        .filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(','))
        .map(|one| one.trim())
        .any(|one| one == "*" || one.trim_start_matches("W/").as_bytes() == tag.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_known_in_every_form_that_the_header_may_have() {
        let tag = HeaderValue::from_static("\"3.ab\"");
        let known = |given: &'static str| {
            let asked =
                HeaderMap::from_iter([(header::IF_NONE_MATCH, HeaderValue::from_static(given))]);
            is_known(&asked, &tag)
        };
        for given in ["\"3.ab\"", "W/\"3.ab\"", "\"x\", \"3.ab\"", "*"] {
            assert!(known(given), "{given}");
        }
        for given in ["\"3\"", "3.ab", "", "\"3.abc\""] {
            assert!(!known(given), "{given}");
        }
        assert!(!is_known(&HeaderMap::new(), &tag));
    }

    #[test]
    fn the_revision_stands_before_the_hash() {
        let own = HeaderValue::from_static("\"v3\"");
        assert_eq!(tag(Some(&own), 0xab), "\"v3.00000000000000ab\"");
        assert_eq!(tag(None, 0xab), "\"00000000000000ab\"");
    }
}
