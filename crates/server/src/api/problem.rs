//! Refusals as callers see them: RFC 9457 problems with stable codes. Every error of the edge becomes one here.

use std::borrow::Cow;

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use drumtower_core::engine::Refusal;
use drumtower_core::model::{IdError, NameError, SegmentSet, SpecError};
use schemars::JsonSchema;
use serde::Serialize;

use crate::auth::{Denied, TooMany};
use crate::cluster::Missing;
use crate::driver::Unavailable;

/// What went wrong, in the words of the contract. The code is for programs, the detail for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub kind: Kind,
    pub detail: Cow<'static, str>,
    /// The key that offends, as a user would write its path.
    pub field: Option<String>,
    pub retry_after_s: Option<u64>,
    /// Nothing was done, because other servers own what it takes.
    pub elsewhere: Option<Box<Missing>>,
}

/// The closed set of codes. Each has a page in `problem_pages`, and a test that provokes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    MalformedJson,
    UnknownField,
    UnknownParameter,
    InvalidParameter,
    InvalidHeader,
    Unauthenticated,
    ForbiddenRole,
    ForbiddenNamespace,
    OtherSite,
    NoSuchRoute,
    NoSuchJob,
    NoSuchCalendar,
    NoSuchRun,
    NoSuchLetter,
    NoSuchToken,
    NoSuchSetting,
    NoSuchVersion,
    NoSuchProblem,
    NoSuchWorker,
    NoSuchLock,
    NoSuchQueue,
    NoSuchBackfill,
    MethodNotAllowed,
    IdempotencyKeyReused,
    RunNotEnded,
    OverlapFull,
    BreakerOpen,
    LockHeld,
    LockLost,
    BackfillOver,
    BackfillInTheWay,
    TokenNameTaken,
    CalendarInUse,
    BackupUnderWay,
    TooManyCalendars,
    LogExpired,
    OutputAway,
    Stale,
    AlreadyThere,
    TooLarge,
    UnsupportedMediaType,
    InvalidField,
    Overloaded,
    TooManyStreams,
    NotReady,
    Stopping,
    OutcomeUnknown,
    StoreFailed,
    BackupFailed,
    Internal,
}

impl Kind {
    pub const ALL: &[Self] = &[
        Self::MalformedJson,
        Self::UnknownField,
        Self::UnknownParameter,
        Self::InvalidParameter,
        Self::InvalidHeader,
        Self::Unauthenticated,
        Self::ForbiddenRole,
        Self::ForbiddenNamespace,
        Self::OtherSite,
        Self::NoSuchRoute,
        Self::NoSuchJob,
        Self::NoSuchCalendar,
        Self::NoSuchRun,
        Self::NoSuchLetter,
        Self::NoSuchToken,
        Self::NoSuchSetting,
        Self::NoSuchVersion,
        Self::NoSuchProblem,
        Self::NoSuchWorker,
        Self::NoSuchLock,
        Self::NoSuchQueue,
        Self::NoSuchBackfill,
        Self::MethodNotAllowed,
        Self::IdempotencyKeyReused,
        Self::RunNotEnded,
        Self::OverlapFull,
        Self::BreakerOpen,
        Self::LockHeld,
        Self::LockLost,
        Self::BackfillOver,
        Self::BackfillInTheWay,
        Self::TokenNameTaken,
        Self::CalendarInUse,
        Self::BackupUnderWay,
        Self::TooManyCalendars,
        Self::LogExpired,
        Self::OutputAway,
        Self::Stale,
        Self::AlreadyThere,
        Self::TooLarge,
        Self::UnsupportedMediaType,
        Self::InvalidField,
        Self::Overloaded,
        Self::TooManyStreams,
        Self::NotReady,
        Self::Stopping,
        Self::OutcomeUnknown,
        Self::StoreFailed,
        Self::BackupFailed,
        Self::Internal,
    ];

