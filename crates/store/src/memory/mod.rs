//! The reference model: ordered maps behind a lock, nothing derived that could be computed.
//!
//! It keeps nothing across a restart. Simulators and tests use it; the other stores are compared with it.

mod apply;
mod prune;
mod read;
mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use drumtower_core::change::ChangeSet;
use drumtower_core::model::{Member, SessionId, SessionRow, WallMs};

use crate::{Commit, Error, Store, check};
use state::State;

type Clock = Arc<dyn Fn() -> WallMs + Send + Sync>;

/// The writer. It has the only right to commit; [`Memory::reader`] hands out as many readers as one likes.
pub struct Memory {
    state: Arc<Mutex<State>>,
    clock: Clock,
    shared: bool,
}

/// A reader of the same state.
#[derive(Clone)]
pub struct Reader {
    state: Arc<Mutex<State>>,
    clock: Clock,
    shared: bool,
}

impl Default for Memory {
    fn default() -> Self {
        Self::with_clock(Arc::new(system_clock))
    }
}

impl Memory {
    pub fn new() -> Self {
        Self::default()
    }

    /// A store whose own clock is given, for those who simulate time.
    pub fn with_clock(clock: Clock) -> Self {
        let state = State::new(clock());
        Self {
            state: Arc::new(Mutex::new(state)),
            clock,
            shared: false,
        }
    }

    /// The same store, opened by one of several servers.
    pub fn share(&self) -> Self {
        Self {
            state: Arc::clone(&self.state),
            clock: Arc::clone(&self.clock),
            shared: true,
        }
    }

    pub fn reader(&self) -> Reader {
        Reader {
            state: Arc::clone(&self.state),
            clock: Arc::clone(&self.clock),
            shared: self.shared,
        }
    }
}

impl Store for Memory {
    fn clock(&mut self) -> Result<WallMs, Error> {
        Ok((self.clock)())
    }

    fn is_shared(&self) -> bool {
        self.shared
    }

    fn begin_session(&mut self, member: &Member, extend_ms: i64) -> Result<SessionId, Error> {
        let expires = (self.clock)().plus(extend_ms);
        let mut state = lock(&self.state);
        state.last_session += 1;
        let id = SessionId(state.last_session);
        state.sessions.insert(
            id,
            SessionRow {
                id,
                member: member.clone(),
                seq: 0,
                expires,
                revoked: false,
                took: None,
            },
        );
        Ok(id)
    }

    fn commit(&mut self, changes: &ChangeSet) -> Result<Commit, Error> {
        check::shape(changes)?;
        lock(&self.state).commit(changes, (self.clock)())
    }

    fn session(&mut self, id: SessionId) -> Result<Option<SessionRow>, Error> {
        Ok(lock(&self.state).sessions.get(&id).cloned())
    }

    fn live_sessions(&mut self) -> Result<Vec<SessionRow>, Error> {
        Ok(lock(&self.state)
            .sessions
            .values()
            .filter(|row| !row.revoked)
            .cloned()
            .collect())
    }

    fn close(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// A state is changed only after every check has passed, so a panic elsewhere leaves it whole.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn system_clock() -> WallMs {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    WallMs(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
