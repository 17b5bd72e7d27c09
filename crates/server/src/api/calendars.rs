//! Routes of calendars.

use std::sync::LazyLock;

use axum::Extension;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use drumtower_core::engine::{Command, Refusal, Reply};
use drumtower_core::model::{
    CalendarName, CalendarRef, CalendarSpec, CalendarVersion, Limits, NamespaceName, SegmentSet,
    SweepCause, SweepRow,
};
use drumtower_store::Read;

use super::Edge;
use super::body::{self, Bounded};
use super::calendar_view::{Calendar, Full, Version};
use super::gate::{CalendarPath, NamespacePath};
use super::jobs::unexpected;
use super::page::{self, Page};
use super::precondition::CALENDAR;
use super::problem::Problem;
use super::query::Parameters;
use super::time;
use crate::auth::Principal;

pub async fn put(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    CalendarPath(calendar): CalendarPath,
    uri: Uri,
    headers: HeaderMap,
    Bounded(bytes): Bounded<{ body::ORDINARY }>,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    let condition = CALENDAR.condition(&headers)?;
    let spec = manifest(&bytes, &calendar)?;
    let command = Command::PutCalendar { spec, condition };
    match edge.handle.command(principal.actor, command).await?? {
        Reply::Calendar { version, created } => {
            let seen = edge.read(move |store| look_up(store, &calendar)).await?;
            let status = if created {
                StatusCode::CREATED
            } else {
                StatusCode::OK
            };
            Ok((status, shown(&version, &seen)).into_response())
        }
        other => Err(unexpected(&other)),
    }
}

fn manifest(bytes: &[u8], calendar: &CalendarRef) -> Result<CalendarSpec, Problem> {
    let (namespace, name) = (calendar.namespace.as_str(), calendar.name.as_str());
    let spec: CalendarSpec = body::manifest(bytes, "Calendar", namespace, name)?;
    spec.days()?;
    Ok(spec)
}

pub async fn show(
    State(edge): State<Edge>,
    CalendarPath(calendar): CalendarPath,
    uri: Uri,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    let wanted = calendar.clone();
    let read = move |store: &dyn Read| {
        let newest = store.calendar_versions(&wanted)?.pop();
        Ok((newest, look_up(store, &wanted)?))
    };
    match edge.read(read).await? {
        (Some(version), seen) if !version.deleted => Ok(shown(&version, &seen).into_response()),
        _ => Err(Refusal::NoSuchCalendar(calendar).into()),
    }
}

/// What is known of a calendar beside its versions.
struct Seen {
    sweep: Option<SweepRow>,
    jobs: usize,
}

fn look_up(store: &dyn Read, calendar: &CalendarRef) -> Result<Seen, drumtower_store::Error> {
    let cause = SweepCause::Calendar(calendar.clone());
    let mut sweeps = store.sweeps()?.into_iter();
    Ok(Seen {
        sweep: sweeps.find(|sweep| sweep.cause == cause),
        jobs: store
            .calendar_users(&SegmentSet::ALL, calendar, None, Limits::PAGE_ROWS)?
            .len(),
    })
}

fn shown(version: &CalendarVersion, seen: &Seen) -> impl IntoResponse + use<> {
    let calendar = Full::new(version, seen.sweep.as_ref(), seen.jobs, time::now());
    (
        [(header::ETAG, CALENDAR.etag(version.version.into()))],
        Json(calendar).into_response(),
    )
}

pub async fn delete(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    CalendarPath(calendar): CalendarPath,
    uri: Uri,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    Parameters::read(&uri, &[])?;
    let condition = CALENDAR.condition_on_existing(&headers)?;
    let command = Command::DeleteCalendar {
        calendar,
        condition,
    };
    edge.handle.command(principal.actor, command).await??;
    Ok(StatusCode::NO_CONTENT)
}