    /// Status, code and title.
    fn parts(self) -> (StatusCode, &'static str, &'static str) {
        use StatusCode as S;
        match self {
            Self::MalformedJson => (S::BAD_REQUEST, "malformed_json", "The body is not JSON"),
            Self::UnknownField => (S::BAD_REQUEST, "unknown_field", "Unknown key in the body"),
            Self::UnknownParameter => (
                S::BAD_REQUEST,
                "unknown_parameter",
                "Unknown query parameter",
            ),
            Self::InvalidParameter => (S::BAD_REQUEST, "invalid_parameter", "Invalid parameter"),
            Self::InvalidHeader => (S::BAD_REQUEST, "invalid_header", "Invalid header"),
            Self::Unauthenticated => (S::UNAUTHORIZED, "unauthenticated", "A token is needed"),
            Self::ForbiddenRole => (
                S::FORBIDDEN,
                "forbidden_role",
                "The token's role does not allow this",
            ),
            Self::ForbiddenNamespace => (
                S::FORBIDDEN,
                "forbidden_namespace",
                "The token is bound to another namespace",
            ),
            Self::OtherSite => (
                S::FORBIDDEN,
                "other_site",
                "A session acts only from the console",
            ),
            Self::NoSuchRoute => (S::NOT_FOUND, "no_such_route", "No such route"),
            Self::NoSuchJob => (S::NOT_FOUND, "no_such_job", "No such job"),
            Self::NoSuchCalendar => (S::NOT_FOUND, "no_such_calendar", "No such calendar"),
            Self::NoSuchRun => (S::NOT_FOUND, "no_such_run", "No such run"),
            Self::NoSuchLetter => (S::NOT_FOUND, "no_such_letter", "No such dead letter"),
            Self::NoSuchToken => (S::NOT_FOUND, "no_such_token", "No such token"),
            Self::NoSuchWorker => (S::NOT_FOUND, "no_such_worker", "No such worker"),
            Self::NoSuchLock => (S::NOT_FOUND, "no_such_lock", "Nobody holds the lock"),
            Self::NoSuchQueue => (S::NOT_FOUND, "no_such_queue", "No such queue"),
            Self::NoSuchBackfill => (S::NOT_FOUND, "no_such_backfill", "No such backfill"),
            Self::NoSuchSetting => (S::NOT_FOUND, "no_such_setting", "No such setting"),
            Self::NoSuchVersion => (S::NOT_FOUND, "no_such_version", "No such version"),
            Self::NoSuchProblem => (S::NOT_FOUND, "no_such_problem", "No such problem"),
            Self::MethodNotAllowed => (
                S::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                "Method not allowed",
            ),
            Self::IdempotencyKeyReused => (
                S::CONFLICT,
                "idempotency_key_reused",
                "The key was used for another request",
            ),
            Self::RunNotEnded => (S::CONFLICT, "run_not_ended", "The run has not ended"),
            Self::OverlapFull => (
                S::CONFLICT,
                "overlap_full",
                "As many runs as may be have not ended",
            ),
            Self::BreakerOpen => (
                S::CONFLICT,
                "breaker_open",
                "The job's circuit breaker is open",
            ),
            Self::LockHeld => (S::CONFLICT, "lock_held", "Another holds the lock"),
            Self::LockLost => (S::CONFLICT, "lock_lost", "The hold is over"),
            Self::BackfillOver => (S::CONFLICT, "backfill_over", "The backfill is over"),
            Self::BackfillInTheWay => (
                S::CONFLICT,
                "backfill_in_the_way",
                "Another backfill has the interval",
            ),
            Self::TokenNameTaken => (S::CONFLICT, "token_name_taken", "The name is taken"),
            Self::CalendarInUse => (S::CONFLICT, "calendar_in_use", "Jobs use the calendar"),
            Self::BackupUnderWay => (S::CONFLICT, "backup_under_way", "A backup is being made"),
            Self::TooManyCalendars => (
                S::CONFLICT,
                "too_many_calendars",
                "There are too many calendars",
            ),
            Self::LogExpired => (S::GONE, "log_expired", "The log has expired"),
            Self::OutputAway => (
                S::SERVICE_UNAVAILABLE,
                "output_away",
                "The output lies with a server that is not there",
            ),
            Self::Stale => (S::PRECONDITION_FAILED, "stale", "It has changed"),
            Self::AlreadyThere => (S::PRECONDITION_FAILED, "already_there", "It exists"),
            Self::TooLarge => (S::PAYLOAD_TOO_LARGE, "too_large", "The body is too large"),
            Self::UnsupportedMediaType => (
                S::UNSUPPORTED_MEDIA_TYPE,
                "unsupported_media_type",
                "Not JSON",
            ),
            Self::InvalidField => (
                S::UNPROCESSABLE_ENTITY,
                "invalid_field",
                "A value is not allowed",
            ),
            Self::Overloaded => (
                S::TOO_MANY_REQUESTS,
                "overloaded",
                "The server has too much to do",
            ),
            Self::TooManyStreams => (
                S::TOO_MANY_REQUESTS,
                "too_many_streams",
                "Too many streams are open",
            ),
            Self::NotReady => (
                S::SERVICE_UNAVAILABLE,
                "not_ready",
                "The server is not ready",
            ),
            Self::Stopping => (S::SERVICE_UNAVAILABLE, "stopping", "The server is stopping"),
            Self::OutcomeUnknown => (
                S::SERVICE_UNAVAILABLE,
                "outcome_unknown",
                "The outcome is unknown",
            ),
            Self::StoreFailed => (
                S::SERVICE_UNAVAILABLE,
                "store_failed",
                "The store did not answer",
            ),
            Self::BackupFailed => (
                S::SERVICE_UNAVAILABLE,
                "backup_failed",
                "The backup could not be made",
            ),
            Self::Internal => (S::INTERNAL_SERVER_ERROR, "internal", "Internal error"),
        }
    }

