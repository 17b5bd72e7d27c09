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
use super::settings;

pub async fn job(
    State(edge): State<Edge>,
    JobPath(job): JobPath,
    uri: Uri,
    Bounded(bytes): Bounded<{ body::ORDINARY }>,
) -> Result<Json<Answer>, Problem> {
    Parameters::read(&uri, &[])?;
    let mut spec = super::jobs::manifest(&bytes, &job)?;
    settings::of_jobs(&edge).await?.complete(&mut spec)?;
    Ok(Json(next::foreseen(&edge, spec).await?))
}