/// The versions that are kept, newest first; also of a calendar that was deleted.
pub async fn versions(
    State(edge): State<Edge>,
    CalendarPath(calendar): CalendarPath,
    uri: Uri,
) -> Result<Response, Problem> {
    let parameters = Parameters::read(&uri, &["limit", "cursor"])?;
    let limit = parameters.limit()?;
    let listing = page::listing(&edge, &uri, &parameters);
    let before = listing.version_before(&parameters)?;
    let wanted = calendar.clone();
    let mut versions = edge
        .read(move |store| store.calendar_versions(&wanted))
        .await?;
    if versions.is_empty() {
        return Err(Refusal::NoSuchCalendar(calendar).into());
    }
    versions.reverse();
    versions.retain(|version| version.version < before);
    let more = versions.len() > limit;
    versions.truncate(limit);
    let last = versions.last().filter(|_| more);
    let page = Page {
        items: versions.iter().map(Version::from).collect(),
        next: last.map(|version| listing.encode(&version.version.to_string())),
    };
    Ok(Json(page).into_response())
}

pub async fn list(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
) -> Result<Response, Problem> {
    let parameters = Parameters::read(&uri, &["namespace", "limit", "cursor"])?;
    let namespace = principal.narrow(parameters.one("namespace")?)?;
    page(&edge, namespace, &uri, &parameters).await
}

pub async fn list_namespace(
    State(edge): State<Edge>,
    NamespacePath(namespace): NamespacePath,
    uri: Uri,
) -> Result<Response, Problem> {
    let parameters = Parameters::read(&uri, &["limit", "cursor"])?;
    page(&edge, Some(namespace), &uri, &parameters).await
}

async fn page(
    edge: &Edge,
    namespace: Option<NamespaceName>,
    uri: &Uri,
    parameters: &Parameters,
) -> Result<Response, Problem> {
    let listing = page::listing(edge, uri, parameters);
    let after = parameters.text("cursor")?;
    let after = after
        .map(|cursor| place(&listing.decode(cursor)?))
        .transpose()?;
    let limit = parameters.limit()?;
    let (versions, sweeps) = edge
        .read(|store| Ok((store.calendars()?, store.sweeps()?)))
        .await?;
    let asked_for = |version: &CalendarVersion| {
        let calendar = version.calendar();
        namespace
            .as_ref()
            .is_none_or(|namespace| *namespace == calendar.namespace)
            && after.as_ref().is_none_or(|after| calendar > *after)
    };
    let mut newest: Vec<CalendarVersion> = newest(versions).filter(asked_for).collect();
    let more = newest.len() > limit;
    newest.truncate(limit);
    let next = newest.last().filter(|_| more).map(|version| {
        let CalendarRef { namespace, name } = version.calendar();
        listing.encode(&format!("{namespace}/{name}"))
    });
    let sweep = |version: &CalendarVersion| {
        let cause = SweepCause::Calendar(version.calendar());
        sweeps.iter().find(move |sweep| sweep.cause == cause)
    };
    let items = newest
        .iter()
        .map(|version| Calendar::new(version, sweep(version)))
        .collect();
    Ok(Json(Page { items, next }).into_response())
}

/// The newest version of each calendar that is not deleted. The versions come in order of calendar and number.
fn newest(versions: Vec<CalendarVersion>) -> impl Iterator<Item = CalendarVersion> {
    let mut newest: Vec<CalendarVersion> = Vec::new();
    for version in versions {
        match newest.last_mut() {
            Some(last) if last.calendar() == version.calendar() => *last = version,
            _ => newest.push(version),
        }
    }
    newest.into_iter().filter(|version| !version.deleted)
}

/// The place in the order of calendars that a cursor stands for. It chooses no namespace: the filter does.
fn place(place: &str) -> Result<CalendarRef, Problem> {
    let (namespace, name) = place.split_once('/').unwrap_or_default();
    Ok(CalendarRef {
        namespace: NamespaceName::new(namespace)?,
        name: CalendarName::new(name)?,
    })
}

static SCHEMA: LazyLock<String> =
    LazyLock::new(|| schemars::schema_for!(CalendarSpec).as_value().to_string());

/// The JSON schema of the manifest.
pub async fn schema(uri: Uri) -> Result<impl IntoResponse, Problem> {
    Parameters::read(&uri, &[])?;
    let kind = HeaderValue::from_static("application/schema+json");
    Ok(([(header::CONTENT_TYPE, kind)], SCHEMA.as_str()))
}
