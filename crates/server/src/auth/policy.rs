//! The one policy table: every door of the server, and the roles that may pass it.
//!
//! The router is built from this table, so that a route without a row cannot exist; the RPC asks it by its operation.

use drumtower_core::model::Role;

/// Everything that can be asked of the server from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    PutJob,
    PatchJob,
    ShowJob,
    DeleteJob,
    PauseJob,
    ResumeJob,
    ResetBreaker,
    PauseJobs,
    ResumeJobs,
    DeleteJobs,
    ListJobVersions,
    ShowJobVersion,
    DiffJob,
    RestoreJob,
    ListNamespaceJobs,
    ListJobs,
    NextTimes,
    ValidateJob,
    PreviewSchedule,
    ExplainJob,
    PutCalendar,
    ShowCalendar,
    DeleteCalendar,
    ListCalendarVersions,
    ListNamespaceCalendars,
    ListCalendars,
    PutQueue,
    ShowQueue,
    DeleteQueue,
    PauseQueue,
    ResumeQueue,
    ListNamespaceQueues,
    ListQueues,
    TriggerRun,
    TriggerBatch,
    ListRuns,
    ShowRun,
    WaitRun,
    ExplainRun,
    CancelRun,
    RerunRun,
    ListLetters,
    ListAllLetters,
    ShowLetter,
    RequeueLetters,
    DiscardLetters,
    CreateBackfill,
    PreviewBackfill,
    ListJobBackfills,
    ListBackfills,
    ShowBackfill,
    PauseBackfill,
    ResumeBackfill,
    CancelBackfill,
    ReadLogs,
    FollowChanges,
    ShowMetrics,
    ShowOverview,
    ShowCluster,
    ShowRollups,
    ListUpcoming,
    ListWorkers,
    ShowWorker,
    DrainWorker,
    ResumeWorker,
    ResetWorker,
    CreateToken,
    ListTokens,
    RevokeToken,
    ListAudit,
    PutSetting,
    ShowSetting,
    DeleteSetting,
    ListSettings,
    PutInstallationSetting,
    ShowInstallationSetting,
    DeleteInstallationSetting,
    ListInstallationSettings,
    AcquireLock,
    RenewLock,
    ReleaseLock,
    BreakLock,
    ShowLock,
    ListLocks,
    MakeBackup,
    ListBackups,
    ListNotifications,
    TestNotification,
    ShowJobSchema,
    ShowCalendarSchema,
    ShowQueueSchema,
    ShowOpenapi,
    ShowProblem,
    SignIn,
    ShowSession,
    SignOut,
    ShowConsole,
    ShowConsoleFile,
    Health,
    Readiness,
    WorkerSession,
    FetchCheckpoint,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Get,
    Put,
    Patch,
    Post,
    Delete,
}

