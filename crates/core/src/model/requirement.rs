//! What a run asks of a worker, and its form as a key of the store.

use serde::{Deserialize, Serialize};

use super::{JobSpec, NamespaceName};

/// What a worker must offer to be given a run. Runs with the same requirement wait in one line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Requirement {
    pub namespace: NamespaceName,
    pub need: TaskNeed,
    pub weight: u32,
    /// Not asked of a worker: runs of different priority wait in different lines.
    pub priority: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TaskNeed {
    /// Runs programs: `exec` and `script`.
    Exec,
    Handler(String),
    /// Makes HTTP requests.
    Http,
}

impl Requirement {
    /// The key under which blocked runs are parked in the store. Only a priority other than the ordinary one is part of it.
    pub fn park_key(&self) -> String {
        let need = match &self.need {
            TaskNeed::Exec => "exec".to_owned(),
            TaskNeed::Http => "http".to_owned(),
            TaskNeed::Handler(name) => format!("handler:{name}"),
        };
        let (namespace, weight) = (&self.namespace, self.weight);
        match self.priority {
            JobSpec::DEFAULT_PRIORITY => format!("{namespace}/{need}/{weight}"),
            priority => format!("{namespace}/{need}/{weight}p{priority}"),
        }
    }

    /// Reads a park key back; `None` when it is not one.
    pub fn from_park_key(key: &str) -> Option<Self> {
        let (namespace, rest) = key.split_once('/')?;
        let (need, place) = rest.rsplit_once('/')?;
        let need = match need {
            "exec" => TaskNeed::Exec,
            "http" => TaskNeed::Http,
            handler => TaskNeed::Handler(handler.strip_prefix("handler:")?.to_owned()),
        };
        let (weight, priority) = match place.split_once('p') {
            Some((weight, priority)) => (weight, priority.parse().ok()?),
            None => (place, JobSpec::DEFAULT_PRIORITY),
        };
        Some(Self {
            namespace: NamespaceName::new(namespace).ok()?,
            need,
            weight: weight.parse().ok()?,
            priority,
        })
    }
}
