//! One connection, the statements that were prepared on it, and the runtime that drives all of them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

use super::schema::SCHEMA;
use super::target::Target;
use crate::Error;

/// The store's own runtime: one thread that moves bytes. Callers wait for their answers on their own threads.
pub struct Runtime(Option<tokio::runtime::Runtime>);

impl Runtime {
    pub fn start() -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("drumtower-postgres")
            .enable_all()
            .build();
        runtime
            .map(|runtime| Self(Some(runtime)))
            .map_err(|error| Error::Io(format!("a thread could not be started: {error}")))
    }

    /// Waits for an answer. Not to be called from asynchronous code.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        match &self.0 {
            Some(runtime) => runtime.block_on(future),
            None => unreachable!("the runtime is there until it is dropped"),
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // It may be dropped by asynchronous code, which may not wait for threads.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Every statement goes by an index, whatever the statistics of a table that has just been filled or emptied say, and is
/// planned once.
const PLANS: &str = "SET jit = off; SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET plan_cache_mode = force_generic_plan";

/// Values of one statement.
pub type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A connection with the statements that were prepared on it.
pub struct Link {
    client: Client,
    prepared: RefCell<HashMap<&'static str, Statement>>,
}

impl Link {
    /// Connects and sees that an acknowledged commit is durable, whatever the server's default.
    pub async fn open(target: &Target, patience: Duration) -> Result<Self, Error> {
        let connecting = tokio::time::timeout(patience, target.connect());
        let client = match connecting.await {
            Ok(connected) => connected?,
            Err(_) => {
                return Err(Error::Io(format!(
                    "{target} did not answer within {} s",
                    patience.as_secs_f32()
                )));
            }
        };
        let link = Self {
            client,
            prepared: RefCell::default(),
        };
        let basics = format!("SET search_path = {SCHEMA}; SET timezone = 'UTC'");
        let everything = format!("{basics}; {PLANS}");
        if let Err(error) = link.client.batch_execute(&everything).await {
            // Another database of the family may not know how plans are made here, and does well without.
            if error.code().is_none() {
                return Err(error.into());
            }
            link.client.batch_execute(&basics).await?;
        }
        let sync: String = link
            .client
            .query_one("SELECT current_setting('synchronous_commit')", &[])
            .await?
            .try_get(0)?;
        if sync == "off" {
            let on = "SET synchronous_commit = on";
            link.client.batch_execute(on).await?;
        }
        Ok(link)
    }

    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub async fn prepared(&self, sql: &'static str) -> Result<Statement, tokio_postgres::Error> {
        if let Some(statement) = self.prepared.borrow().get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).await?;
        self.prepared.borrow_mut().insert(sql, statement.clone());
        Ok(statement)
    }

    pub async fn rows(
        &self,
        sql: &'static str,
        values: Values<'_>,
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let statement = self.prepared(sql).await?;
        self.client.query(&statement, values).await
    }
}
