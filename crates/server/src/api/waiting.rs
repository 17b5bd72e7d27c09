//! What a run waits for, in words: its time, a worker that could take it, or room on one.

use drumtower_core::engine::{WorkerState, WorkerView};
use drumtower_core::model::{AttemptOutcome, Requirement, Run, TaskNeed, WallMs};

use super::time::Time;

/// What a PENDING run waits for.
pub fn reason(wanted: &Requirement, due: WallMs, now: WallMs, fleet: &[WorkerView]) -> String {
    if due > now {
        return format!("its time has not come: it starts at {}", Time(due));
    }
    obstacle(wanted, fleet).unwrap_or_else(|| {
        "all workers that could take it are busy, or other runs come first".to_owned()
    })
}

/// Why a run waits that is to be tried again later.
pub fn again(run: &Run, now: WallMs) -> Option<String> {
    let at = run.not_before.filter(|at| *at > now)?;
    let end = run.attempts.last().and_then(|last| last.end.as_ref());
    let what = match end.map(|end| end.outcome) {
        Some(AttemptOutcome::Snoozed) => "was put off by its handler",
        Some(AttemptOutcome::TimedOut) => "timed out",
        _ => "failed",
    };
    let number = run.attempts.len();
    Some(format!(
        "its attempt {number} {what}: it is tried again at {}",
        Time(at)
    ))
}

/// Why no worker that is connected could take such a run, however long it waits, and what to do about it.
pub fn obstacle(wanted: &Requirement, fleet: &[WorkerView]) -> Option<String> {
    let connected = fleet
        .iter()
        .filter(|worker| worker.state != WorkerState::Offline);
    let connected: Vec<&WorkerView> = connected.collect();
    if connected.is_empty() {
        return Some(nobody_connected(&wanted.need));
    }
    let serving = kept(&connected, |worker| {
        let namespace = worker.namespace.as_ref();
        namespace.is_none_or(|namespace| *namespace == wanted.namespace)
    });
    if serving.is_empty() {
        let namespace = &wanted.namespace;
        return Some(format!(
            "no worker serves the namespace `{namespace}`: start one with a token that is bound to it or to none"
        ));
    }
    let offering = kept(&serving, |worker| offers(worker, &wanted.need));
    if offering.is_empty() {
        return Some(not_offered(&wanted.need));
    }
    let large = kept(&offering, |worker| worker.capacity >= wanted.weight);
    if large.is_empty() {
        let most = offering.iter().map(|worker| worker.capacity).max();
        return Some(format!(
            "its weight {} is more than any worker's capacity, of which the largest is {}: lower `weight`, or start a worker with a larger --capacity",
            wanted.weight,
            most.unwrap_or_default()
        ));
    }
    let leaving = large
        .iter()
        .all(|worker| worker.state == WorkerState::Draining);
    leaving.then(|| "the workers that could take it are leaving: start another one".to_owned())
}

fn kept<'a>(workers: &[&'a WorkerView], fits: impl Fn(&WorkerView) -> bool) -> Vec<&'a WorkerView> {
    let fitting = workers.iter().copied().filter(|worker| fits(worker));
    fitting.collect()
}

fn offers(worker: &WorkerView, need: &TaskNeed) -> bool {
    match need {
        TaskNeed::Exec => worker.exec,
        TaskNeed::Http => worker.http,
        TaskNeed::Handler(name) => worker.handlers.contains(name),
    }
}

fn nobody_connected(need: &TaskNeed) -> String {
    match need {
        TaskNeed::Handler(_) => format!("no worker is connected, and {}", not_offered(need)),
        TaskNeed::Exec | TaskNeed::Http => {
            "no worker is connected: start one with `drumtower work`".to_owned()
        }
    }
}

fn not_offered(need: &TaskNeed) -> String {
    match need {
        TaskNeed::Exec => "no worker runs commands: start one with `drumtower work`".to_owned(),
        TaskNeed::Http => {
            "no worker makes HTTP requests: start one with `drumtower work`".to_owned()
        }
        TaskNeed::Handler(name) => format!(
            "no worker offers the handler `{name}`: start the program that registers it, as docs/workers.md shows, or correct the name in the job"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drumtower_core::engine::Load;
    use drumtower_core::model::{NamespaceName, WorkerName};

    fn worker(change: impl FnOnce(&mut WorkerView)) -> WorkerView {
        let mut worker = WorkerView {
            name: WorkerName::new("one").unwrap(),
            state: WorkerState::Online,
            host: String::new(),
            version: String::new(),
            labels: Default::default(),
            namespace: None,
            exec: true,
            http: false,
            enforcement: Default::default(),
            handlers: vec!["other".to_owned()],
            capacity: 4,
            credit: 4,
            attempts: 0,
            running: Vec::new(),
            load: Load::default(),
            skew_ms: 0,
            connected: WallMs(0),
            last_heartbeat: None,
        };
        change(&mut worker);
        worker
    }

    fn wanted(need: TaskNeed, weight: u32) -> Requirement {
        Requirement {
            namespace: NamespaceName::new("billing").unwrap(),
            need,
            weight,
            priority: 5,
        }
    }

    #[track_caller]
    fn says(need: TaskNeed, weight: u32, fleet: &[WorkerView], words: &str) {
        let said = obstacle(&wanted(need, weight), fleet).unwrap_or_default();
        assert!(said.starts_with(words), "{said}");
    }

    #[test]
    fn the_first_thing_that_is_missing_is_named() {
        let gone = worker(|it| it.state = WorkerState::Offline);
        says(TaskNeed::Exec, 1, &[gone], "no worker is connected: start");
        let abroad = worker(|it| it.namespace = NamespaceName::new("sales").ok());
        says(
            TaskNeed::Exec,
            1,
            &[abroad],
            "no worker serves the namespace `billing`",
        );
        let plain = || worker(|_| {});
        let handler = TaskNeed::Handler("count".to_owned());
        says(
            handler,
            1,
            &[plain()],
            "no worker offers the handler `count`",
        );
        says(
            TaskNeed::Http,
            1,
            &[plain()],
            "no worker makes HTTP requests",
        );
        says(
            TaskNeed::Exec,
            5,
            &[plain()],
            "its weight 5 is more than any worker's capacity, of which the largest is 4",
        );
        let leaving = worker(|it| it.state = WorkerState::Draining);
        says(
            TaskNeed::Exec,
            4,
            &[leaving],
            "the workers that could take it are leaving",
        );
    }

    #[test]
    fn a_worker_that_could_take_it_is_no_obstacle() {
        let busy = worker(|it| (it.state, it.credit) = (WorkerState::Busy, 0));
        assert_eq!(obstacle(&wanted(TaskNeed::Exec, 4), &[busy]), None);
        let other = TaskNeed::Handler("other".to_owned());
        assert_eq!(obstacle(&wanted(other, 1), &[worker(|_| {})]), None);
    }

    #[test]
    fn a_run_whose_time_has_not_come_waits_for_it() {
        let said = reason(&wanted(TaskNeed::Http, 1), WallMs(60_000), WallMs(0), &[]);
        assert_eq!(
            said,
            "its time has not come: it starts at 1970-01-01T00:01:00.000Z"
        );
    }
}
