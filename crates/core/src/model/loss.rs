//! How the server concluded that an attempt will not be heard of again.
//!
//! What is kept of it are words; they are read back to tell people which evidence there was.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// Nothing was heard of the worker for a whole lease, or it left.
    LeaseEnded,
    /// The worker had been given the attempt and does not name it any more: it was started anew, or lost its memory.
    Forgotten,
    /// It was sent on a connection that broke, and the worker never got it.
    NeverArrived,
}

impl LossCause {
    const ALL: [Self; 3] = [Self::LeaseEnded, Self::Forgotten, Self::NeverArrived];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::LeaseEnded => "its worker did not renew the lease",
            Self::Forgotten => "its worker does not know it any more",
            Self::NeverArrived => "the connection broke before it arrived",
        }
    }

    /// Reads the error of an attempt; any other words are the worker's own.
    pub fn read(error: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.as_str() == error)
    }
}
