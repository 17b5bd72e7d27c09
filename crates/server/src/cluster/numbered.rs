//! What a server calls a trigger that it sends to another, so that it may send it again when the answer is lost.
//!
//! The number is drawn when the trigger is first sent on. It goes with it in a header, which only servers are believed, and
//! is looked up like an idempotency key; but it is nobody's key: callers neither see it nor can hit upon it. A batch that was
//! taken apart says which of its things a part has, so that each is the same one in whatever part it comes.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use drumtower_core::model::RequestId;

pub const HEADER: HeaderName = HeaderName::from_static("drumtower-request");

/// The number of a request and, of a part of one, the places that its things have in the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbered {
    number: u128,
    places: Option<Vec<u32>>,
}

impl Numbered {
    /// `None` where the system has no random numbers to give: then it is sent once.
    pub fn draw() -> Option<Self> {
        let mut number = [0; 16];
        getrandom::fill(&mut number).ok()?;
        Some(Self {
            number: u128::from_be_bytes(number),
            places: None,
        })
    }

    /// The thing at an index of what is sent.
    pub fn thing(&self, index: usize) -> Option<RequestId> {
        let place = match &self.places {
            None => u32::try_from(index).ok(),
            Some(places) => places.get(index).copied(),
        };
        place.map(|place| RequestId {
            number: self.number,
            place,
        })
    }

    /// A part that has the things at these indexes.
    pub fn part(&self, indexes: impl Iterator<Item = usize>) -> Self {
        let places = indexes.filter_map(|index| Some(self.thing(index)?.place));
        Self {
            number: self.number,
            places: Some(places.collect()),
        }
    }

    pub fn to_header(&self) -> HeaderValue {
        let places = self.places.iter().flatten();
        let places: Vec<String> = places.map(u32::to_string).collect();
        let text = match self.places {
            None => format!("{:032x}", self.number),
            Some(_) => format!("{:032x} {}", self.number, places.join(",")),
        };
        HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""))
    }

    pub fn of_header(header: &HeaderValue) -> Option<Self> {
        let text = header.to_str().ok()?;
        let (number, places) = match text.split_once(' ') {
            None => (text, None),
            Some((number, places)) => {
                let places = places.split(',').map(|place| place.parse().ok());
                (number, Some(places.collect::<Option<_>>()?))
            }
        };
        let number = u128::from_str_radix(number, 16).ok()?;
        Some(Self { number, places })
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

    fn places(of: &Numbered, count: usize) -> Vec<Option<u32>> {
        let things = (0..count).map(|index| of.thing(index));
        things.map(|thing| Some(thing?.place)).collect()
    }

    #[test]
    fn a_thing_is_the_same_in_whatever_part_it_comes() {
        let whole = Numbered::draw().unwrap();
        assert_eq!(places(&whole, 2), [Some(0), Some(1)]);
        let part = whole.part([4, 7, 9].into_iter());
        assert_eq!(places(&part, 4), [Some(4), Some(7), Some(9), None]);
        assert_eq!(part.thing(1), whole.thing(7));
        let less = part.part([0, 2].into_iter());
        assert_eq!(less.thing(1), whole.thing(9));
        assert_ne!(Numbered::draw(), Some(whole));
    }

    #[test]
    fn it_comes_back_as_it_was_told() {
        let whole = Numbered::draw().unwrap();
        let part = whole.part([0, 999].into_iter());
        for numbered in [whole, part] {
            assert_eq!(Numbered::of_header(&numbered.to_header()), Some(numbered));
        }
        for wrong in ["", "x", "7 ", "7 1,x", "7 1 2"] {
            assert_eq!(
                Numbered::of_header(&HeaderValue::from_static(wrong)),
                None,
                "{wrong}"
            );
        }
    }
}
