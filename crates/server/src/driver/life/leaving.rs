//! Ends a life: in good order, when everything is given up in its last commit so that nobody has to wait for the session's end,
//! or as it is.

use std::sync::Arc;

use super::super::handle::{Health, Unavailable};
use super::{End, Life, Work, guarded};

/// Why a server leaves the others although nobody stops it.
#[derive(Clone, Debug, thiserror::Error)]
pub(in super::super) enum Left {
    /// A newer program has made of the store what this one may not write to. That is for good.
    #[error("{0}")]
    Outdated(String),
    /// The clock of this machine is far from the database's. It comes back when that is right.
    #[error("{0}; this server works on nothing until then")]
    FarOff(String),
}

impl Life<'_> {
    /// Whether nothing is to be stepped, and only what was decided to be committed.
    pub(super) fn is_finishing(&self) -> bool {
        self.shares.change.is_some() || self.leaving.is_some()
    }

    /// Nothing more is decided from here on.
    pub(super) fn begin_to_leave(&mut self, left: Left) {
        if matches!(left, Left::Outdated(_)) {
            // What the store does not take of an old program it will not take later either.
            self.around.writer.give_up_retries();
        }
        self.leaving.get_or_insert(left);
    }

    /// Gives the segments up. Should it not go through, others wait for the end of the session.
    pub(super) async fn leave(self) {
        let engine = self.engine;
        if let Ok(changes) = guarded(move || engine.leave()) {
            let _ = self.around.writer.commit(Arc::new(changes)).await;
        }
    }

    /// Leaves although nobody stops the server; whoever stops it meanwhile is heard.
    pub(super) async fn go(mut self, left: Left) -> End {
        *self.around.believed_offset = Some(self.engine.believed_offset());
        self.around
            .health
            .send_replace(Health::Impaired(left.to_string()));
        self.refuse_all(&Unavailable::NotReady(left.to_string()));
        let Self {
            engine,
            around,
            mut stopping,
            ..
        } = self;
        if let Ok(changes) = guarded(move || engine.leave()) {
            let mut commit = around.writer.commit(Arc::new(changes));
            loop {
                tokio::select! {
                    _ = &mut commit => break,
                    Some(stop) = around.stops.recv() => {
                        stopping = Some(stop);
                        around.writer.give_up_retries();
                    }
                }
            }
        }
        match stopping {
            Some(stop) => End::Stopped(stop),
            None => End::Left(left),
        }
    }

    /// All state is dropped; who waits is told.
    pub(super) fn end(mut self, why: Unavailable) -> End {
        *self.around.believed_offset = Some(self.engine.believed_offset());
        // Before anyone is answered, so that nobody who comes back finds it well.
        self.around
            .health
            .send_replace(Health::Impaired(why.to_string()));
        if let Some(flight) = self.flight.take() {
            self.around.performer.outcome_unknown(flight.effects);
            self.around.outlet.unknown(&flight.told);
        }
        self.refuse_all(&why);
        match (self.stopping.take(), self.leaving.take()) {
            (Some(stop), _) => End::Stopped(stop),
            (None, Some(left)) => End::Left(left),
            (None, None) => End::Reset(why),
        }
    }

    fn refuse_all(&mut self, why: &Unavailable) {
        for work in self.queue.drain(..) {
            if let Work::Message(message) = work {
                message.refuse(why);
            }
        }
        self.around.performer.drop_all(why);
    }
}
