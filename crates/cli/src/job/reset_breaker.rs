//! `drumtower job reset-breaker`: a job that was left alone for its failures may run again.

use clap::Args;

use super::{Namespace, path};
use crate::client::{Call, Client};
use crate::connect::Connect;
use crate::failure::Result;
use crate::output::Output;

/// Close a job's circuit breaker
///
/// After several failures in a row the breaker of a job (`breaker` in its manifest) lets
/// nothing through for a while. When what failed is mended, this lets the job run at once
/// and forgets the failures.
///
///     drumtower job reset-breaker import
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct ResetBreaker {
    /// The job's name
    name: String,
    #[command(flatten)]
    namespace: Namespace,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

impl ResetBreaker {
    pub fn run(self) -> Result<()> {
        let (namespace, name) = (&self.namespace.namespace, &self.name);
        let call = Call::post(format!("{}/reset-breaker", path(namespace, name)));
        let job = Client::new(&self.connect)?.value(call)?;
        let said = match job["spec"]["breaker"].is_null() {
            true => format!("job {namespace}/{name} has no breaker\n"),
            false => format!("the breaker of job {namespace}/{name} is closed\n"),
        };
        self.output.one(&job, |_| said)
    }
}
