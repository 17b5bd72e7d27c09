//! Connections that only read, lent for one statement at a time, a bounded number at once.
//!
//! Some more are lent only to the server's own loop: however much callers read, it sees that another server is gone, and reads
//! what it takes over.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_postgres::Row;

use super::connect::{Link, Runtime, Values};
use super::target::Target;
use crate::Error;

/// How many may be lent to the loop beyond those for everybody: for a look around, for reading a share, and for loads.
const OF_THE_LOOP: usize = 4;

#[derive(Clone)]
pub struct Pool {
    runtime: Arc<Runtime>,
    target: Target,
    patience: Duration,
    /// How many may be lent when one is taken by whoever has this.
    most: usize,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    returned: Condvar,
}

#[derive(Default)]
struct State {
    idle: Vec<Link>,
    lent: usize,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of the places, given back when dropped; the connection only if it is well.
struct Place<'a> {
    shared: &'a Shared,
    well: Option<Link>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.lent -= 1;
        state.idle.extend(self.well.take());
        drop(state);
        // All: the one that is woken might not be one of those who may have it.
        self.shared.returned.notify_all();
    }
}

impl Pool {
    pub fn new(runtime: Arc<Runtime>, target: Target, patience: Duration, most: usize) -> Self {
        Self {
            runtime,
            target,
            patience,
            most: most.max(1),
            shared: Arc::default(),
        }
    }

    /// The same connections, and those beyond them.
    pub fn of_the_loop(&self) -> Self {
        Self {
            most: self.most + OF_THE_LOOP,
            ..self.clone()
        }
    }

    /// The rows of one statement. A connection that broke while it was idle is made anew once: reads may be repeated.
    pub fn rows(&self, sql: &'static str, values: Values<'_>) -> Result<Vec<Row>, Error> {
        let (mut place, mut idle) = self.take();
        loop {
            let kept = idle.take().filter(|link| !link.is_closed());
            let fresh = kept.is_none();
            let asked = self.runtime.block_on(async {
                let link = match kept {
                    Some(link) => link,
                    None => self.connect().await?,
                };
                let asking = tokio::time::timeout(self.patience * 6, link.rows(sql, values));
                match asking.await {
                    Ok(Ok(rows)) => Ok((rows, link)),
                    Ok(Err(_)) if link.is_closed() && !fresh => Err(Failed::Stale),
                    Ok(Err(error)) => Err(Failed::For(error.into())),
                    Err(_) => Err(Failed::For(Error::Busy(format!(
                        "{} did not answer a read in time",
                        self.target
                    )))),
                }
            });
            match asked {
                Ok((rows, link)) => {
                    place.well = Some(link);
                    return Ok(rows);
                }
                Err(Failed::Stale) => continue,
                Err(Failed::For(error)) => return Err(error),
            }
        }
    }

    async fn connect(&self) -> Result<Link, Error> {
        let link = Link::open(&self.target, self.patience).await?;
        let limit = self.patience.as_millis() * 5;
        let sql = format!(
            "SET default_transaction_read_only = on; SET statement_timeout = {limit}; SET idle_in_transaction_session_timeout = {limit}"
        );
        link.client().batch_execute(&sql).await?;
        Ok(link)
    }

    fn take(&self) -> (Place<'_>, Option<Link>) {
        let waiting = |state: &mut State| state.lent >= self.most;
        let state = self.shared.returned.wait_while(self.shared.lock(), waiting);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        state.lent += 1;
        let idle = state.idle.pop();
        let place = Place {
            shared: &self.shared,
            well: None,
        };
        (place, idle)
    }
}

/// Why a read got no answer.
enum Failed {
    /// The connection had broken before.
    Stale,
    For(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::For(error)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn the_loop_reads_while_others_hold_all_that_is_theirs() {
        let runtime = Arc::new(Runtime::start().expect("it starts"));
        let target = "postgres://nobody@127.0.0.1:1/none".parse();
        let target: Target = target.expect("an address");
        let patience = Duration::from_secs(1);
        let pool = Pool::new(runtime, target, patience, 2);
        let held = [pool.take(), pool.take()];
        let of_the_loop = pool.of_the_loop();
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let more: Vec<_> = (0..OF_THE_LOOP).map(|_| of_the_loop.take()).collect();
            let _ = tell.send(more.len());
        });
        // Only a hang takes so long.
        let taken = told.recv_timeout(Duration::from_secs(60));
        assert_eq!(taken, Ok(OF_THE_LOOP));
        drop(held);
    }
}
