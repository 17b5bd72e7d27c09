//! What a server calls a trigger that it sends to another, so that it may send it again when the answer is lost.
//!
//! The number is drawn when the trigger is first sent on. It goes with it in a header, which only servers are believed, and
//! is looked up like an idempotency key; but it is nobody's key: callers neither see it nor can hit upon it.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use drumtower_core::model::RequestId;

pub const HEADER: HeaderName = HeaderName::from_static("drumtower-request");

/// The number of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbered(u128);

impl Numbered {
    /// `None` where the system has no random numbers to give: then it is sent once.
    pub fn draw() -> Option<Self> {
        let mut number = [0; 16];
        getrandom::fill(&mut number).ok()?;
        Some(Self(u128::from_be_bytes(number)))
    }

    pub fn id(self) -> RequestId {
        RequestId(self.0)
    }

    pub fn to_header(self) -> HeaderValue {
        let text = format!("{:032x}", self.0);
        HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""))
    }

    pub fn of_header(header: &HeaderValue) -> Option<Self> {
        let text = header.to_str().ok()?;
        u128::from_str_radix(text, 16).ok().map(Self)
    }
}

/// What the server that sent it on calls it, for its handler. The request must be vouched for.
pub fn named(mut request: Request) -> Request {
    let header = request.headers().get(HEADER);
    if let Some(numbered) = header.and_then(Numbered::of_header) {
        request.extensions_mut().insert(numbered);
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_back_as_it_was_told() {
        let numbered = Numbered::draw().unwrap();
        assert_eq!(Numbered::of_header(&numbered.to_header()), Some(numbered));
        assert_ne!(Numbered::draw(), Some(numbered));
        for wrong in ["", "x", "7 1"] {
            let header = HeaderValue::from_static(wrong);
            assert_eq!(Numbered::of_header(&header), None, "{wrong}");
        }
    }
}
