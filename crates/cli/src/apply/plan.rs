//! What applying would do: the documents compared with what the server has.
//!
//! A step remembers the revision that it was compared with and is carried out only on that revision: what is done is what
//! was printed.

use drumtower_core::model::{Change, JobSettings, JsonText, SpecError, diff};
use serde_json::{Value, json};

use crate::client::{Call, Client};
use crate::failure::{Exit, Failure, Result};
use crate::manifest::{Document, Kind, Spec};
use crate::settings;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Create,
    Change,
    Unchanged,
    Delete,
}

impl Action {
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Change => "change",
            Self::Unchanged => "unchanged",
            Self::Delete => "delete",
        }
    }

    /// What became of it, once it is done.
    pub fn done(self) -> &'static str {
        match self {
            Self::Create => "created",
            Self::Change => "changed",
            Self::Unchanged => "unchanged",
            Self::Delete => "deleted",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Step {
    pub action: Action,
    pub kind: Kind,
    pub namespace: String,
    pub name: String,
    pub changes: Vec<Change>,
    /// What the server has, with its revision; `Null` when it has none.
    pub found: Value,
    /// What it shall be; `None` when it shall go.
    pub document: Option<Document>,
}

impl Step {
    /// As people are told of it.
    pub fn title(&self) -> String {
        format!("{} {}/{}", self.kind.noun(), self.namespace, self.name)
    }

    pub fn path(&self) -> String {
        self.kind.path(&self.namespace, &self.name)
    }

    pub fn to_value(&self) -> Value {
        json!({
            "action": self.action.name(),
            "kind": self.kind.name(),
            "namespace": self.namespace,
            "name": self.name,
            "changes": self.changes,
        })
    }

    /// The deletion of a thing that a listing has.
    pub fn delete(kind: Kind, found: Value) -> Self {
        let said = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
        Self {
            action: Action::Delete,
            kind,
            namespace: said("namespace"),
            name: said("name"),
            changes: Vec::new(),
            found,
            document: None,
        }
    }
}

/// Compares every document with the server and checks what only the server knows.
pub fn plan(client: &Client, documents: Vec<Document>) -> Result<Vec<Step>> {
    let is_job = |document: &Document| matches!(document.spec, Spec::Job(_));
    let settings = match documents.iter().any(is_job) {
        true => settings::of_jobs(client)?,
        false => JobSettings::default(),
    };
    let steps = documents
        .into_iter()
        .map(|document| step(client, &settings, document));
    let steps = steps.collect::<Result<Vec<Step>>>()?;
    calendars_exist(client, &steps)?;
    Ok(steps)
}

fn step(client: &Client, settings: &JobSettings, document: Document) -> Result<Step> {
    let (kind, namespace, name) = document.address();
    let wanted = completed(settings, &document)?.body()?;
    let found = match client.value(Call::get(kind.path(&namespace, &name))) {
        Ok(found) => found,
        Err(failure) if failure.exit == Exit::NotFound => Value::Null,
        Err(failure) => return Err(failure.at(&document.place())),
    };
    let mut changes = match found.get("spec") {
        Some(spec) => diff(spec, &wanted),
        None => Vec::new(),
    };
    // No manifest says it, so it is no part of what is compared; that a job stops firing is a change all the same.
    if document.paused && !found.is_null() && found["paused"].is_null() {
        changes.push(Change {
            field: "paused".to_owned(),
            before: Some(JsonText::from_value(&json!(false))),
            after: Some(JsonText::from_value(&json!(true))),
        });
    }
    let action = match (found.is_null(), changes.is_empty()) {
        (true, _) => Action::Create,
        (false, false) => Action::Change,
        (false, true) => Action::Unchanged,
    };
    Ok(Step {
        action,
        kind,
        namespace,
        name,
        changes,
        found,
        document: Some(document),
    })
}

/// As the server will have it: with what its settings say for a job that does not say it itself.
fn completed(settings: &JobSettings, document: &Document) -> Result<Document> {
    let mut completed = document.clone();
    if let Spec::Job(spec) = &mut completed.spec {
        let refused =
            |error: SpecError| Failure::new(Exit::Refused, error.to_string()).at(&document.place());
        settings.complete(spec).map_err(refused)?;
    }
    Ok(completed)
}

/// A job may name a calendar of the files or one that the server has. Found out now, before anything is changed.
fn calendars_exist(client: &Client, steps: &[Step]) -> Result<()> {
    let given = |namespace: &str, name: &str| {
        steps.iter().any(|step| {
            step.kind == Kind::Calendar && step.namespace == namespace && step.name == name
        })
    };
    let mut faults = Vec::new();
    for document in steps.iter().filter_map(|step| step.document.as_ref()) {
        let Spec::Job(job) = &document.spec else {
            continue;
        };
        let used = job.calendar.iter();
        for name in used.flat_map(|calendar| calendar.only.iter().chain(&calendar.minus)) {
            let (namespace, name) = (job.namespace.as_str(), name.as_str());
            if given(namespace, name) {
                continue;
            }
            match client.value(Call::get(Kind::Calendar.path(namespace, name))) {
                Ok(_) => {}
                Err(failure) if failure.exit == Exit::NotFound => faults.push(format!(
                    "{}: calendar: there is no calendar `{name}` in namespace `{namespace}`, neither here nor on the server",
                    document.place()
                )),
                Err(failure) => return Err(failure),
            }
        }
    }
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(Exit::Refused, faults.join("\nerror: "))
            .remedy("add it to the files, or correct the name")),
    }
}
