//! Frames: as many messages as wait, within the bound.

use drumtower_core::model::{Limits, Now};
use drumtower_proto::worker::v1 as wire;
use prost::Message;

use crate::session::{LinkId, Session};

/// Room for a message's own tag and length.
const OVERHEAD_BYTES: usize = 8;
const MESSAGES_MAX: usize = 4096;

/// Takes messages for one link out of a session, a frame at a time.
#[derive(Default)]
pub(super) struct Framer {
    /// It did not fit into the last frame.
    left_over: Option<wire::WorkerMessage>,
}

impl Framer {
    /// A new stream starts with nothing left over.
    pub(super) fn reset(&mut self) {
        self.left_over = None;
    }

    /// The next frame, if there is anything to say.
    pub(super) fn next(
        &mut self,
        session: &mut Session,
        link: LinkId,
        now: Now,
    ) -> Option<wire::WorkerFrame> {
        let mut messages = Vec::new();
        let mut bytes = 0;
        while messages.len() < MESSAGES_MAX
            && let Some(message) = self
                .left_over
                .take()
                .or_else(|| session.poll_transmit(now, link))
        {
            let length = message.encoded_len() + OVERHEAD_BYTES;
            if bytes + length > Limits::FRAME_BYTES && !messages.is_empty() {
                self.left_over = Some(message);
                break;
            }
            bytes += length;
            messages.push(message);
        }
        (!messages.is_empty()).then_some(wire::WorkerFrame { messages })
    }
}
