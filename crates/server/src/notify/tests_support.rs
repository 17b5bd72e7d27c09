//! Events and messages for the tests of this module.

use drumtower_core::model::{JobId, JobName, NamespaceName, NotifyOn, RunId, WallMs};

use super::digest::Digest;
use super::event::Event;
use super::message::Message;
use super::target::{Place, Target};

pub fn event(kind: NotifyOn, job: u64, run: u64, at: i64) -> Event {
    Event {
        kind,
        job_id: JobId(job),
        namespace: NamespaceName::default(),
        job: JobName::new(&format!("job-{job}")).unwrap(),
        run: RunId(run),
        at: WallMs(at),
        due: WallMs(at),
        started: Some(WallMs(at)),
        attempts: 1,
        worker: None,
        exit_code: Some(1),
        error: None,
        late_after_ms: None,
    }
}

pub fn place(name: &str) -> Place {
    Place {
        namespace: NamespaceName::default(),
        target: Target::Webhook(format!("https://{name}.example/hook")),
    }
}

/// A message of one failure of a job.
pub fn failure(job: &str) -> Message {
    let event = Event {
        job: JobName::new(job).unwrap(),
        ..event(NotifyOn::Failure, 1, 2, 1000)
    };
    Message::new(&place("a"), Digest::of(event), WallMs(1000))
}
