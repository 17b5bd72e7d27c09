//! A page for each code of a problem: cause, example, remedy. `type` of a problem leads here.
//!
//! The pages are those of the documentation, so that whoever meets a problem reads the words of the version that gave it.

use axum::extract::Path;
use axum::http::{HeaderValue, Uri, header};
use axum::response::IntoResponse;

use super::problem::{Kind, Problem};
use super::query::Parameters;

macro_rules! page {
    ($code:literal) => {
        include_str!(concat!("../../../../docs/problems/", $code, ".md"))
    };
}

pub fn of(kind: Kind) -> &'static str {
    match kind {
        Kind::MalformedJson => page!("malformed_json"),
        Kind::UnknownField => page!("unknown_field"),
        Kind::UnknownParameter => page!("unknown_parameter"),
        Kind::InvalidParameter => page!("invalid_parameter"),
        Kind::InvalidHeader => page!("invalid_header"),
        Kind::Unauthenticated => page!("unauthenticated"),
        Kind::ForbiddenRole => page!("forbidden_role"),
        Kind::ForbiddenNamespace => page!("forbidden_namespace"),
        Kind::OtherSite => page!("other_site"),
        Kind::NoSuchRoute => page!("no_such_route"),
        Kind::NoSuchJob => page!("no_such_job"),
        Kind::NoSuchCalendar => page!("no_such_calendar"),
        Kind::NoSuchRun => page!("no_such_run"),
        Kind::NoSuchLetter => page!("no_such_letter"),
        Kind::NoSuchToken => page!("no_such_token"),
        Kind::NoSuchSetting => page!("no_such_setting"),
        Kind::NoSuchWorker => page!("no_such_worker"),
        Kind::NoSuchLock => page!("no_such_lock"),
        Kind::NoSuchQueue => page!("no_such_queue"),
        Kind::OverlapFull => page!("overlap_full"),
        Kind::BreakerOpen => page!("breaker_open"),
        Kind::NoSuchBackfill => page!("no_such_backfill"),
        Kind::BackfillOver => page!("backfill_over"),
        Kind::BackfillInTheWay => page!("backfill_in_the_way"),
        Kind::LockHeld => page!("lock_held"),
        Kind::LockLost => page!("lock_lost"),
        Kind::NoSuchVersion => page!("no_such_version"),
        Kind::NoSuchProblem => page!("no_such_problem"),
        Kind::MethodNotAllowed => page!("method_not_allowed"),
        Kind::IdempotencyKeyReused => page!("idempotency_key_reused"),
        Kind::RunNotEnded => page!("run_not_ended"),
        Kind::TokenNameTaken => page!("token_name_taken"),
        Kind::CalendarInUse => page!("calendar_in_use"),
        Kind::BackupUnderWay => page!("backup_under_way"),
        Kind::TooManyCalendars => page!("too_many_calendars"),
        Kind::LogExpired => page!("log_expired"),
        Kind::OutputAway => page!("output_away"),
        Kind::Stale => page!("stale"),
        Kind::AlreadyThere => page!("already_there"),
        Kind::TooLarge => page!("too_large"),
        Kind::UnsupportedMediaType => page!("unsupported_media_type"),
        Kind::InvalidField => page!("invalid_field"),
        Kind::Overloaded => page!("overloaded"),
        Kind::TooManyStreams => page!("too_many_streams"),
        Kind::NotReady => page!("not_ready"),
        Kind::Stopping => page!("stopping"),
        Kind::OutcomeUnknown => page!("outcome_unknown"),
        Kind::StoreFailed => page!("store_failed"),
        Kind::BackupFailed => page!("backup_failed"),
        Kind::Internal => page!("internal"),
    }
}

pub async fn show(Path(code): Path<String>, uri: Uri) -> Result<impl IntoResponse, Problem> {
    Parameters::read(&uri, &[])?;
    let Some(kind) = Kind::of_code(&code) else {
        let code: String = code.chars().take(64).collect();
        return Err(Problem::new(
            Kind::NoSuchProblem,
            format!("no problem has the code `{code}`: take it from `code` of an answer"),
        ));
    };
    let text = HeaderValue::from_static("text/markdown; charset=utf-8");
    Ok(([(header::CONTENT_TYPE, text)], of(kind)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_has_its_own_page_with_the_three_parts() {
        for (place, kind) in Kind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, place, "Kind::ALL has every kind, in order");
            let (page, code) = (of(*kind), kind.code());
            let title = format!("# {code}\n");
            assert!(page.starts_with(&title), "{code}: begins with `{title}`");
            let status = format!("Status {}", kind.status().as_u16());
            assert!(page.contains(&status), "{code}: says `{status}`");
            for part in ["## Cause\n", "## Example\n", "## Remedy\n"] {
                assert!(page.contains(part), "{code}: lacks `{}`", part.trim());
            }
        }
        assert_eq!(Kind::ALL.last(), Some(&Kind::Internal));
    }

    #[test]
    fn each_page_belongs_to_a_code() {
        let pages = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/problems");
        for entry in std::fs::read_dir(pages).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let code = name.strip_suffix(".md").unwrap();
            assert!(code == "README" || Kind::of_code(code).is_some(), "{name}");
        }
    }
}