    pub fn status(self) -> StatusCode {
        self.parts().0
    }

    pub fn code(self) -> &'static str {
        self.parts().1
    }

    pub fn title(self) -> &'static str {
        self.parts().2
    }

    pub fn of_code(code: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.code() == code)
    }
}

impl Problem {
    pub fn new(kind: Kind, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            field: None,
            retry_after_s: None,
            elsewhere: None,
        }
    }

    /// What only the owner of these segments can do or tell.
    pub fn elsewhere(segments: SegmentSet) -> Self {
        Refusal::Elsewhere(Box::new(segments)).into()
    }

    pub fn field(field: impl Into<String>, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            field: Some(field.into()),
            ..Self::new(Kind::InvalidField, detail)
        }
    }

    pub fn parameter(name: &str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            field: Some(name.to_owned()),
            ..Self::new(Kind::InvalidParameter, detail)
        }
    }

    pub fn body(&self) -> Body<'_> {
        let (status, code, title) = self.kind.parts();
        let field = self.field.as_deref();
        Body {
            kind: format!("{PAGES}{code}"),
            title,
            status: status.as_u16(),
            code,
            detail: &self.detail,
            field,
        }
    }
}

/// Where the pages about problems are.
const PAGES: &str = "/api/v1/problems/";

/// A problem's JSON, also within the answer of a batch.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub struct Body<'a> {
    /// Where to read about it, on this server.
    #[serde(rename = "type")]
    #[schemars(extend("format" = "uri-reference"))]
    kind: String,
    title: &'static str,
    #[schemars(range(min = 400, max = 599))]
    status: u16,
    /// Stable, for programs.
    #[schemars(extend("enum" = Kind::ALL.iter().map(|kind| kind.code()).collect::<Vec<_>>()))]
    code: &'static str,
    /// For people: what offends and what to do.
    detail: &'a str,
    /// The key or parameter that offends, as one would write its path.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.body()).unwrap_or_default();
        let mut response = (self.kind.status(), body).into_response();
        // For whoever counts refusals.
        response.extensions_mut().insert(self.kind);
        if let Some(missing) = self.elsewhere {
            response.extensions_mut().insert(*missing);
        }
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        let mut add = |name: HeaderName, value: String| {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(name, value);
            }
        };
        if let Some(seconds) = self.retry_after_s {
            add(header::RETRY_AFTER, seconds.to_string());
        }
        if self.kind == Kind::Unauthenticated {
            add(header::WWW_AUTHENTICATE, "Bearer".to_owned());
        }
        response
    }
}

impl From<TooMany> for Problem {
    fn from(many: TooMany) -> Self {
        Self {
            retry_after_s: Some(many.retry_after_s),
            ..Self::new(
                Kind::Overloaded,
                "too many wrong tokens are shown at once: check yours and try again",
            )
        }
    }
}

