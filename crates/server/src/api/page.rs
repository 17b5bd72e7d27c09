//! A page of a listing, and the place where the next one begins.

use axum::http::Uri;
use schemars::JsonSchema;
use serde::Serialize;

use super::Edge;
use super::cursor::Listing;
use super::query::Parameters;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "{T}Page")]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Passed as `cursor` it gives the following page, which may be short or empty; `null` after the last.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// A listing that always fits on one page.
    pub fn whole(items: impl Iterator<Item = T>) -> Self {
        Self {
            items: items.collect(),
            next: None,
        }
    }
}

/// The listing that a request asks for: its path and everything that chooses rows.
pub fn listing(edge: &Edge, uri: &Uri, parameters: &Parameters) -> Listing {
    let chooses = |(name, _): &(&str, &str)| !["limit", "cursor"].contains(name);
    let mut filter: Vec<(&str, &str)> = parameters.pairs().filter(chooses).collect();
    filter.sort_unstable();
    let parts = filter.into_iter().flat_map(|(name, text)| [name, text]);
    Listing::new(&edge.cursors, std::iter::once(uri.path()).chain(parts))
}
