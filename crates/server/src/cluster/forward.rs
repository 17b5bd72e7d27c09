//! Carries a request out wherever what it takes is owned: here if it can be, else with the server that has it.
//!
//! ```text
//! tried here ──done──► answered
//!     │ another server's ◄────────────────────────────────────────────┐
//!     ▼                                                               │ "not mine", with what that one lacks,
//! owner by the view ──► sent ──answer──► answered                     │ or not reached: nothing was done
//!     │ nobody, for now   └───────────────────────────────────────────┤
//!     └──waits──► tried here again, or sent, for 15 s ────────────────┘
//! ```
//!
//! The view says where to ask; the asked server says whether it owns. One that another server sent on is carried out here or
//! refused, and never sent further.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use drumtower_core::model::SegmentSet;
use tokio::time::Instant;

use super::Cluster;
use super::held::{Errand, Held, Said, unanswered};
use super::missing::Missing;
use super::route::{self, Needs, Next};
use crate::api::{Kind, Problem};
use crate::auth::Repeats;
use crate::driver::Health;

/// Longer than a take-over takes.
pub const OWNER_WITHIN: Duration = Duration::from_secs(15);
/// Between two tries while the view stays as it is.
pub const AGAIN_AFTER: Duration = Duration::from_millis(100);

impl Cluster {
    /// Carries a request out; `here` is this server's own handler. `local` says that it comes from the machine's own admin,
    /// `repeats` what would come of it if it was sent twice.
    pub async fn carry_out<F: Future<Output = Response> + Send>(
        &self,
        head: Parts,
        body: Bytes,
        local: bool,
        repeats: Repeats,
        here: impl Fn(Request) -> F,
    ) -> Response {
        let Some(mut held) = Held::new(self, head.clone(), body.clone(), local) else {
            return here(Request::from_parts(head, body.into())).await;
        };
        let errand = Errand(Arc::new(held.clone()));
        let mut until = Instant::now() + OWNER_WITHIN;
        let (mut needs, mut last) = (Needs::Unknown, None);
        // Whoever asked must not be told that nothing was done once it was sent and not answered.
        let mut is_unknown = false;
        let mut why = "no server owns what this is about at the moment".to_owned();
        while Instant::now() < until {
            let next = self.next(&needs);
            if last.as_ref() == Some(&(needs.clone(), next.clone())) {
                self.pause().await;
            }
            last = Some((needs.clone(), next.clone()));
            let tried = Instant::now();
            match next {
                // The view may be older than the truth, which this server's own engine tells at little cost.
                Next::Here | Next::Nobody => {
                    let mut request = held.here();
                    request.extensions_mut().insert(errand.clone());
                    let response = here(request).await;
                    match self.undone(&response) {
                        Some(missing) => needs.learn(&missing.0),
                        None if is_unknown && says_undone(&response) => break,
                        None => return response,
                    }
                }
                Next::At(address) => {
                    held.number(repeats);
                    let again = held.may_be_repeated(repeats);
                    match held.send(self, &address, again).await {
                        Said::Answer(response) if is_unknown && says_undone(&response) => break,
                        Said::Answer(response) => return response,
                        Said::NotMine(missing) => {
                            needs.learn(&missing.0);
                            why = format!("{address} does not own what this is about");
                        }
                        Said::Nothing(reason) => why = reason,
                        Said::CutOff(reason) => {
                            is_unknown = !held.only_reads();
                            why = reason;
                        }
                    }
                }
            }
            // Who waited for a lock until its owner changed was not kept waiting for an owner till then.
            if tried.elapsed() > OWNER_WITHIN {
                until = Instant::now() + OWNER_WITHIN;
            }
        }
        if is_unknown {
            return unanswered().into_response();
        }
        Problem::new(Kind::NotReady, format!("{why}: try again")).into_response()
    }

    /// What this server lacked, or that its segments moved while the request waited. One that cannot commit says so at once.
    fn undone(&self, response: &Response) -> Option<Missing> {
        let inner = self.inner.as_ref()?;
        let told = response.extensions().get::<Missing>().cloned();
        told.or_else(|| {
            let is_ready = *inner.health.borrow() == Health::Ready;
            let is_not_ready = response.extensions().get() == Some(&Kind::NotReady);
            (is_ready && is_not_ready).then_some(Missing(SegmentSet::NONE))
        })
    }

    fn next(&self, needs: &Needs) -> Next {
        let Some(inner) = self.inner.as_ref() else {
            return Next::Here;
        };
        route::next(needs, &inner.view.borrow(), inner.own.as_deref())
    }

    /// Until it may be otherwise than it was.
    pub async fn pause(&self) {
        let Some(inner) = self.inner.as_ref() else {
            return;
        };
        let mut health = inner.health.clone();
        let was = health.borrow_and_update().clone();
        tokio::select! {
            _ = health.wait_for(|now| *now != was && *now != Health::Starting) => {}
            () = tokio::time::sleep(AGAIN_AFTER) => {}
        }
    }
}

/// Whether an answer tells its caller that nothing was done: the server has too much to do, ends, or is not ready. It speaks of
/// this time, and not of the time before.
fn says_undone(response: &Response) -> bool {
    let status = response.status();
    status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::SERVICE_UNAVAILABLE
}
