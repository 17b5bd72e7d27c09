//! A server on the embedded store whose commits do as they are told.

use std::sync::{Arc, Condvar, Mutex};

use drumtower_core::change::ChangeSet;
use drumtower_core::model::{Member, SessionId, SessionRow, WallMs};
use drumtower_server::driver;
use drumtower_store::{Commit, Error, Store, sqlite};

use crate::server::Server;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// The disk is full.
    Full,
    /// A commit does not come back.
    Held,
}

/// What the next commits meet; a change is seen by one that is held.
#[derive(Clone)]
pub struct Faulty(Arc<(Mutex<Fault>, Condvar)>);

struct Wrapped {
    inner: sqlite::Writer,
    fault: Faulty,
}

impl Faulty {
    /// A server with room for one message in front of its engine.
    pub async fn start() -> (Self, Server) {
        let faulty = Self(Arc::new((Mutex::new(Fault::None), Condvar::new())));
        let fault = faulty.clone();
        let options = driver::Options {
            inbox: 1,
            ..driver::Options::default()
        };
        let wrap = move |inner| Box::new(Wrapped { inner, fault }) as Box<dyn Store>;
        let server = Server::start_on(tempfile::tempdir().unwrap(), options, wrap).await;
        (faulty, server)
    }

    pub fn set(&self, fault: Fault) {
        *self.0.0.lock().unwrap() = fault;
        self.0.1.notify_all();
    }

    fn meet(&self) -> Result<(), Error> {
        let fault = self.0.0.lock().unwrap();
        let fault = self
            .0
            .1
            .wait_while(fault, |fault| *fault == Fault::Held)
            .unwrap();
        match *fault {
            Fault::Full => Err(Error::Full("told to be".to_owned())),
            _ => Ok(()),
        }
    }
}

impl Store for Wrapped {
    fn clock(&mut self) -> Result<WallMs, Error> {
        self.inner.clock()
    }

    fn begin_session(&mut self, member: &Member, extend_ms: i64) -> Result<SessionId, Error> {
        self.inner.begin_session(member, extend_ms)
    }

    fn commit(&mut self, changes: &ChangeSet) -> Result<Commit, Error> {
        self.fault.meet()?;
        self.inner.commit(changes)
    }

    fn session(&mut self, id: SessionId) -> Result<Option<SessionRow>, Error> {
        self.inner.session(id)
    }

    fn live_sessions(&mut self) -> Result<Vec<SessionRow>, Error> {
        self.inner.live_sessions()
    }

    fn close(&mut self) -> Result<(), Error> {
        self.inner.close()
    }
}