/// How a door is knocked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Rest(Verb, &'static str),
    Rpc(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// No token is asked for.
    Anyone,
    Roles(&'static [Role]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Door {
    pub operation: Operation,
    pub call: Call,
    pub who: Who,
}

const LOOK: Who = Who::Roles(&[Role::Admin, Role::Operator, Role::Viewer]);
const ACT: Who = Who::Roles(&[Role::Admin, Role::Operator]);
const MANAGE: Who = Who::Roles(&[Role::Admin]);
const WORK: Who = Who::Roles(&[Role::Admin, Role::Worker]);
const ANY_ROLE: Who = Who::Roles(&[Role::Admin, Role::Operator, Role::Viewer, Role::Worker]);

const JOB: &str = "/api/v1/namespaces/{namespace}/jobs/{name}";
const BACKFILLS: &str = "/api/v1/namespaces/{namespace}/jobs/{name}/backfills";
const CALENDAR: &str = "/api/v1/namespaces/{namespace}/calendars/{name}";

const QUEUE: &str = "/api/v1/namespaces/{namespace}/queues/{name}";

const LOCK: &str = "/api/v1/namespaces/{namespace}/locks/{name}";
const SESSION: &str = "/api/v1/session";
const SETTING: &str = "/api/v1/namespaces/{namespace}/settings/{name}";
const INSTALLATION_SETTING: &str = "/api/v1/settings/{name}";

pub const DOORS: &[Door] = &[
    rest(Operation::PutJob, Verb::Put, JOB, ACT),
    rest(Operation::PatchJob, Verb::Patch, JOB, ACT),
    rest(Operation::ShowJob, Verb::Get, JOB, LOOK),
    rest(Operation::DeleteJob, Verb::Delete, JOB, ACT),
    rest(
        Operation::PauseJob,
        Verb::Post,
        "/api/v1/namespaces/{namespace}/jobs/{name}/pause",
        ACT,
    ),
    rest(
        Operation::ResumeJob,
        Verb::Post,
        "/api/v1/namespaces/{namespace}/jobs/{name}/resume",
        ACT,
    ),
    rest(
        Operation::ResetBreaker,
        Verb::Post,
        "/api/v1/namespaces/{namespace}/jobs/{name}/reset-breaker",
        ACT,
    ),
    rest(
        Operation::PauseJobs,
        Verb::Post,
        "/api/v1/namespaces/{namespace}/jobs:pause",
        ACT,
    ),
    rest(
        Operation::ResumeJobs,
        Verb::Post,
        "/api/v1/namespaces/{namespace}/jobs:resume",
        ACT,
    ),
    rest(
        Operation::DeleteJobs,
        Verb::Post,
        "/api/v1/namespaces/{namespace}/jobs:delete",
        ACT,
    ),
    rest(
        Operation::ListJobVersions,
        Verb::Get,
        "/api/v1/namespaces/{namespace}/jobs/{name}/versions",
        LOOK,
    ),
    rest(
        Operation::ShowJobVersion,
        Verb::Get,
        "/api/v1/namespaces/{namespace}/jobs/{name}/versions/{version}",
        LOOK,
    ),
    rest(
        Operation::DiffJob,
        Verb::Get,
        "/api/v1/namespaces/{namespace}/jobs/{name}/diff",
        LOOK,
    ),
    rest(
        Operation::RestoreJob,
        Verb::Post,
        "/api/v1/namespaces/{namespace}/jobs/{name}/restore",
        ACT,
    ),
    rest(
        Operation::TriggerRun,
        Verb::Post,
        "/api/v1/namespaces/{namespace}/jobs/{name}/runs",
        ACT,
    ),
    rest(
        Operation::ListNamespaceJobs,
        Verb::Get,
        "/api/v1/namespaces/{namespace}/jobs",
        LOOK,
    ),
    rest(Operation::ListJobs, Verb::Get, "/api/v1/jobs", LOOK),
    rest(
        Operation::ValidateJob,
        Verb::Post,
        "/api/v1/namespaces/{namespace}/jobs/{name}/validate",
        LOOK,
    ),
    rest(
        Operation::NextTimes,
        Verb::Get,
        "/api/v1/namespaces/{namespace}/jobs/{name}/next",
        LOOK,
    ),
    rest(
        Operation::PreviewSchedule,
        Verb::Post,
        "/api/v1/schedules:preview",
        LOOK,
    ),
    rest(
        Operation::ExplainJob,
        Verb::Get,
        "/api/v1/namespaces/{namespace}/jobs/{name}/explain",
        LOOK,
    ),
    rest(Operation::PutCalendar, Verb::Put, CALENDAR, ACT),
    rest(Operation::ShowCalendar, Verb::Get, CALENDAR, LOOK),
    rest(Operation::DeleteCalendar, Verb::Delete, CALENDAR, ACT),
    rest(
        Operation::ListCalendarVersions,
        Verb::Get,
        "/api/v1/namespaces/{namespace}/calendars/{name}/versions",
        LOOK,
    ),
    rest(
        Operation::ListNamespaceCalendars,
        Verb::Get,
        "/api/v1/namespaces/{namespace}/calendars",
        LOOK,
    ),
    rest(
        Operation::ListCalendars,
        Verb::Get,
        "/api/v1/calendars",
        LOOK,
    ),
    rest(Operation::PutQueue, Verb::Put, QUEUE, ACT),
    rest(Operation::ShowQueue, Verb::Get, QUEUE, LOOK),
    rest(Operation::DeleteQueue, Verb::Delete, QUEUE, ACT),
    rest(
        Operation::PauseQueue,
        Verb::Post,
        "/api/v1/namespaces/{namespace}/queues/{name}/pause",
        ACT,
    ),
    rest(
        Operation::ResumeQueue,
        Verb::Post,
        "/api/v1/namespaces/{namespace}/queues/{name}/resume",
        ACT,
    ),
    rest(
        Operation::ListNamespaceQueues,
        Verb::Get,
        "/api/v1/namespaces/{namespace}/queues",
        LOOK,
    ),
    rest(Operation::ListQueues, Verb::Get, "/api/v1/queues", LOOK),
    rest(
        Operation::TriggerBatch,
        Verb::Post,
        "/api/v1/runs:batch",
        ACT,
    ),
    rest(Operation::ListRuns, Verb::Get, "/api/v1/runs", LOOK),
    rest(Operation::ShowRun, Verb::Get, "/api/v1/runs/{id}", LOOK),
    rest(
        Operation::WaitRun,
        Verb::Get,
        "/api/v1/runs/{id}/wait",
        LOOK,
    ),
    rest(
        Operation::ExplainRun,
        Verb::Get,
        "/api/v1/runs/{id}/explain",
        LOOK,
    ),
    rest(
        Operation::CancelRun,
        Verb::Post,
        "/api/v1/runs/{id}/cancel",
        ACT,
    ),
    rest(
        Operation::RerunRun,
        Verb::Post,
        "/api/v1/runs/{id}/rerun",
        ACT,
    ),
    rest(
        Operation::ListLetters,
        Verb::Get,
        "/api/v1/namespaces/{namespace}/deadletters",
        LOOK,
    ),
    rest(
        Operation::ListAllLetters,
        Verb::Get,
        "/api/v1/deadletters",
        LOOK,
    ),
    rest(
        Operation::ShowLetter,
        Verb::Get,
        "/api/v1/namespaces/{namespace}/deadletters/{id}",
        LOOK,
    ),
    rest(
        Operation::RequeueLetters,
        Verb::Post,
        "/api/v1/namespaces/{namespace}/deadletters:requeue",
        ACT,
    ),
    rest(
        Operation::DiscardLetters,
        Verb::Post,
        "/api/v1/namespaces/{namespace}/deadletters:discard",
        ACT,
    ),
    rest(Operation::CreateBackfill, Verb::Post, BACKFILLS, ACT),
    rest(
        Operation::PreviewBackfill,
        Verb::Post,
        "/api/v1/namespaces/{namespace}/jobs/{name}/backfills:preview",
        LOOK,
    ),
    rest(Operation::ListJobBackfills, Verb::Get, BACKFILLS, LOOK),
    rest(
        Operation::ListBackfills,
        Verb::Get,
        "/api/v1/backfills",
        LOOK,
    ),
    rest(
        Operation::ShowBackfill,
        Verb::Get,
        "/api/v1/backfills/{id}",
        LOOK,
    ),
    rest(
        Operation::PauseBackfill,
        Verb::Post,
        "/api/v1/backfills/{id}/pause",
        ACT,
    ),
    rest(
        Operation::ResumeBackfill,
        Verb::Post,
        "/api/v1/backfills/{id}/resume",
        ACT,
    ),
    rest(
        Operation::CancelBackfill,
        Verb::Post,
        "/api/v1/backfills/{id}/cancel",
        ACT,
    ),
    rest(
        Operation::ReadLogs,
        Verb::Get,
        "/api/v1/runs/{id}/logs",
        LOOK,
    ),
    rest(Operation::FollowChanges, Verb::Get, "/api/v1/changes", LOOK),
    rest(Operation::ShowMetrics, Verb::Get, "/metrics", LOOK),
    rest(Operation::ShowOverview, Verb::Get, "/api/v1/overview", LOOK),
    rest(Operation::ShowCluster, Verb::Get, "/api/v1/cluster", LOOK),
    rest(Operation::ListWorkers, Verb::Get, "/api/v1/workers", LOOK),
    rest(
        Operation::ShowWorker,
        Verb::Get,
        "/api/v1/workers/{name}",
        LOOK,
    ),
    rest(
        Operation::DrainWorker,
        Verb::Post,
        "/api/v1/workers/{name}/drain",
        ACT,
    ),
    rest(
        Operation::ResumeWorker,
        Verb::Post,
        "/api/v1/workers/{name}/resume",
        ACT,
    ),
    rest(
        Operation::ResetWorker,
        Verb::Post,
        "/api/v1/workers/{name}/reset",
        ACT,
    ),
    rest(Operation::CreateToken, Verb::Post, "/api/v1/tokens", MANAGE),
    rest(Operation::ListTokens, Verb::Get, "/api/v1/tokens", MANAGE),
    rest(
        Operation::RevokeToken,
        Verb::Delete,
        "/api/v1/tokens/{id}",
        MANAGE,
    ),
    rest(Operation::ListAudit, Verb::Get, "/api/v1/audit", MANAGE),
    rest(Operation::PutSetting, Verb::Put, SETTING, ACT),
    rest(Operation::ShowSetting, Verb::Get, SETTING, ACT),
    rest(Operation::DeleteSetting, Verb::Delete, SETTING, ACT),
    rest(
        Operation::ListSettings,
        Verb::Get,
        "/api/v1/namespaces/{namespace}/settings",
        ACT,
    ),
    rest(
        Operation::PutInstallationSetting,
        Verb::Put,
        INSTALLATION_SETTING,
        MANAGE,
    ),
    rest(
        Operation::ShowInstallationSetting,
        Verb::Get,
        INSTALLATION_SETTING,
        LOOK,
    ),
    rest(
        Operation::DeleteInstallationSetting,
        Verb::Delete,
        INSTALLATION_SETTING,
        MANAGE,
    ),
    rest(
        Operation::ListInstallationSettings,
        Verb::Get,
        "/api/v1/settings",
        LOOK,
    ),
    rest(
        Operation::AcquireLock,
        Verb::Post,
        "/api/v1/namespaces/{namespace}/locks/{name}/acquire",
        ACT,
    ),
    rest(
        Operation::RenewLock,
        Verb::Post,
        "/api/v1/namespaces/{namespace}/locks/{name}/renew",
        ACT,
    ),
    rest(
        Operation::ReleaseLock,
        Verb::Post,
        "/api/v1/namespaces/{namespace}/locks/{name}/release",
        ACT,
    ),
    rest(Operation::BreakLock, Verb::Delete, LOCK, ACT),
    rest(Operation::ShowLock, Verb::Get, LOCK, LOOK),
    rest(Operation::ListLocks, Verb::Get, "/api/v1/locks", LOOK),
    rest(Operation::MakeBackup, Verb::Post, "/api/v1/backups", MANAGE),
    rest(Operation::ListBackups, Verb::Get, "/api/v1/backups", MANAGE),
    rest(
        Operation::ListNotifications,
        Verb::Get,
        "/api/v1/notifications",
        LOOK,
    ),
    rest(
        Operation::TestNotification,
        Verb::Post,
        "/api/v1/notifications:test",
        ACT,
    ),
    rest(
        Operation::ShowJobSchema,
        Verb::Get,
        "/api/v1/schema/job",
        ANY_ROLE,
    ),
    rest(
        Operation::ShowCalendarSchema,
        Verb::Get,
        "/api/v1/schema/calendar",
        ANY_ROLE,
    ),
    rest(
        Operation::ShowQueueSchema,
        Verb::Get,
        "/api/v1/schema/queue",
        ANY_ROLE,
    ),
    rest(
        Operation::ShowOpenapi,
        Verb::Get,
        "/api/openapi.json",
        ANY_ROLE,
    ),
    rest(
        Operation::ShowProblem,
        Verb::Get,
        "/api/v1/problems/{code}",
        ANY_ROLE,
    ),
    rest(Operation::ShowRollups, Verb::Get, "/api/v1/rollups", LOOK),
    rest(Operation::ListUpcoming, Verb::Get, "/api/v1/upcoming", LOOK),
    rest(Operation::SignIn, Verb::Post, SESSION, LOOK),
    rest(Operation::ShowSession, Verb::Get, SESSION, LOOK),
    rest(Operation::SignOut, Verb::Delete, SESSION, LOOK),
    rest(Operation::ShowConsole, Verb::Get, "/", Who::Anyone),
    rest(
        Operation::ShowConsoleFile,
        Verb::Get,
        "/assets/{file}",
        Who::Anyone,
    ),
    rest(Operation::Health, Verb::Get, "/healthz", Who::Anyone),
    rest(Operation::Readiness, Verb::Get, "/readyz", Who::Anyone),
    Door {
        operation: Operation::WorkerSession,
        call: Call::Rpc("/drumtower.worker.v1.WorkerService/Session"),
        who: WORK,
    },
    Door {
        operation: Operation::FetchCheckpoint,
        call: Call::Rpc("/drumtower.worker.v1.WorkerService/FetchCheckpoint"),
        who: WORK,
    },
];

const fn rest(operation: Operation, verb: Verb, path: &'static str, who: Who) -> Door {
    Door {
        operation,
        call: Call::Rest(verb, path),
        who,
    }
}

/// Who may pass the door of `operation`. An operation without a row lets nobody pass.
pub fn who(operation: Operation) -> Who {
    DOORS
        .iter()
        .find(|door| door.operation == operation)
        .map_or(Who::Roles(&[]), |door| door.who)
}

pub fn role_name(role: Role) -> &'static str {
    match role {
        Role::Admin => "admin",
        Role::Operator => "operator",
        Role::Viewer => "viewer",
        Role::Worker => "worker",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_operation_has_one_door_and_each_door_one_operation() {
        let operations: BTreeSet<Operation> = DOORS.iter().map(|door| door.operation).collect();
        assert_eq!(operations.len(), DOORS.len());
        let calls: BTreeSet<String> = DOORS
            .iter()
            .map(|door| format!("{:?}", door.call))
            .collect();
        assert_eq!(calls.len(), DOORS.len());
    }

    #[test]
    fn only_health_readiness_and_the_files_of_the_console_are_open() {
        let open: Vec<Operation> = DOORS
            .iter()
            .filter(|door| door.who == Who::Anyone)
            .map(|door| door.operation)
            .collect();
        let expected = [
            Operation::ShowConsole,
            Operation::ShowConsoleFile,
            Operation::Health,
            Operation::Readiness,
        ];
        assert_eq!(open, expected);
    }

    #[test]
    fn an_admin_passes_every_door() {
        for door in DOORS {
            if let Who::Roles(roles) = door.who {
                assert!(roles.contains(&Role::Admin), "{door:?}");
            }
        }
    }
}
