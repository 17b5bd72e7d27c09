//! The route of a run's output: what the caller wishes, and whether there is anything left to tell.

use std::convert::Infallible;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use drumtower_core::model::{Attempt, Run, RunId, WallMs};
use regex::Regex;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

use super::gate::RunPath;
use super::log_lines::{self, MOST_LINES};
use super::log_text::Form;
use super::parts::{self, Parts};
use super::problem::{Kind, Problem};
use super::query::Parameters;
use super::tell::Teller;
use super::{Edge, internal, runs};
use crate::auth::Principal;
use crate::cluster::{self, Caller, InTheNameOf};
use crate::listen::Peer;
use crate::logs::{Chain, Place, Source, Stream};

/// What the caller wants to see.
#[derive(Clone)]
pub struct Wish {
    pub follow: bool,
    attempt: Option<u32>,
    pub stream: Option<Stream>,
    pub since: Option<WallMs>,
    /// Only so many lines from the end of what is there.
    pub tail: Option<usize>,
    /// Only lines in which it is found.
    pub grep: Option<Regex>,
    pub form: Form,
}

impl Wish {
    fn read(uri: &Uri, headers: &HeaderMap) -> Result<Self, Problem> {
        let known = ["follow", "attempt", "stream", "since", "tail", "grep"];
        let parameters = Parameters::read(uri, &known)?;
        let stream = match parameters.text("stream")? {
            None => None,
            Some("stdout") => Some(Stream::Stdout),
            Some("stderr") => Some(Stream::Stderr),
            Some(text) => {
                return Err(Problem::parameter(
                    "stream",
                    format!("stream: `{text}` is neither `stdout` nor `stderr`"),
                ));
            }
        };
        let follow = parameters.flag("follow")?.unwrap_or(false);
        let tail = parameters.one("tail")?;
        if let Some(tail) = tail.filter(|tail| *tail > MOST_LINES) {
            let most = format!("tail: `{tail}` is not between 0 and {MOST_LINES}");
            return Err(Problem::parameter("tail", most));
        }
        Ok(Self {
            follow,
            attempt: parameters.one("attempt")?,
            stream,
            since: parameters.instant("since")?,
            tail,
            grep: parameters
                .text("grep")?
                .map(log_lines::pattern)
                .transpose()?,
            form: Form::wanted(headers),
        })
    }

    pub fn wants(&self, attempt: &Attempt) -> bool {
        self.attempt.is_none_or(|number| number == attempt.number)
    }
}

pub async fn read(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    RunPath(id): RunPath,
    uri: Uri,
    peer: Option<Extension<Peer>>,
    vouched: Option<Extension<Caller>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let wish = Wish::read(&uri, &headers)?;
    let run = runs::find(&edge, &principal, id).await?;
    let vouched = vouched.map(|Extension(caller)| caller);
    if vouched.is_some() && cluster::asks_for_own_part(&headers) {
        return parts::own(&edge, &run, wish.attempt).await;
    }
    if wish.follow && !run.state.is_terminal() {
        // It is written there.
        edge.at_owner(id.segment())?;
    }
    let shown = peer.map(|Extension(peer)| InTheNameOf::new(&headers, peer, principal.is_local()));
    let parts = Parts::of(&edge, &run, shown).await?;
    if run.state.is_terminal() && all_expired(&edge, &run, &wish).await? {
        let wanted = run.attempts.iter().filter(|attempt| wish.wants(attempt));
        if let Some(parts) = &parts
            && wanted.clone().any(|attempt| is_away(&edge, attempt))
        {
            parts.refuse_if_away(&edge, &run, wanted)?;
            return Ok(told(edge, principal, id, wish, Some(parts.clone())));
        }
        return Err(Problem::new(
            Kind::LogExpired,
            format!(
                "the log of {id} has expired: `logs.keep` and `logs.max_bytes` of the server's configuration say when"
            ),
        ));
    }
    Ok(told(edge, principal, id, wish, parts))
}

/// Whether the place of the attempt's end is in another server's files.
fn is_away(edge: &Edge, attempt: &Attempt) -> bool {
    let log = attempt.end.as_ref().and_then(|end| end.log);
    log.is_some_and(|log| log.home.is_some() && log.home != edge.logs.home())
}

fn told(edge: Edge, principal: Principal, id: RunId, wish: Wish, parts: Option<Parts>) -> Response {
    let (out, pieces) = mpsc::channel(4);
    let kind = HeaderValue::from_static(wish.form.content_type());
    tokio::spawn(Teller::new(edge, principal, id, wish, parts, out).tell());
    let body = Body::from_stream(ReceiverStream::new(pieces).map(Ok::<Bytes, Infallible>));
    ([(header::CONTENT_TYPE, kind)], body).into_response()
}

/// Whether there was output and none of it is left here.
async fn all_expired(edge: &Edge, run: &Run, wish: &Wish) -> Result<bool, Problem> {
    let places: Vec<(Chain, Place)> = run
        .attempts
        .iter()
        .filter(|attempt| wish.wants(attempt))
        .filter_map(|attempt| {
            let source = Source {
                run: run.id,
                attempt: attempt.number,
            };
            Some((
                edge.logs.chain(source),
                parts::end_here(edge, source, attempt)?.0,
            ))
        })
        .collect();
    if places.is_empty() {
        let wanted = run.attempts.iter().filter(|attempt| wish.wants(attempt));
        return Ok(wanted.clone().any(|attempt| is_away(edge, attempt)));
    }
    let check = move || {
        places
            .into_iter()
            .map(|(mut chain, place)| chain.holds(place))
            .collect::<Result<Vec<bool>, _>>()
    };
    let held = tokio::task::spawn_blocking(check)
        .await
        .map_err(|error| internal(&error))?;
    Ok(!held.map_err(|error| internal(&error))?.contains(&true))
}
