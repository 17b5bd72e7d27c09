//! `drumtower worker reset`: a worker that was lost again and again is trusted at once.

use clap::Args;
use drumtower_core::model::NamespaceName;
use ureq::http::Method;

use super::drain::target;
use crate::client::Client;
use crate::connect::Connect;
use crate::failure::Result;
use crate::output::{Output, text};

/// Trust a FAULTY worker again, now
///
/// A worker that is lost three times in ten minutes gets no work for a minute, then for
/// two, and so on up to half an hour. This forgets its losses, once you know why it died.
///
///     drumtower worker reset build-1
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Reset {
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

impl Reset {
    pub fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let call = target(Method::POST, &self.worker, "reset", self.namespace.as_ref());
        let told = client.value(call)?;
        let name = text(&told, "name");
        self.output
            .one(&told, |_| format!("nothing is held against {name}\n"))
    }
}
