//! Deleting what the files do not name any more: only jobs with a label that the user gave, and only after being asked.

use clap::Args;
use drumtower_core::model::NamespaceName;

use super::plan::{Action, Step};
use crate::ask::confirm;
use crate::client::{Call, Client};
use crate::failure::{Failure, Result};
use crate::manifest::Kind;

#[derive(Args, Debug)]
pub struct Prune {
    /// Delete the jobs with the labels of --label that are in none of the files
    #[arg(long, requires = "labels")]
    prune: bool,
    /// With --prune: only jobs with this label; may be repeated, all must match
    #[arg(short, long = "label", value_name = "KEY=VALUE", requires = "prune")]
    labels: Vec<String>,
    /// With --prune: only jobs of this namespace; of every one that the token may see unless given
    #[arg(short, long, requires = "prune")]
    namespace: Option<NamespaceName>,
    /// Do not ask before deleting
    #[arg(short, long)]
    yes: bool,
}

impl Prune {
    /// The deletions that make the server what the files say.
    pub fn steps(&self, client: &Client, steps: &[Step]) -> Result<Vec<Step>> {
        if !self.prune {
            return Ok(Vec::new());
        }
        if let Some(wrong) = self.labels.iter().find(|label| !label.contains('=')) {
            return Err(Failure::usage(format!(
                "--label `{wrong}` is not of the form key=value"
            )));
        }
        let page = || {
            let call = Call::get("/api/v1/jobs").maybe("namespace", self.namespace.as_ref());
            let labels = self.labels.iter();
            labels.fold(call, |call, label| call.query("label", label))
        };
        let found = client.list(page, None)?.into_iter();
        let found = found.map(|job| Step::delete(Kind::Job, job));
        let given = |gone: &Step| {
            steps.iter().any(|step| {
                step.kind == gone.kind && step.namespace == gone.namespace && step.name == gone.name
            })
        };
        Ok(found.filter(|step| !given(step)).collect())
    }

    /// Whether the user must be asked, and so must see the plan.
    pub fn is_asked(&self, steps: &[Step]) -> bool {
        !self.yes && deletions(steps) > 0
    }

    pub fn confirm(&self, steps: &[Step]) -> Result<()> {
        match self.is_asked(steps) {
            false => Ok(()),
            true => confirm(&match deletions(steps) {
                1 => "delete 1 job?".to_owned(),
                count => format!("delete {count} jobs?"),
            }),
        }
    }
}

fn deletions(steps: &[Step]) -> usize {
    let deleted = steps.iter().filter(|step| step.action == Action::Delete);
    deleted.count()
}
