//! The writing side: one owner, one commit at a time.

use drumtower_core::change::ChangeSet;
use drumtower_core::model::{Member, SessionId, SessionRow, WallMs};

use crate::Error;

/// How an answered commit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// Durable: it survives the loss of power.
    Done,
    /// The session row was not at `seq - 1` or is revoked. Nothing was changed.
    Fenced,
}

/// The verbs of the one writer. Everything that people and runs cause goes through [`Store::commit`].
pub trait Store: Send {
    /// The database's own clock: the reference for the end of sessions.
    fn clock(&mut self) -> Result<WallMs, Error>;

    /// Whether other servers can have the store open too. Where none can, whoever opened it knows that the sessions
    /// before are over, whatever their rows say.
    fn is_shared(&self) -> bool {
        false
    }

    /// Makes a session row with an id greater than any before, at seq 0, ending `extend_ms` from the database's clock.
    fn begin_session(&mut self, member: &Member, extend_ms: i64) -> Result<SessionId, Error>;

    /// Applies a change set whole, durably, or not at all.
    fn commit(&mut self, changes: &ChangeSet) -> Result<Commit, Error>;

    /// The session row as the primary has it, to learn what became of a commit without an answer.
    fn session(&mut self, id: SessionId) -> Result<Option<SessionRow>, Error>;

    /// Every session that is not revoked.
    fn live_sessions(&mut self) -> Result<Vec<SessionRow>, Error>;

    /// Brings the store into the state of a clean end: everything in the main file, nothing left to recover.
    fn close(&mut self) -> Result<(), Error>;
}
