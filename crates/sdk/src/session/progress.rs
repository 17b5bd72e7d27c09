//! How far attempts say they are: the newest word of each, at most once a second.

use drumtower_core::model::MonoMs;
use drumtower_proto::worker::v1 as wire;
use wire::worker_message::Body;

use super::link::Out;
use super::{Attempt, Session};

/// Between two reports of one attempt.
const EVERY_MS: u64 = 1_000;

#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Without its attempt.
    newest: Option<wire::Progress>,
    /// It waits to be sent.
    queued: bool,
    /// When it was last sent.
    told: Option<MonoMs>,
}

impl Progress {
    /// A server that heard nothing of it hears of it at once.
    pub(super) fn rewind(&mut self) {
        self.queued = false;
        self.told = None;
    }
}

impl Session {
    /// The attempt says how far it is.
    pub fn report_progress(
        &mut self,
        now: MonoMs,
        attempt: Attempt,
        percent: u32,
        message: String,
    ) {
        let Some(held) = self.held.get_mut(&attempt) else {
            return;
        };
        if held.is_finished() {
            return;
        }
        held.heard(now);
        held.progress.newest = Some(wire::Progress {
            attempt: None,
            percent,
            message,
        });
        self.queue_progress(now, attempt);
    }

    pub(super) fn queue_progress(&mut self, now: MonoMs, attempt: Attempt) {
        let Some(held) = self.held.get_mut(&attempt) else {
            return;
        };
        let home = held.home.and_then(|home| self.links.get_mut(&home));
        let Some(link) = home.filter(|link| link.takes_checkpoints) else {
            return;
        };
        let progress = &mut held.progress;
        if progress.newest.is_none() || progress.queued {
            return;
        }
        progress.queued = true;
        match progress.told.map(|told| told.plus(EVERY_MS)) {
            Some(at) if at > now => drop(link.reports.insert((at, attempt))),
            _ => link.outbox.push_back(Out::Progress(attempt)),
        }
    }

    pub(super) fn next_progress(&mut self, now: MonoMs, attempt: Attempt) -> Option<Body> {
        let held = self.held.get_mut(&attempt)?;
        held.progress.queued = false;
        let newest = held.progress.newest.clone()?;
        held.progress.told = Some(now);
        Some(Body::Progress(wire::Progress {
            attempt: Some(held.attempt),
            ..newest
        }))
    }
}
