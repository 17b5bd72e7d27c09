//! Every run of a history can be explained, and what is told of its end is what the engine acted on.

use super::world::World;
use crate::explain::run::{Cause, Known, explain};
use crate::model::RunState;

/// Explains every run that there is.
pub(super) fn tell_every_run(world: &World) {
    let tables = &world.tables;
    for run in tables.active.values().chain(tables.history.values()) {
        let version = &tables.versions[&(run.job, run.job_version)];
        let limit = world.engine.hindrance(run);
        let account = explain(&Known {
            run,
            job: Some(&version.spec.name),
            spec: Some(&version.spec),
            fleet: None,
            limit: limit.as_ref(),
            breaker: tables.breakers.get(&run.job),
            now: world.now.wall,
        });
        let (told, text) = (account.headline.code, account.text());
        match run.state {
            RunState::Pending | RunState::Scheduled | RunState::Running => {}
            RunState::Completed => assert_eq!(told, Cause::Completed, "{text}"),
            // What ended the tries is found, not only that something did.
            RunState::Failed => assert_ne!(told, Cause::Failed, "{text}"),
            RunState::Cancelled => {
                let other = [Cause::Completed, Cause::Failed];
                assert!(!other.contains(&told), "{text}");
            }
        }
    }
}
