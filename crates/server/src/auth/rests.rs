//! What the answer to each operation rests on, where several servers share a store: whether the one that is asked can give it.
//!
//! It decides what is held so that it can be sent on, and nothing else: who owns what is decided by the owner. How each of
//! these is answered is told in [`cluster`](crate::cluster).

use super::Operation;

/// What an answer rests on, where several servers share a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rests {
    /// What lies in the store, or what every server of one version has alike.
    Store,
    /// A command that the owner of what it is about carries out.
    Command,
    /// What the owner of a job, a run, a lock or of the first segment has in memory, or writes.
    Owner,
    /// What each server knows a part of: the one that is asked asks the others.
    EachServer,
    /// What is this server's own.
    ThisServer,
}

impl Rests {
    /// Whether another server may have to be asked instead of this one.
    pub fn may_be_elsewhere(self) -> bool {
        !matches!(self, Self::Store | Self::ThisServer)
    }
}

impl Operation {
    pub fn rests_on(self) -> Rests {
        match self {
            Self::PutJob
            | Self::PatchJob
            | Self::DeleteJob
            | Self::PauseJob
            | Self::ResumeJob
            | Self::ResetBreaker
            | Self::PauseJobs
            | Self::ResumeJobs
            | Self::DeleteJobs
            | Self::RestoreJob
            | Self::PutCalendar
            | Self::DeleteCalendar
            | Self::PutQueue
            | Self::DeleteQueue
            | Self::PauseQueue
            | Self::ResumeQueue
            | Self::TriggerRun
            | Self::TriggerBatch
            | Self::CancelRun
            | Self::RerunRun
            | Self::RequeueLetters
            | Self::DiscardLetters
            | Self::CreateBackfill
            | Self::PauseBackfill
            | Self::ResumeBackfill
            | Self::CancelBackfill
            | Self::DrainWorker
            | Self::ResumeWorker
            | Self::ResetWorker
            | Self::CreateToken
            | Self::RevokeToken
            | Self::PutSetting
            | Self::DeleteSetting
            | Self::PutInstallationSetting
            | Self::DeleteInstallationSetting
            | Self::AcquireLock
            | Self::RenewLock
            | Self::ReleaseLock
            | Self::BreakLock => Rests::Command,
            Self::ShowRun
            | Self::ExplainRun
            | Self::ExplainJob
            | Self::ReadLogs
            | Self::ShowQueue
            | Self::ListNamespaceQueues
            | Self::ListQueues
            | Self::ShowLock => Rests::Owner,
            Self::ListLocks
            | Self::ListWorkers
            | Self::ShowWorker
            | Self::ShowOverview
            | Self::ShowCluster
            | Self::ListNotifications
            | Self::SignOut => Rests::EachServer,
            Self::ShowJob
            | Self::ListJobVersions
            | Self::ShowJobVersion
            | Self::DiffJob
            | Self::ListNamespaceJobs
            | Self::ListJobs
            | Self::NextTimes
            | Self::ValidateJob
            | Self::PreviewSchedule
            | Self::ShowCalendar
            | Self::ListCalendarVersions
            | Self::ListNamespaceCalendars
            | Self::ListCalendars
            | Self::ListRuns
            | Self::WaitRun
            | Self::ListLetters
            | Self::ListAllLetters
            | Self::ShowLetter
            | Self::PreviewBackfill
            | Self::ListJobBackfills
            | Self::ListBackfills
            | Self::ShowBackfill
            | Self::FollowChanges
            | Self::ShowRollups
            | Self::ListUpcoming
            | Self::ListTokens
            | Self::ListAudit
            | Self::ShowSetting
            | Self::ListSettings
            | Self::ShowInstallationSetting
            | Self::ListInstallationSettings
            | Self::ShowJobSchema
            | Self::ShowCalendarSchema
            | Self::ShowQueueSchema
            | Self::ShowOpenapi
            | Self::ShowProblem
            | Self::SignIn
            | Self::ShowSession
            | Self::ShowConsole
            | Self::ShowConsoleFile
            | Self::FetchCheckpoint => Rests::Store,
            Self::ShowMetrics
            | Self::MakeBackup
            | Self::ListBackups
            | Self::TestNotification
            | Self::Health
            | Self::Readiness
            | Self::WorkerSession => Rests::ThisServer,
        }
    }
}
