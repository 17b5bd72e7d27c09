//! The route of Prometheus, and the count of refusals.

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::Edge;
use super::problem::{Kind, Problem};
use super::query::Parameters;
use crate::auth::Principal;
use crate::metrics;

const CONTENT_TYPE: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

pub async fn show(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    let text = metrics::scrape(&edge, &principal).await;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response())
}

/// Counts answers that are problems.
pub async fn count_refusals(State(edge): State<Edge>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    if let Some(kind) = response.extensions().get::<Kind>() {
        edge.metrics.refused(kind.code());
    }
    response
}
