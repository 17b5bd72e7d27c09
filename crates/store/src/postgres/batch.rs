//! The statements of one commit, sent all at once and answered one after the other.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

use super::connect::Link;
use super::failure;
use crate::Error;

/// A value of a statement: a number, or a column of all rows that the statement writes.
pub type Value = Box<dyn ToSql + Sync + Send>;

/// One statement, and how many rows it must touch.
struct Step {
    sql: &'static str,
    values: Vec<Value>,
    expected: Option<u64>,
    what: &'static str,
    /// Another server may have been faster; then all of it is tried again.
    raced: bool,
    /// It removes what is old, so many rows at the most.
    at_most: Option<u64>,
}

/// What became of a batch whose fence held.
pub struct Through {
    /// What the fence returned.
    pub fence: Row,
    /// What is old is more than was to be removed.
    pub more_is_old: bool,
}

#[derive(Default)]
pub struct Batch {
    steps: Vec<Step>,
}

/// The values of a statement, each a column.
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        vec![$(Box::new($value) as $crate::postgres::batch::Value),*]
    };
}
pub(super) use values;

impl Batch {
    /// A statement that may touch any number of rows.
    pub fn add(&mut self, sql: &'static str, values: Vec<Value>) {
        self.steps.push(Step {
            sql,
            values,
            expected: None,
            what: "",
            raced: false,
            at_most: None,
        });
    }

    /// A statement that must touch, or find, exactly so many rows. `what` is said when it does not.
    pub fn expect(
        &mut self,
        rows: usize,
        what: &'static str,
        sql: &'static str,
        values: Vec<Value>,
    ) {
        self.steps.push(Step {
            sql,
            values,
            expected: Some(rows as u64),
            what,
            raced: false,
            at_most: None,
        });
    }

    /// A statement that touches so many rows unless another server was faster.
    pub fn race(&mut self, rows: usize, sql: &'static str, values: Vec<Value>) {
        self.steps.push(Step {
            sql,
            values,
            expected: Some(rows as u64),
            what: "",
            raced: true,
            at_most: None,
        });
    }

    /// A statement that removes what is old, so many rows at the most.
    pub fn trim(&mut self, at_most: usize, sql: &'static str, values: Vec<Value>) {
        self.steps.push(Step {
            sql,
            values,
            expected: None,
            what: "",
            raced: false,
            at_most: Some(at_most as u64),
        });
    }

    /// Sends everything in a transaction that is open.
    pub async fn run(&self, link: &Link) -> Result<(), Error> {
        let statements = self.prepare(link).await?;
        for (statement, step) in statements.iter().zip(&self.steps) {
            let values = refs(&step.values);
            step.judge(link.client().execute(statement, &values).await)?;
        }
        Ok(())
    }

    /// Prepares what was never sent on this connection.
    pub async fn prepare(&self, link: &Link) -> Result<Vec<Statement>, tokio_postgres::Error> {
        let mut statements = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            statements.push(link.prepared(step.sql).await?);
        }
        Ok(statements)
    }

    /// Begins a transaction and sends everything behind the fence. `None` when the fence found no row.
    pub async fn send(
        &self,
        link: &Link,
        fence: (&'static str, Vec<Value>),
    ) -> Result<Option<Through>, Error> {
        let (fence_sql, fence_values) = fence;
        let statements = self.prepare(link).await?;
        let fence = link.prepared(fence_sql).await?;
        let client = link.client();
        let fence_values = refs(&fence_values);
        let begin = sent(client.batch_execute("BEGIN")).await;
        let fence = sent(client.query_opt(&fence, &fence_values)).await;
        let all: Vec<Vec<&(dyn ToSql + Sync)>> =
            self.steps.iter().map(|step| refs(&step.values)).collect();
        let mut answers = Vec::with_capacity(self.steps.len());
        for (statement, values) in statements.iter().zip(&all) {
            answers.push(sent(client.execute(statement, values)).await);
        }
        begin.await?;
        let fence = fence.await?;
        let (mut outcome, mut more_is_old) = (Ok(()), false);
        for (answer, step) in answers.into_iter().zip(&self.steps) {
            let answered = answer.await;
            if let (Ok(rows), Some(at_most)) = (&answered, step.at_most) {
                more_is_old |= *rows >= at_most;
            }
            if outcome.is_ok() {
                outcome = step.judge(answered);
            }
        }
        let Some(fence) = fence else {
            return Ok(None);
        };
        outcome?;
        Ok(Some(Through { fence, more_is_old }))
    }
}

impl Step {
    fn judge(&self, answer: Result<u64, tokio_postgres::Error>) -> Result<(), Error> {
        match (answer, self.expected) {
            (Ok(rows), Some(expected)) if rows != expected && self.raced => {
                Err(Error::Busy("another server was faster".to_owned()))
            }
            (Ok(rows), Some(expected)) if rows != expected => Err(Error::Invariant(format!(
                "{}: {rows} rows instead of {expected}",
                self.what
            ))),
            (Ok(_), _) => Ok(()),
            // The one before it that failed was judged before.
            (Err(error), _) if failure::is_follower(&error) => {
                Err(Error::Busy("an earlier statement failed".to_owned()))
            }
            (Err(error), _) => Err(match Error::from(error) {
                Error::Invariant(text) => Error::Invariant(format!("{}: {text}", self.what)),
                other => other,
            }),
        }
    }
}

fn refs(values: &[Value]) -> Vec<&(dyn ToSql + Sync)> {
    values
        .iter()
        .map(|value| &**value as &(dyn ToSql + Sync))
        .collect()
}

/// Polls a request once, which puts it on its way, and gives it back to be waited for.
async fn sent<'a, T: 'a>(request: impl Future<Output = T> + 'a) -> Sent<'a, T> {
    let mut sent = Sent::Asked(Box::pin(request));
    std::future::poll_fn(|context| {
        if let Sent::Asked(request) = &mut sent
            && let Poll::Ready(answer) = request.as_mut().poll(context)
        {
            sent = Sent::Answered(Some(answer));
        }
        Poll::Ready(())
    })
    .await;
    sent
}

enum Sent<'a, T> {
    Asked(Pin<Box<dyn Future<Output = T> + 'a>>),
    Answered(Option<T>),
}

impl<T> Unpin for Sent<'_, T> {}

impl<T> Future for Sent<'_, T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut std::task::Context<'_>) -> Poll<T> {
        match self.get_mut() {
            Self::Asked(request) => request.as_mut().poll(context),
            Self::Answered(answer) => match answer.take() {
                Some(answer) => Poll::Ready(answer),
                None => unreachable!("an answer is taken once"),
            },
        }
    }
}
