//! Page cursors: opaque to callers, so that what they are made of can change.

use super::problem::Problem;

/// Hides `place` from being taken for something to build upon.
pub fn encode(place: &str) -> String {
    place.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// The place that [`encode`] was given.
pub fn decode(cursor: &str) -> Result<String, Problem> {
    if !cursor.len().is_multiple_of(2) || cursor.len() > 1024 || !cursor.is_ascii() {
        return Err(foreign());
    }
    let bytes: Result<Vec<u8>, _> = (0..cursor.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&cursor[at..at + 2], 16))
        .collect();
    bytes
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(foreign)
}

/// What is said of a cursor that was not given out here.
pub fn foreign() -> Problem {
    Problem::parameter(
        "cursor",
        "cursor: it does not come from this listing: use `next` of the page before",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_come_back_and_foreign_text_is_refused() {
        assert_eq!(decode(&encode("default/a.b-c")).unwrap(), "default/a.b-c");
        for text in ["0", "zz", "ff", "ä1", &"00".repeat(600)] {
            assert!(decode(text).is_err(), "{text}");
        }
    }
}
