//! Deleting what the files do not name any more: only jobs with a label that the user gave, and only after being asked.

use std::collections::BTreeSet;

use clap::Args;
use drumtower_core::model::NamespaceName;

use super::plan::{Action, Step};
use crate::ask::confirm;
use crate::client::{Call, Client};
use crate::failure::{Failure, Result};
use crate::manifest::Kind;
use crate::namespace;

#[derive(Args, Debug)]
pub struct Prune {
    /// Delete the jobs with the labels of --label that are in none of the files
    #[arg(long, requires = "labels")]
    prune: bool,
    /// With --prune: only jobs with this label; may be repeated, all must match
    #[arg(short, long = "label", value_name = "KEY=VALUE", requires = "prune")]
    labels: Vec<String>,
    /// With --prune: only jobs of this namespace; else of DRUMTOWER_NAMESPACE, else of those that the files name
    #[arg(short, long, requires = "prune")]
    namespace: Option<NamespaceName>,
    /// With --prune: jobs of every namespace that the token may see
    #[arg(short = 'A', long, requires = "prune", conflicts_with = "namespace")]
    all_namespaces: bool,
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
        let mut found = Vec::new();
        for namespace in self.namespaces(steps)? {
            let page = || {
                let call = Call::get("/api/v1/jobs").maybe("namespace", namespace.as_ref());
                let labels = self.labels.iter();
                labels.fold(call, |call, label| call.query("label", label))
            };
            found.extend(client.list(page, None)?);
        }
        let found = found.into_iter();
        let found = found.map(|job| Step::delete(Kind::Job, job));
        let given = |gone: &Step| {
            steps.iter().any(|step| {
                step.kind == gone.kind && step.namespace == gone.namespace && step.name == gone.name
            })
        };
        Ok(found.filter(|step| !given(step)).collect())
    }

    /// Where may be deleted; `None` is everywhere. Files that say nothing of a namespace are no reason to delete in it.
    fn namespaces(&self, steps: &[Step]) -> Result<Vec<Option<String>>> {
        if self.all_namespaces {
            return Ok(vec![None]);
        }
        if let Some(namespace) = &self.namespace {
            return Ok(vec![Some(namespace.to_string())]);
        }
        if let Some(namespace) = namespace::by_variable()? {
            return Ok(vec![Some(namespace.to_string())]);
        }
        let named: BTreeSet<&String> = steps.iter().map(|step| &step.namespace).collect();
        Ok(named.into_iter().cloned().map(Some).collect())
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
