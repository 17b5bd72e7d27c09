//! `drumtower ready`: whether the server takes changes, for probes that know only exit codes.

use clap::Args;

use crate::client::{Call, Client};
use crate::connect::Connect;
use crate::failure::Result;
use crate::output::Output;

/// Ask whether the server can do its work
///
/// Exit code 0 while it can commit changes, 5 while it cannot or does not answer. Needs no
/// token. Made for the health checks of containers and of what starts after the server.
///
///     drumtower ready
///     drumtower ready --url https://scheduler:7070 --ca ca.pem
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Ready {
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

impl Ready {
    pub fn run(self) -> Result<()> {
        let answer = Client::new(&self.connect)?.value(Call::get("/readyz"))?;
        self.output.one(&answer, |_| "ready\n".to_owned())
    }
}
