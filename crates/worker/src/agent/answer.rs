//! What the answer to a request means for its attempt.

use drumtower_outbound::Response;
use drumtower_proto::worker::v1 as wire;
use serde_json::{Map, Value, json};

/// Of the body, in the result and in an error.
const RESULT_BODY_CHARS: usize = 4096;
const ERROR_BODY_CHARS: usize = 200;
const HEADER_CHARS: usize = 1024;
const URL_CHARS: usize = 2048;
/// The longest that an answer may put the next attempt off.
const RETRY_AFTER_MS: u64 = 3_600_000;

/// Headers of the answer that are part of the result.
const HEADERS: [&str; 9] = [
    "content-length",
    "content-type",
    "date",
    "etag",
    "last-modified",
    "location",
    "retry-after",
    "server",
    "x-request-id",
];

/// A line about the answer, for the log.
pub(super) fn summary(response: &Response) -> String {
    let cut = if response.truncated {
        format!(
            " (the rest beyond {} bytes was not read)",
            response.body.len()
        )
    } else {
        String::new()
    };
    format!(
        "< {} {}, {} bytes{cut}\n",
        response.status,
        response.url,
        response.body.len()
    )
}

pub(super) fn judge(task: &wire::HttpTask, response: &Response) -> wire::Finished {
    let mut end = wire::Finished {
        result: result(response).to_string(),
        log_truncated: response.truncated,
        http_status: response.status.as_u16().into(),
        ..wire::Finished::default()
    };
    match fault(task, response) {
        None => end.set_outcome(wire::Outcome::Succeeded),
        Some(fault) => {
            end.set_outcome(wire::Outcome::Failed);
            end.error = fault;
            end.verdict = retry_after(response).map(wire::finished::Verdict::RetryAfterMs);
        }
    }
    end
}

/// How long the other end asks to be left alone, in seconds; a date is not understood.
fn retry_after(response: &Response) -> Option<u64> {
    let seconds: u64 = response
        .headers
        .get("retry-after")?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()?;
    Some(seconds.saturating_mul(1000).min(RETRY_AFTER_MS))
}

pub(super) fn failed(error: String) -> wire::Finished {
    let mut end = wire::Finished {
        error,
        ..wire::Finished::default()
    };
    end.set_outcome(wire::Outcome::Failed);
    end
}

/// The session knows why it was told to stop.
pub(super) fn cancelled() -> wire::Finished {
    let mut end = wire::Finished::default();
    end.set_outcome(wire::Outcome::Cancelled);
    end
}

/// What was expected and not got.
fn fault(task: &wire::HttpTask, response: &Response) -> Option<String> {
    let status = u32::from(response.status.as_u16());
    let fits = |range: &wire::StatusRange| (range.first..=range.last).contains(&status);
    let expected = if task.expect_status.is_empty() {
        &[wire::StatusRange {
            first: 200,
            last: 299,
        }][..]
    } else {
        &task.expect_status
    };
    if !expected.iter().any(fits) {
        return Some(format!(
            "expected status {}, got {}{}",
            listed(expected),
            response.status,
            excerpt(response)
        ));
    }
    if task.expect_body.is_empty() {
        return None;
    }
    match regex::bytes::RegexBuilder::new(&task.expect_body)
        .size_limit(1 << 20)
        .build()
    {
        Ok(pattern) if pattern.is_match(&response.body) => None,
        Ok(_) => Some(format!(
            "expected a body that matches `{}`{}",
            task.expect_body,
            excerpt(response)
        )),
        Err(_) => Some(format!(
            "`{}` is not a regular expression",
            task.expect_body
        )),
    }
}

fn listed(ranges: &[wire::StatusRange]) -> String {
    let one = |range: &wire::StatusRange| {
        if range.first == range.last {
            range.first.to_string()
        } else {
            format!("{}xx", range.first / 100)
        }
    };
    ranges.iter().map(one).collect::<Vec<_>>().join(" or ")
}

/// The beginning of the body as the tail of a sentence.
fn excerpt(response: &Response) -> String {
    match text(&response.body, ERROR_BODY_CHARS).trim() {
        "" if response.body.is_empty() => ", with an empty body".to_owned(),
        "" => String::new(),
        text => format!(", with the body {text:?}"),
    }
}

fn result(response: &Response) -> Value {
    let headers: Map<String, Value> = HEADERS
        .iter()
        .filter_map(|name| {
            let value = response.headers.get(*name)?.as_bytes();
            Some(((*name).to_owned(), Value::String(text(value, HEADER_CHARS))))
        })
        .collect();
    json!({
        "status": response.status.as_u16(),
        "url": text(response.url.as_bytes(), URL_CHARS),
        "headers": headers,
        "body": text(&response.body, RESULT_BODY_CHARS),
    })
}

fn text(bytes: &[u8], most: usize) -> String {
    // A character has at most four bytes; what is beyond need not be looked at.
    let bytes = &bytes[..bytes.len().min(most * 4)];
    String::from_utf8_lossy(bytes).chars().take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, StatusCode};

    fn response(status: u16, body: &[u8]) -> Response {
        Response {
            status: StatusCode::from_u16(status).unwrap(),
            headers: HeaderMap::new(),
            body: body.to_vec(),
            truncated: false,
            url: "http://x/".to_owned(),
        }
    }

    fn range(first: u32, last: u32) -> wire::StatusRange {
        wire::StatusRange { first, last }
    }

    #[test]
    fn what_was_expected_and_got_is_named() {
        let mut task = wire::HttpTask::default();
        assert_eq!(fault(&task, &response(204, b"")), None);
        assert_eq!(
            fault(&task, &response(503, b"busy")).unwrap(),
            "expected status 2xx, got 503 Service Unavailable, with the body \"busy\""
        );
        task.expect_status = vec![range(200, 200), range(400, 499)];
        assert_eq!(fault(&task, &response(404, b"")), None);
        assert_eq!(
            fault(&task, &response(201, b"")).unwrap(),
            "expected status 200 or 4xx, got 201 Created, with an empty body"
        );
        task.expect_body = "^o.$".to_owned();
        assert_eq!(fault(&task, &response(200, b"ok")), None);
        assert_eq!(
            fault(&task, &response(200, b"no")).unwrap(),
            "expected a body that matches `^o.$`, with the body \"no\""
        );
    }

    #[test]
    fn the_other_end_may_ask_for_time() {
        let mut busy = response(503, b"");
        busy.headers.insert("retry-after", "7".parse().unwrap());
        let end = judge(&wire::HttpTask::default(), &busy);
        assert_eq!(end.http_status, 503);
        assert_eq!(
            end.verdict,
            Some(wire::finished::Verdict::RetryAfterMs(7_000))
        );
        busy.headers
            .insert("retry-after", "99999999999999999".parse().unwrap());
        let end = judge(&wire::HttpTask::default(), &busy);
        assert_eq!(
            end.verdict,
            Some(wire::finished::Verdict::RetryAfterMs(RETRY_AFTER_MS))
        );
        busy.status = StatusCode::OK;
        assert_eq!(judge(&wire::HttpTask::default(), &busy).verdict, None);
    }

    #[test]
    fn a_result_stays_within_its_bound() {
        let mut response = response(200, &vec![0x01; 1 << 20]);
        for name in HEADERS {
            response
                .headers
                .insert(name, "v".repeat(60_000).parse().unwrap());
        }
        response.url = format!("http://x/{}", "\u{1}".repeat(60_000));
        let result = judge(&wire::HttpTask::default(), &response).result;
        assert!(result.len() <= drumtower_core::model::Limits::RESULT_BYTES);
    }
}
