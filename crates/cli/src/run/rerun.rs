//! `drumtower run rerun`: the same work once more.

use clap::Args;
use serde_json::{Map, Value};

use super::{path, wait};
use crate::client::{Call, Client};
use crate::connect::Connect;
use crate::failure::Result;
use crate::output::{Output, text};

/// Run again what a run did
///
/// Makes a new run with the parameters of the old one, by the job as it is now; with --original
/// by the version that the old run was made from. Prints the id of the new run.
///
///     drumtower run rerun run_06d4ztbp00000
///     drumtower run rerun run_06d4ztbp00000 --params '{"month": "2026-02"}' --wait
///     drumtower run rerun run_06d4ztbp00000 --original --delay 10m
///     drumtower run rerun run_06d4ztbp00000 --resume
///     drumtower run rerun run_06d4ztbp00000 --obey-overlap
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Rerun {
    /// The id of the run
    run: String,
    /// Parameters instead of those of the old run, as JSON
    #[arg(short, long, value_name = "JSON")]
    params: Option<String>,
    /// By the version of the job that the old run was made from
    #[arg(long)]
    original: bool,
    /// Go on from the checkpoint that the old run left
    #[arg(long)]
    resume: bool,
    /// An idempotency key: the same key gives the same run for 24 hours
    #[arg(short, long)]
    key: Option<String>,
    /// Start it this long from now, such as `90s` or `1h30m`
    #[arg(short, long, conflicts_with = "at")]
    delay: Option<String>,
    /// Start it at this instant, in RFC 3339
    #[arg(long, value_name = "INSTANT")]
    at: Option<String>,
    /// Count it for the job's `overlap`: it waits or is refused when the job is full
    #[arg(long)]
    obey_overlap: bool,
    /// Wait for the new run to end; the exit code is 0 only if it is COMPLETED
    #[arg(short, long)]
    wait: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

impl Rerun {
    pub fn run(self) -> Result<()> {
        let mut body = Map::new();
        if let Some(params) = &self.params {
            let params = crate::params::parse(params)?;
            body.insert("params".to_owned(), params);
        }
        if self.original {
            body.insert("version".to_owned(), Value::from("original"));
        }
        if self.resume {
            body.insert("resume".to_owned(), Value::from(true));
        }
        if self.obey_overlap {
            body.insert("overlap".to_owned(), Value::from("obey"));
        }
        for (key, given) in [("delay", &self.delay), ("at", &self.at)] {
            if let Some(given) = given {
                body.insert(key.to_owned(), Value::from(given.as_str()));
            }
        }
        let mut call = Call::post(format!("{}/rerun", path(&self.run))).json(Value::Object(body));
        if let Some(key) = &self.key {
            call = call.header("idempotency-key", key);
        }
        let client = Client::new(&self.connect)?;
        let run = client.value(call)?;
        let id = text(&run, "id");
        if self.wait {
            return wait::until_end(&client, &id, None, self.output);
        }
        self.output.one(&run, |_| format!("{id}\n"))
    }
}
