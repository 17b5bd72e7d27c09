//! The rules in force: a job's own, else those of its namespace.
//!
//! A job's rules are read from the store when something happened to it and forgotten when it changes. Settings of
//! namespaces are all held.

use std::collections::BTreeMap;
use std::sync::Arc;

use drumtower_core::model::{JobId, NamespaceName, Notify, NotifyOn, NotifyRule, SettingName};
use drumtower_store::{Error, Read};

use super::event::Event;
use super::target::{Place, Target};
use crate::driver::tap::JobKey;

/// Jobs whose rules are held at once.
const HELD: usize = 50_000;

/// A job, and the rules of its own if it has any.
pub type Own = (JobId, Option<Arc<Notify>>);

#[derive(Default)]
pub struct Rules {
    own: BTreeMap<JobId, Option<Arc<Notify>>>,
    namespaces: BTreeMap<NamespaceName, Arc<Notify>>,
}

impl Rules {
    /// The settings of all namespaces.
    pub fn read_namespaces(
        store: &dyn Read,
    ) -> Result<BTreeMap<NamespaceName, Arc<Notify>>, Error> {
        let mut all = BTreeMap::new();
        for row in store.settings()? {
            let (Some(namespace), SettingName::Notify) = (row.key.namespace, row.key.name) else {
                continue;
            };
            // What was put was checked; what another version put may be beyond this one.
            if let Some(value) = row.value
                && let Ok(notify) = Notify::parse("value", &value)
            {
                all.insert(namespace, Arc::new(notify));
            }
        }
        Ok(all)
    }

    /// The rules that jobs have of their own.
    pub fn read_jobs(store: &dyn Read, jobs: &[JobId]) -> Result<Vec<Own>, Error> {
        let read = |id: &JobId| {
            let own = store.job(*id)?.and_then(|job| job.version.spec.notify);
            Ok((*id, own.map(Arc::new)))
        };
        jobs.iter().map(read).collect()
    }

    pub fn set_namespaces(&mut self, namespaces: BTreeMap<NamespaceName, Arc<Notify>>) {
        self.namespaces = namespaces;
    }

    pub fn hold(&mut self, jobs: Vec<Own>) {
        if self.own.len() + jobs.len() > HELD {
            self.own.clear();
        }
        self.own.extend(jobs);
    }

    pub fn forget(&mut self, job: JobId) {
        self.own.remove(&job);
    }

    pub fn knows(&self, job: JobId) -> bool {
        self.own.contains_key(&job)
    }

    fn of(&self, job: JobId, namespace: &NamespaceName) -> &[NotifyRule] {
        let own = self.own.get(&job).and_then(Option::as_ref);
        let rules = own.or_else(|| self.namespaces.get(namespace));
        rules.map_or(&[], |notify| &notify.rules)
    }

    /// After how many milliseconds a run of the job is late, for one rule or another.
    pub fn thresholds(&self, job: &JobKey) -> Vec<u64> {
        let rules = self.of(job.id, &job.namespace).iter();
        let late = rules.filter(|rule| rule.on.contains(&NotifyOn::Late));
        let mut thresholds: Vec<u64> = late.map(NotifyRule::late_after_ms).collect();
        thresholds.sort_unstable();
        thresholds.dedup();
        thresholds
    }

    /// Where an event is told, and for how long what follows is gathered there. A place is named once.
    pub fn places(&self, event: &Event) -> BTreeMap<Place, u64> {
        let mut places = BTreeMap::new();
        for rule in self.of(event.job_id, &event.namespace) {
            let meant = event
                .late_after_ms
                .is_none_or(|after| after == rule.late_after_ms());
            if !rule.on.contains(&event.kind) || !meant {
                continue;
            }
            for target in Target::of_rule(rule) {
                let place = Place {
                    namespace: event.namespace.clone(),
                    target,
                };
                places.entry(place).or_insert(rule.group_for_ms());
            }
        }
        places
    }
}
