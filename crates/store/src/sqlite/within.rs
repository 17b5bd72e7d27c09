//! Confining a statement to segments. One server owns every segment of an embedded store, so nothing is indexed for it.

use drumtower_core::model::SegmentSet;

/// The condition that the segment in an id is one of those in a parameter made by [`parameter`].
macro_rules! within {
    ($id:literal, $parameter:literal) => {
        concat!(
            "(",
            $parameter,
            " IS NULL OR ((",
            $id,
            " >> 12) & 1023) IN (SELECT value FROM json_each(",
            $parameter,
            ")))"
        )
    };
}
pub(super) use within;

/// A list of segments; none at all stands for every one.
pub(super) fn parameter(within: &SegmentSet) -> Option<String> {
    let list = || within.iter().map(|it| it.0.to_string()).collect::<Vec<_>>();
    (!within.is_all()).then(|| format!("[{}]", list().join(",")))
}