impl From<Denied> for Problem {
    fn from(denied: Denied) -> Self {
        let kind = match denied {
            Denied::NoToken | Denied::UnknownToken | Denied::SessionEnded => Kind::Unauthenticated,
            Denied::OtherSite => Kind::OtherSite,
            Denied::Role { .. } => Kind::ForbiddenRole,
            Denied::Namespace { .. } => Kind::ForbiddenNamespace,
        };
        Self::new(kind, denied.to_string())
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let kind = match &refusal {
            Refusal::Elsewhere(segments) => {
                return Self {
                    retry_after_s: Some(1),
                    elsewhere: Some(Box::new(Missing(**segments))),
                    ..Self::new(Kind::NotReady, refusal.to_string())
                };
            }
            Refusal::NoSuchJob(_) => Kind::NoSuchJob,
            Refusal::NoSuchCalendar(_) => Kind::NoSuchCalendar,
            Refusal::NoSuchQueue(_) => Kind::NoSuchQueue,
            Refusal::QueueThere(_) => Kind::AlreadyThere,
            Refusal::StaleQueue { .. } => Kind::Stale,
            Refusal::CalendarThere(_) => Kind::AlreadyThere,
            Refusal::CalendarInUse { .. } => Kind::CalendarInUse,
            Refusal::StaleCalendar { .. } => Kind::Stale,
            Refusal::TooManyCalendars(_) => Kind::TooManyCalendars,
            Refusal::NoSuchRun(_) => Kind::NoSuchRun,
            Refusal::NoSuchLetter(_) => Kind::NoSuchLetter,
            Refusal::NoSuchBackfill(_) => Kind::NoSuchBackfill,
            Refusal::BackfillOver { .. } => Kind::BackfillOver,
            Refusal::BackfillInTheWay(_) => Kind::BackfillInTheWay,
            Refusal::StaleBackfill { .. } => Kind::Stale,
            Refusal::TooManyBackfills(_) => {
                return Self {
                    retry_after_s: Some(60),
                    ..Self::new(Kind::Overloaded, refusal.to_string())
                };
            }
            Refusal::NoSuchToken(_) => Kind::NoSuchToken,
            Refusal::NoSuchWorker(_) => Kind::NoSuchWorker,
            Refusal::Invalid(error) => return error.clone().into(),
            Refusal::Stale { .. } | Refusal::StaleSetting { .. } => Kind::Stale,
            Refusal::NoSuchSetting(_) => Kind::NoSuchSetting,
            Refusal::AlreadyThere(_) | Refusal::SettingThere(_) => Kind::AlreadyThere,
            Refusal::KeyReused(_) => Kind::IdempotencyKeyReused,
            Refusal::TokenNameTaken(_) => Kind::TokenNameTaken,
            Refusal::OverlapFull { .. } | Refusal::TooManyOverlapKeys(_) => Kind::OverlapFull,
            Refusal::BreakerOpen { .. } => Kind::BreakerOpen,
            Refusal::LockHeld(_) => Kind::LockHeld,
            Refusal::LockLost(_) => Kind::LockLost,
            Refusal::TooManyLocks(_)
            | Refusal::TooManyWaiters(_)
            | Refusal::TooManyWaitersInNamespace(_)
            | Refusal::TooManyDrains(_) => {
                return Self {
                    retry_after_s: Some(1),
                    ..Self::new(Kind::Overloaded, refusal.to_string())
                };
            }
        };
        Self::new(kind, refusal.to_string())
    }
}

impl From<SpecError> for Problem {
    fn from(error: SpecError) -> Self {
        let detail = error.to_string();
        Self::field(error.field, detail)
    }
}

impl From<Unavailable> for Problem {
    fn from(unavailable: Unavailable) -> Self {
        let detail = unavailable.to_string();
        let (kind, retry_after_s) = match unavailable {
            Unavailable::Overloaded { retry_after_s } => (Kind::Overloaded, Some(retry_after_s)),
            Unavailable::OutcomeUnknown => (Kind::OutcomeUnknown, None),
            Unavailable::NotReady(_) => (Kind::NotReady, Some(1)),
            Unavailable::Stopping => (Kind::Stopping, Some(1)),
        };
        Self {
            retry_after_s,
            ..Self::new(kind, detail)
        }
    }
}

impl From<drumtower_store::Error> for Problem {
    fn from(error: drumtower_store::Error) -> Self {
        tracing::error!(%error, "a read failed");
        Self::new(
            Kind::StoreFailed,
            format!("the store could not be read: {error}"),
        )
    }
}

impl From<NameError> for Problem {
    fn from(error: NameError) -> Self {
        Self::new(Kind::InvalidParameter, error.to_string())
    }
}

impl From<IdError> for Problem {
    fn from(error: IdError) -> Self {
        Self::new(Kind::InvalidParameter, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(problem: Problem) -> (u16, String) {
        let response = problem.into_response();
        let retry = response.headers().get(header::RETRY_AFTER);
        let retry = retry.map_or("", |value| value.to_str().unwrap()).to_owned();
        (response.status().as_u16(), retry)
    }

    #[test]
    fn overload_asks_to_come_back_later() {
        let overloaded = Unavailable::Overloaded { retry_after_s: 7 };
        assert_eq!(answered(overloaded.into()), (429, "7".to_owned()));
    }

    #[test]
    fn what_cannot_be_answered_is_unavailable() {
        let stopping = Problem::from(Unavailable::Stopping);
        assert_eq!(answered(stopping), (503, "1".to_owned()));
        let not_ready = Problem::from(Unavailable::NotReady("disk full".to_owned()));
        assert_eq!(answered(not_ready), (503, "1".to_owned()));
        let unknown = Problem::from(Unavailable::OutcomeUnknown);
        assert_eq!(unknown.kind, Kind::OutcomeUnknown);
        assert_eq!(
            answered(unknown),
            (503, String::new()),
            "to be read before it is repeated"
        );
    }
}
