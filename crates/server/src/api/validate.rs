//! What would become of a manifest: whether it would be taken, and when it would fire. Nothing is changed.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;

use super::Edge;
use super::body::{self, Bounded};
use super::gate::JobPath;
use super::next::{self, Answer};
use super::problem::Problem;
use super::query::Parameters;

pub async fn job(
    State(edge): State<Edge>,
    JobPath(job): JobPath,
    uri: Uri,
    Bounded(bytes): Bounded<{ body::ORDINARY }>,
) -> Result<Json<Answer>, Problem> {
    Parameters::read(&uri, &[])?;
    let spec = super::jobs::manifest(&bytes, &job)?;
    Ok(Json(next::foreseen(&edge, spec).await?))
}
