//! `drumtower worker resume`: a drained worker back into service.

use clap::Args;
use drumtower_core::model::NamespaceName;
use ureq::http::Method;

use super::drain::{standing, target};
use crate::client::Client;
use crate::connect::Connect;
use crate::failure::Result;
use crate::output::Output;

/// Put a drained worker back into service
///
/// It is given work from now on. One that is not drained stays as it is.
///
///     drumtower worker resume build-1
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Resume {
    /// The worker's name; of several processes that have it, all are meant
    worker: String,
    /// Only workers whose token is bound to this namespace
    #[arg(short, long)]
    namespace: Option<NamespaceName>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

impl Resume {
    pub fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let call = target(
            Method::POST,
            &self.worker,
            "resume",
            self.namespace.as_ref(),
        );
        let told = client.value(call)?;
        self.output.one(&told, |_| standing(&told))
    }
}
