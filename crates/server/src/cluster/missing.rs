//! What a server lacks to carry a request out: the segments that it takes and that another server owns.
//!
//! A handler leaves it in the extensions of its answer, and one server tells it to another in a header: numbers joined by
//! commas, or `all` where it cannot say which, because it owns nothing or was on the point of ending. Where it is told,
//! nothing was done.

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use drumtower_core::model::{SegmentId, SegmentSet};

use crate::api::Kind;

/// On the answer of a server that was sent what is another's.
pub const NOT_MINE: HeaderName = HeaderName::from_static("drumtower-not-mine");
const ALL: &str = "all";

/// Segments that are not here; all of them where nobody could say which are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing(pub SegmentSet);

impl Missing {
    /// What an answer of this server says of itself. Nothing was done either where it was not ready or about to end.
    pub fn in_answer(response: &Response) -> Option<Self> {
        let extensions = response.extensions();
        let told = extensions.get::<Self>().cloned();
        let undone = matches!(extensions.get(), Some(Kind::NotReady | Kind::Stopping));
        told.or(undone.then_some(Self(SegmentSet::ALL)))
    }

    pub fn in_header<B>(response: &http::Response<B>) -> Option<Self> {
        let text = response.headers().get(NOT_MINE)?.to_str().ok()?;
        let number = |text: &str| text.parse().ok().filter(|it| *it < SegmentId::COUNT);
        let numbers = text.split(',').map(number);
        let segments: Option<SegmentSet> = numbers.map(|it| it.map(SegmentId)).collect();
        // `all`, and what another version may say.
        Some(Self(segments.unwrap_or(SegmentSet::ALL)))
    }

    pub fn to_header(&self) -> HeaderValue {
        let all = HeaderValue::from_static(ALL);
        if self.0.is_all() {
            return all;
        }
        let numbers: Vec<String> = self.0.iter().map(|it| it.0.to_string()).collect();
        HeaderValue::try_from(numbers.join(",")).unwrap_or(all)
    }
}

/// Tells the server that sent a request on when nothing came of it and it may be sent to another.
pub fn mark_what_was_not_done(response: &mut Response) {
    if let Some(missing) = Missing::in_answer(response) {
        response.headers_mut().insert(NOT_MINE, missing.to_header());
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;

    use super::*;
    use crate::api::Problem;

    fn read(text: &'static str) -> Missing {
        let response = http::Response::builder().header(NOT_MINE, text);
        Missing::in_header(&response.body(()).expect("a response")).expect("it is told")
    }

    #[test]
    fn what_is_missing_comes_back_as_it_was_told() {
        let few = Missing([0, 7, 1023].map(SegmentId).into_iter().collect());
        assert_eq!(few.to_header(), "0,7,1023");
        assert_eq!(read("0,7,1023"), few);
        let all = Missing(SegmentSet::ALL);
        assert_eq!(all.to_header(), "all");
        for text in ["all", "1", "7,1024", "7,x", ""] {
            let known = if text == "1" {
                Missing([SegmentId(1)].into_iter().collect())
            } else {
                all.clone()
            };
            assert_eq!(read(text), known, "{text}");
        }
        let mine = http::Response::new(());
        assert_eq!(Missing::in_header(&mine), None);
    }

    #[test]
    fn an_answer_marks_only_what_was_not_done() {
        let marked = |problem: Problem| {
            let mut response = problem.into_response();
            mark_what_was_not_done(&mut response);
            Missing::in_header(&response)
        };
        let elsewhere = Problem::elsewhere([SegmentId(9)].into_iter().collect());
        assert_eq!(marked(elsewhere), Some(read("9")));
        assert_eq!(
            marked(Problem::new(Kind::Stopping, "it ends")),
            Some(read("all"))
        );
        assert_eq!(
            marked(Problem::new(Kind::OutcomeUnknown, "who knows")),
            None
        );
        assert_eq!(marked(Problem::new(Kind::NoSuchJob, "none")), None);
    }
}
