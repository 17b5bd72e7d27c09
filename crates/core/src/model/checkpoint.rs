//! What a run can go on from, in its task's own words. The run itself carries only a [`CheckpointMark`](super::CheckpointMark).

use std::fmt;
use std::sync::Arc;

#[derive(Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// From 1, growing over all attempts of the run.
    pub number: u64,
    /// Bounded by [`Limits::CHECKPOINT_BYTES`](super::Limits::CHECKPOINT_BYTES).
    pub body: Arc<[u8]>,
}

/// Bodies are not for logs.
impl fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, bytes) = (self.number, self.body.len());
        write!(f, "Checkpoint({number}, {bytes} bytes)")
    }
}
