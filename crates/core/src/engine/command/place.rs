//! Which segments a command is about: whoever carries it out must own all of them.
//!
//! What many segments share (queues, calendars, tokens, settings, drains) is kept by the owner of the first one. A job that is
//! tied to others, by a queue, a calendar or by running after them, needs that segment too, and theirs: limits are counted and
//! followers told where all of them are.

use crate::model::{JobSpec, SegmentId, SegmentSet};

use super::super::{Command, JobRef};

impl JobRef {
    pub fn segment(&self) -> SegmentId {
        SegmentId::of(self.namespace.as_str(), self.name.as_str())
    }
}

impl Command {
    /// The segments that it takes to carry it out; none for what every server does by itself.
    pub fn segments(&self) -> SegmentSet {
        match self {
            Self::PutJob { spec, .. } => put(spec),
            Self::PauseJob { job, .. }
            | Self::ResumeJob { job, .. }
            | Self::DeleteJob { job, .. }
            | Self::ResetBreaker { job } => one(job.segment()),
            Self::TriggerRuns { triggers } => triggers
                .iter()
                .map(|trigger| trigger.job.segment())
                .collect(),
            Self::CancelRun { run, .. } => one(run.segment()),
            Self::DiscardLetters { runs, .. } => runs.iter().map(|run| run.segment()).collect(),
            Self::CreateBackfill { backfill } => one(backfill.job.segment()),
            Self::PauseBackfill { backfill, .. }
            | Self::ResumeBackfill { backfill, .. }
            | Self::CancelBackfill { backfill, .. } => one(backfill.segment()),
            Self::AcquireLock { request } => one(request.lock.segment()),
            Self::RenewLock { lock, .. } | Self::ReleaseLock { lock, .. } => one(lock.segment()),
            Self::PutCalendar { .. }
            | Self::DeleteCalendar { .. }
            | Self::PutQueue { .. }
            | Self::PauseQueue { .. }
            | Self::ResumeQueue { .. }
            | Self::DeleteQueue { .. }
            | Self::CreateToken { .. }
            | Self::RevokeToken { .. }
            | Self::PutSetting { .. }
            | Self::DeleteSetting { .. }
            | Self::DrainWorker { .. }
            | Self::ResumeWorker { .. } => one(SegmentId::HOME),
            Self::ResetWorker { .. } => SegmentSet::NONE,
        }
    }
}

fn put(spec: &JobSpec) -> SegmentSet {
    let mut segments = spec.ties();
    segments.insert(SegmentId::of(spec.namespace.as_str(), spec.name.as_str()));
    segments
}

fn one(segment: SegmentId) -> SegmentSet {
    [segment].into_iter().collect()
}
