// The API in types. Written by `cargo xtask codegen` from docs/reference/openapi.json: do not edit.

export type Acquire = { owner: string; ttl?: string | null; wait?: string | null };
export type After = { jobs: string[]; need?: Need; on?: AfterOn };
export type AfterOn = "success" | "failure" | "either";
export type Arrived = { at: string; run: string; state: RunState };
export type Attempt = { assigned: string; end: AttemptEnd | null; fence: string; number: number; started: string | null; worker: string };
export type AttemptEnd = { at: string; cpu_ms: number; duration_ms: number; error: string | null; exit_code: number | null; http_status: number | null; log: Log | null; outcome: AttemptOutcome; peak_memory_bytes: number; signal: number | null; verdict: Verdict | null };
export type AttemptOutcome = "succeeded" | "failed" | "timed_out" | "cancelled" | "lost" | "undelivered" | "snoozed";
export type AuditAction = "created" | "changed" | "paused" | "resumed" | "deleted" | "cancelled" | "revoked" | "requeued" | "discarded" | "drained" | "reset";
export type AuditEntry = { action: AuditAction; actor: string; at: string; changes: Change[]; id: string; kind: AuditKind; name: string; namespace: string | null; version: number | null };
export type AuditEntryPage = { items: AuditEntry[]; next: string | null };
export type AuditKind = "job" | "calendar" | "run" | "token" | "setting" | "lock" | "queue" | "worker" | "backfill";
export type Backfill = { active: number; active_runs: string[]; actor: string; cancelled: number; completed: number; created: string; cursor: string | null; ended: string | null; failed: number; force: boolean; from: string; held: BackfillHold | null; id: string; job: string; job_id: string; job_version: number; made: number; max_active: number; namespace: string; order: BackfillOrder; overlap: TriggerOverlap; params: unknown; priority: number; revision: number; skipped: number; state: BackfillState; times: number; to: string; which: BackfillWhich };
export type BackfillFate = { count: number; first: string[]; taken: boolean };
export type BackfillHold = "overlap" | "breaker";
export type BackfillOrder = "oldest_first" | "newest_first";
export type BackfillPage = { items: Backfill[]; next: string | null };
export type BackfillPreview = { fates: Record<string, BackfillFate>; from: string; job_version: number; runs: number; times: number; to: string; which: BackfillWhich };
export type BackfillState = "RUNNING" | "PAUSED" | "COMPLETED" | "CANCELLED";
export type BackfillWhich = "missing" | "failed" | "all";
export type Backoff = "fixed" | "exponential";
export type Backup = { bytes: number; cluster: string; counts: BackupCounts; created: string; drumtower: string; logs: boolean; name: string; path: string; reason: BackupReason; schema_version: number };
export type BackupCounts = { finished_runs: number; jobs: number; live_runs: number; tokens: number };
export type BackupPage = { items: Backup[]; next: string | null };
export type BackupReason = "asked" | "scheduled" | "upgrade";
export type Batch = { runs: BatchItem[] };
export type BatchAnswer = { runs: BatchEntry[] };
export type BatchEntry = Triggered | { problem: Problem };
export type BatchItem = { at?: string | null; delay?: string | null; force?: boolean; idempotency_key?: string | null; job: string; namespace?: string | null; overlap?: TriggerOverlap; params?: unknown };
export type Bounds = { end?: string | null; max_fires?: number | null; start?: string | null };
export type Breaker = { cooldown?: string | null; failures?: number | null; max_cooldown?: string | null; probes?: number | null };
export type BreakerState = { failures: number; opened: string | null; probe: string | null; state: "closed" | "open" | "half_open"; until: string | null };
export type Bucket = { count: number; up_to_s: number | null };
export type BulkAnswer = { changed: number; items: BulkItem[]; matched: number; next: string | null };
export type BulkItem = { name: string; namespace: string; problem?: Problem | null; result: BulkResult };
export type BulkResult = "changed" | "unchanged" | "failed";
export type Calendar = { actor: string; created: string; days_ahead: string[]; jobs: number; name: string; namespace: string; replan: Replan | null; spec: CalendarSpec; version: number };
export type CalendarKind = "Calendar";
export type CalendarSpec = { description?: string; exclude?: string[]; include?: string[]; kind: CalendarKind; name: string; namespace?: string; weekly?: Weekday[] };
export type CalendarSpecByPath = { description?: string; exclude?: string[]; include?: string[]; kind: CalendarKind; name?: string; namespace?: string; weekly?: Weekday[] };
export type CalendarSummary = { actor: string; created: string; name: string; namespace: string; replan: Replan | null; spec: CalendarSpec; version: number };
export type CalendarSummaryPage = { items: CalendarSummary[]; next: string | null };
export type CalendarUse = { minus?: string[]; only?: string[]; roll?: Roll };
export type CalendarVersion = { actor: string; created: string; deleted: boolean; spec: CalendarSpec; version: number };
export type CalendarVersionPage = { items: CalendarVersion[]; next: string | null };
export type Caller = { name: string; namespace: string | null; role: Role };
export type Change = { after: unknown; before: unknown; field: string };
export type Channel = "webhook" | "email";
export type Checkpoint = { at: string; attempt: number; bytes: number; number: number };
export type Cluster = { database: Database; segments: Segments; servers: ClusterServer[]; store: StoreKind };
export type ClusterServer = { address: string | null; answered: boolean; commit_p50_ms: number | null; commit_p99_ms: number | null; here: boolean; lag_ms: number | null; last_seen: string; name: string; segments: number; session: number; skew_ms: number | null; started: string | null; state: ServerState; tied: number | null; version: string };
export type Cores = number;
export type Counters = { cancelled: number; completed: number; failed: number; made: number | null; started: number; unfired: number };
export type Database = { commit_failures: number; commit_p50_ms: number | null; commit_p99_ms: number | null; commits: number; now: string; read_ms: number };
export type DayRule = "or" | "and";
export type DeadLetter = "keep" | "drop";
export type Deed = { actor: string; at: string };
export type Diff = { changes: Change[]; from: number; to: number };
export type Drain = { deadline?: string | null };
export type DstFold = "first" | "last" | "both";
export type DstGap = "shift" | "skip" | "at_transition";
export type DueTime = { due: string; local: string | null; nominal: string; note: string | null };
export type Enforcement = { by: string; why: string };
export type Exec = { argv?: string[]; cwd?: string | null; env?: Record<string, string>; limits?: ResourceLimits; shell?: string | null; stdin?: string | null; success_codes?: number[]; user?: string | null };
export type Expect = { body?: string | null; status?: StatusPattern[] };
export type Explained = { calendar: string | null; count: number; delay_ms: number | null; due: string | null; fate: string; first: string; last: string; local: string | null; moved_to: string | null; reason: string | null; run: string | null; started: string | null; state: RunState | null; text: string; timezone: string | null; version: number };
export type ExplainedCause = "waits_for_its_time" | "waits_to_be_tried_again" | "waits_put_off" | "waits_for_room" | "waits_for_a_rate" | "queue_paused" | "no_worker_connected" | "no_worker_for_namespace" | "no_worker_offers_it" | "too_heavy_for_every_worker" | "workers_leaving" | "given" | "running" | "worker_silent" | "being_cancelled" | "completed" | "failed_too_often" | "given_up_by_rule" | "lost_too_often" | "undelivered_too_often" | "put_off_too_often" | "cancelled_while_waiting" | "cancelled" | "waits_for_its_turn" | "breaker_open" | "waits_for_a_limit" | "waits_for_a_worker" | "given_up" | "stopped_too_often" | "start_timed_out" | "failed" | "cancelled_unconfirmed" | "failed_for_others" | "superseded" | "expired";
export type ExplainedHappening = "made" | "repeats" | "assigned" | "went_on_from_checkpoint" | "started" | "started_late" | "checkpoint_saved" | "cancel_requested" | "succeeded" | "failed" | "timed_out" | "lost" | "undelivered" | "stopped" | "put_off" | "start_timed_out" | "cancelled" | "moved" | "forgotten" | "left_out";
export type ExplainedRemedy = "nothing" | "read_output" | "follow_output" | "look_at_workers" | "start_worker" | "start_handler" | "make_room" | "look_at_queue" | "resume_queue" | "reset_breaker" | "change_job" | "trigger_now" | "cancel" | "wait_for_the_end" | "run_again" | "go_on_from_checkpoint" | "explain_the_run_before" | "look_at_runs" | "replace_run";
export type Explanation = { from: string; job: string; namespace: string; next: string | null; rows: Explained[]; to: string; waiting: string | null; waiting_code: ExplainedCause | null };
export type FailingJob = { completed: number; failed: number; job: string; namespace: string };
export type FullKey = { running: number; value: string; waiting: number };
export type Handler = { name: string };
export type HeldRun = { created: string; job: string | null; namespace: string; run: string; state: RunState };
export type Http = { body?: string | null; expect?: Expect; follow_redirects?: number; headers?: Record<string, string>; method?: Method; timeout?: string | null; url: string };
export type Job = { actor: string; breaker: BreakerState | null; created: string; fired_through: string; fires: number; id: string; last_unfired: UnfiredRange | null; live_scheduled: number; name: string; namespace: string; next_due: string | null; next_nominal: string | null; paused: Deed | null; queued: number; revision: number; spec: JobSpec; updated: string; version: number; waits: Waits | null; words: string | null; words_zh: string | null };
export type JobCeilings = { max_attempts?: number | null; timeout?: string | null };
export type JobDefaults = { max_attempts?: number | null; retention?: Retention | null; timeout?: string | null };
export type JobLimits = { burst?: number | null; concurrency?: number | null; key?: string | null; per_key?: number | null; rate?: string | null };
export type JobPage = { items: Job[]; next: string | null };
export type JobSettings = { defaults?: JobDefaults; limits?: JobCeilings };
export type JobSpec = { after?: After | null; bounds?: Bounds | null; breaker?: Breaker | null; calendar?: CalendarUse | null; description?: string; jitter?: string | null; kind: Kind; labels?: Record<string, string>; limits?: JobLimits | null; misfire?: Misfire; name: string; namespace?: string; notify?: Notify | null; on_resume?: Misfire; overlap?: Overlap; params?: unknown; placement?: Placement; priority?: number; progress_timeout?: string | null; queue?: string | null; retention?: Retention | null; retry?: Retry; schedule?: ScheduleEntry[]; start_timeout?: string | null; task: Task; timeout?: string | null; weight?: number };
export type JobSpecByPath = { after?: After | null; bounds?: Bounds | null; breaker?: Breaker | null; calendar?: CalendarUse | null; description?: string; jitter?: string | null; kind: Kind; labels?: Record<string, string>; limits?: JobLimits | null; misfire?: Misfire; name?: string; namespace?: string; notify?: Notify | null; on_resume?: Misfire; overlap?: Overlap; params?: unknown; placement?: Placement; priority?: number; progress_timeout?: string | null; queue?: string | null; retention?: Retention | null; retry?: Retry; schedule?: ScheduleEntry[]; start_timeout?: string | null; task: Task; timeout?: string | null; weight?: number };
export type JobSpecPatch = { after?: After | null | null; bounds?: Bounds | null | null; breaker?: Breaker | null | null; calendar?: CalendarUse | null | null; description?: string | null; jitter?: string | null | null; kind?: Kind | null; labels?: Record<string, string> | null; limits?: JobLimits | null | null; misfire?: Misfire | null; name?: string | null; namespace?: string | null; notify?: Notify | null | null; on_resume?: Misfire | null; overlap?: Overlap | null; params?: unknown | null; placement?: Placement | null; priority?: number | null; progress_timeout?: string | null | null; queue?: string | null | null; retention?: Retention | null | null; retry?: Retry | null; schedule?: ScheduleEntry[] | null; start_timeout?: string | null | null; task?: Task | null; timeout?: string | null | null; weight?: number | null };
export type JobVersion = { actor: string; created: string; current: boolean; spec: JobSpec; version: number };
export type JobVersionPage = { items: JobVersion[]; next: string | null };
export type Keep = "oldest" | "newest";
export type Kind = "Job";
export type Letter = { attempts: number; died: string | null; due: string; error: string | null; job: string | null; job_id: string; namespace: string; nominal: string | null; reason: Reason | null; run: string; worker: string | null };
export type LetterItem = { done: boolean; new_run: string | null; problem?: Problem | null; run: string };
export type LetterPage = { items: Letter[]; next: string | null };
export type LetterSelection = { all?: boolean; dry_run?: boolean; job?: string | null; limit?: number | null; overlap?: TriggerOverlap | null; reason?: "start_timed_out" | "overlap" | "task_failed" | "timed_out" | "worker_lost" | null; runs?: string[]; since?: string | null; until?: string | null };
export type LettersAnswer = { changed: number; items: LetterItem[]; matched: number; more: boolean };
export type Line = { held: number; namespace: string; need: string; oldest: string | null; parked: boolean; priority: number; waiting: number; weight: number; workers: number };
export type Load = { cpu_permille: number; disk_total_bytes: number; disk_used_bytes: number; memory_total_bytes: number; memory_used_bytes: number; network_received_bytes_per_s: number; network_sent_bytes_per_s: number; running_weight: number };
export type Lock = { acquired: string; actor: string; fence: string; name: string; namespace: string; owner: string; ttl_ms: number; waiting?: number | null };
export type LockPage = { items: Lock[]; next: string | null };
export type Log = { bytes: number; truncated: boolean };
export type Long = { depth?: number | null; keep?: Keep | null; key?: string | null; limit?: number | null; on_full?: OnFull };
export type Maintenance = { actor: string; deadline: string | null; forced: string | null; namespace: string | null; since: string };
export type Method = "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS";
export type Misfire = { gap?: string | null; max?: number | null; policy?: MisfirePolicy | null; window?: string | null };
export type MisfirePolicy = "skip" | "latest" | "all";
export type Need = "all" | "any";
export type NewBackfill = { force?: boolean; from: string; max_active?: number | null; order?: BackfillOrder; overlap?: TriggerOverlap; params?: unknown; priority?: number | null; to: string; which?: BackfillWhich };
export type NewBackup = { logs?: boolean };
export type NewRerun = { at?: string | null; delay?: string | null; idempotency_key?: string | null; overlap?: TriggerOverlap; params?: unknown; resume?: boolean; version?: RerunVersion };
export type NewRun = { at?: string | null; delay?: string | null; force?: boolean; overlap?: TriggerOverlap; params?: unknown };
export type NewToken = { name: string; namespace?: string | null; role: Role };
export type Notification = { attempts: number; channel: Channel; created: string; error: string | null; id: string; job: string | null; namespace: string; next_attempt: string | null; state: State; summary: string; target: string; type: string; updated: string };
export type NotificationPage = { items: Notification[]; next: string | null };
export type NotificationTest = { email?: string | null; job?: string | null; namespace?: string | null; webhook?: string | null };
export type NotificationTested = { channel: Channel; delivered: boolean; error: string | null; target: string };
export type NotificationTestedPage = { items: NotificationTested[]; next: string | null };
export type Notify = { rules?: NotifyRule[] };
export type NotifyOn = "failure" | "recovery" | "late";
export type NotifyRule = { email?: string[]; group_for?: string | null; late_after?: string | null; on: NotifyOn[]; webhook?: string | null };
export type OnFull = "skip" | "allow" | "queue" | "cancel_old" | "fail";
export type Operation = "PutJob" | "PatchJob" | "ShowJob" | "DeleteJob" | "PauseJob" | "ResumeJob" | "ResetBreaker" | "PauseJobs" | "ResumeJobs" | "DeleteJobs" | "ListJobVersions" | "ShowJobVersion" | "DiffJob" | "RestoreJob" | "TriggerRun" | "ListNamespaceJobs" | "ListJobs" | "ValidateJob" | "NextTimes" | "PreviewSchedule" | "ExplainJob" | "PutCalendar" | "ShowCalendar" | "DeleteCalendar" | "ListCalendarVersions" | "ListNamespaceCalendars" | "ListCalendars" | "PutQueue" | "ShowQueue" | "DeleteQueue" | "PauseQueue" | "ResumeQueue" | "ListNamespaceQueues" | "ListQueues" | "TriggerBatch" | "ListRuns" | "ShowRun" | "WaitRun" | "ExplainRun" | "CancelRun" | "RerunRun" | "ListLetters" | "ListAllLetters" | "ShowLetter" | "RequeueLetters" | "DiscardLetters" | "CreateBackfill" | "PreviewBackfill" | "ListJobBackfills" | "ListBackfills" | "ShowBackfill" | "PauseBackfill" | "ResumeBackfill" | "CancelBackfill" | "ReadLogs" | "FollowChanges" | "ShowMetrics" | "ShowOverview" | "ShowCluster" | "ListWorkers" | "ShowWorker" | "DrainWorker" | "ResumeWorker" | "ResetWorker" | "CreateToken" | "ListTokens" | "RevokeToken" | "ListAudit" | "PutSetting" | "ShowSetting" | "DeleteSetting" | "ListSettings" | "PutInstallationSetting" | "ShowInstallationSetting" | "DeleteInstallationSetting" | "ListInstallationSettings" | "AcquireLock" | "RenewLock" | "ReleaseLock" | "BreakLock" | "ShowLock" | "ListLocks" | "MakeBackup" | "ListBackups" | "ListNotifications" | "TestNotification" | "ShowJobSchema" | "ShowCalendarSchema" | "ShowQueueSchema" | "ShowOpenapi" | "ShowProblem" | "ShowRollups" | "ListUpcoming" | "SignIn" | "ShowSession" | "SignOut" | "ShowConsole" | "ShowConsoleFile" | "Health" | "Readiness";
export type Origin = "schedule" | "api" | "backfill" | "after";
export type Overlap = OnFull | Long;
export type Overview = { caller: Caller; counters: Counters; failing: FailingJob[]; lines: Line[]; now: string; ready: boolean; runs: RunsNow; silent: string[]; start_delay: Bucket[]; uptime_ms: number; version: string; workers: Worker[]; workers_total: number };
export type Placement = "round_robin" | "least_loaded";
export type Problem = { code: "malformed_json" | "unknown_field" | "unknown_parameter" | "invalid_parameter" | "invalid_header" | "unauthenticated" | "forbidden_role" | "forbidden_namespace" | "other_site" | "no_such_route" | "no_such_job" | "no_such_calendar" | "no_such_run" | "no_such_letter" | "no_such_token" | "no_such_setting" | "no_such_version" | "no_such_problem" | "no_such_worker" | "no_such_lock" | "no_such_queue" | "no_such_backfill" | "method_not_allowed" | "idempotency_key_reused" | "run_not_ended" | "overlap_full" | "breaker_open" | "lock_held" | "lock_lost" | "backfill_over" | "backfill_in_the_way" | "token_name_taken" | "calendar_in_use" | "backup_under_way" | "too_many_calendars" | "log_expired" | "output_away" | "stale" | "already_there" | "too_large" | "unsupported_media_type" | "invalid_field" | "overloaded" | "too_many_streams" | "not_ready" | "stopping" | "outcome_unknown" | "store_failed" | "backup_failed" | "internal"; detail: string; field?: string | null; status: number; title: string; type: string };
export type Progress = { at: string; message: string | null; percent: number };
export type Queue = { actor: string; created: string; depth: number; full_keys: FullKey[]; held: number; holders: string[]; name: string; namespace: string; oldest: string | null; parked: number; paused: QueuePause | null; rate_until: string | null; revision: number; running: number; spec: QueueSpec; updated: string };
export type QueueKind = "Queue";
export type QueuePage = { items: Queue[]; next: string | null };
export type QueuePause = { actor: string; at: string };
export type QueueSpec = { burst?: number | null; concurrency?: number | null; description?: string; key?: string | null; kind: QueueKind; name: string; namespace?: string; per_key?: number | null; rate?: string | null };
export type QueueSpecByPath = { burst?: number | null; concurrency?: number | null; description?: string; key?: string | null; kind: QueueKind; name?: string; namespace?: string; per_key?: number | null; rate?: string | null };
export type Reason = "created" | "assigned" | "started" | "succeeded" | "timed_out" | "cancelled" | "task_failed" | "worker_lost" | "undelivered" | "retry" | "snoozed" | "start_timed_out" | "overlap" | "superseded" | "expired";
export type Release = { fence: string };
export type Renew = { fence: string; ttl?: string | null };
export type Replan = { changed: number; finished: string | null; looked: number; started: string; version: string };
export type RerunVersion = "current" | "original";
export type ResourceLimits = { cpu?: Cores | null; memory?: string | null; open_files?: number | null; processes?: number | null };
export type Restoration = { version: number };
export type Retention = "1d" | "7d" | "30d" | "keep";
export type Retry = { backoff?: Backoff | null; dead_letter?: DeadLetter | null; initial?: string | null; jitter?: boolean | null; max?: string | null; max_attempts?: number | null; max_lost?: number | null; on?: RetryRule[]; priority?: number | null };
export type RetryAction = "retry" | "give_up";
export type RetryRule = { action: RetryAction; after?: string | null; exit_codes?: number[]; http_status?: StatusPattern[]; signals?: number[]; timeout?: boolean };
export type Role = "admin" | "operator" | "viewer" | "worker";
export type Roll = "none" | "next" | "previous" | "nearest";
export type RollupPoint = { at: string; cancelled: number; completed: number; delay_p50_ms: number | null; delay_p99_ms: number | null; duration_p50_ms: number | null; duration_p99_ms: number | null; failed: number };
export type Rollups = { points: RollupPoint[]; since: string; step_ms: number; until: string };
export type Run = { actor: string; attempts: Attempt[]; backfill: string | null; cancel: Deed | null; checkpoint: Checkpoint | null; created: string; due: string; error: string | null; finished: string | null; id: string; idempotency_key: string | null; job: string | null; job_id: string; job_version: number; namespace: string; nominal: string | null; not_before: string | null; origin: Origin; overlap_key: string | null; params: unknown; parent_run: string | null; progress: Progress | null; queued: boolean; rerun_of: string | null; result: unknown; root_run: string | null; state: RunState; transitions: Transition[]; waiting: string | null };
export type RunExplanation = { advice: RunExplanationAdvice[]; headline: RunExplanationHeadline; job: string | null; namespace: string; run: string; state: RunState; text: string; timeline: RunExplanationEvent[] };
export type RunExplanationAdvice = { code: ExplainedRemedy; commands: string[]; text: string };
export type RunExplanationEvent = { actor: string | null; at: string; attempt: number | null; code: ExplainedHappening; text: string; worker: string | null };
export type RunExplanationHeadline = { code: ExplainedCause; text: string };
export type RunState = "PENDING" | "SCHEDULED" | "RUNNING" | "COMPLETED" | "FAILED" | "CANCELLED";
export type RunSummary = { actor: string; attempt: number; created: string; due: string; duration_ms: number | null; error: string | null; exit_code: number | null; finished: string | null; id: string; job: string | null; job_id: string; job_version: number; namespace: string; nominal: string | null; origin: Origin; started: string | null; state: RunState; worker: string | null };
export type RunSummaryPage = { items: RunSummary[]; next: string | null };
export type RunsNow = { held: number; live: number | null; parked: number | null; waiting: number };
export type ScheduleEntry = { after_end?: string | null; anchor?: string | null; at?: string | null; cron?: string | null; day_rule?: DayRule | null; dst_fold?: DstFold | null; dst_gap?: DstGap | null; every?: string | null; timezone?: string | null };
export type SchedulePreview = { backwards?: boolean; bounds?: Bounds | null; calendar?: CalendarUse | null; count?: number | null; from?: string | null; jitter?: string | null; namespace?: string | null; schedule: ScheduleEntry[] };
export type ScheduleWarning = { code: string; entry: number | null; text: string };
export type Script = { body: string; cwd?: string | null; env?: Record<string, string>; interpreter?: string[]; limits?: ResourceLimits; stdin?: string | null; success_codes?: number[]; user?: string | null };
export type SegmentRange = { epoch: number; first: number; last: number; session: number | null };
export type Segments = { count: number; ranges: SegmentRange[]; unowned: number };
export type Selection = { cursor?: string | null; dry_run?: boolean; labels?: Record<string, string>; names?: string[] };
export type ServerState = "active" | "standby" | "gone";
export type Session = { may: Operation[]; name: string; namespace: string | null; role: Role; server: string; version: string };
export type Setting = { actor: string; name: SettingName; namespace: string | null; revision: number; updated: string; value: unknown };
export type SettingName = "notify" | "jobs";
export type SettingPage = { items: Setting[]; next: string | null };
export type Standing = { attempts: number; maintenance: Maintenance | null; name: string; processes: number };
export type State = "delivered" | "pending" | "failed" | "dropped";
export type Status = { status: string };
export type StatusPattern = number | string;
export type StoreKind = "sqlite" | "postgresql";
export type Task = { exec: Exec } | { script: Script } | { http: Http } | { handler: Handler };
export type Times = { times: DueTime[]; warnings: ScheduleWarning[]; words: string; words_zh: string };
export type Token = { actor: string; created: string; id: string; name: string; namespace: string | null; revoked: boolean; role: Role; secret?: string | null };
export type TokenPage = { items: Token[]; next: string | null };
export type Transition = { at: string; attempt: number; reason: Reason; to: RunState };
export type TriggerOverlap = "ignore" | "obey";
export type Triggered = { id: string; repeated: boolean };
export type UnfiredRange = { count: number; first: string; last: string; reason: UnfiredReason; version: number };
export type UnfiredReason = "overlap" | "misfire" | "paused" | "edited" | "queue_full" | "breaker";
export type Unmade = { at: string; count: number; reason: UnfiredReason; run: string };
export type Upcoming = { due: string; job: string; namespace: string; nominal: string | null; words: string | null; words_zh: string | null };
export type UpcomingPage = { items: Upcoming[]; next: string | null };
export type Verdict = { retry_after_ms: number } | "give_up" | { snooze_ms: number };
export type Waits = { arrived: Record<string, Arrived>; unmade: Unmade | null };
export type Weekday = "mon" | "tue" | "wed" | "thu" | "fri" | "sat" | "sun";
export type Worker = { attempts: number; capacity: number; connected: string; credit: number; exec: boolean; faulty_until: string | null; handlers: string[]; host: string; http: boolean; labels: Record<string, string>; last_heartbeat: string | null; load: Load; losses: number; maintenance: Maintenance | null; name: string; namespace: string | null; probation: boolean; skew_ms: number; state: WorkerState; version: string; why: string | null };
export type WorkerInFull = { attempts: number; capacity: number; connected: string; credit: number; exec: boolean; executors: string[]; faulty_until: string | null; handlers: string[]; host: string; http: boolean; labels: Record<string, string>; last_heartbeat: string | null; limits: Enforcement | null; load: Load; losses: number; maintenance: Maintenance | null; name: string; namespace: string | null; others: number; probation: boolean; running: HeldRun[]; skew_ms: number; state: WorkerState; version: string; why: string | null };
export type WorkerPage = { items: Worker[]; next: string | null };
export type WorkerState = "ONLINE" | "BUSY" | "MAINTENANCE" | "OFFLINE" | "FAULTY";

export interface Operations {
  showOpenapi: { path: object; query: object; body: undefined; answer: Record<string, unknown> };
  listAudit: { path: object; query: { namespace?: string; kind?: "job" | "calendar" | "run" | "token" | "setting" | "lock" | "queue" | "worker" | "backfill"; name?: string; actor?: string; action?: "created" | "changed" | "paused" | "resumed" | "deleted" | "cancelled" | "revoked" | "requeued" | "discarded" | "drained" | "reset"; since?: string; until?: string; limit?: number; cursor?: string }; body: undefined; answer: AuditEntryPage };
  listBackfills: { path: object; query: { state?: BackfillState[]; limit?: number; cursor?: string; namespace?: string }; body: undefined; answer: BackfillPage };
  showBackfill: { path: { id: string }; query: object; body: undefined; answer: Backfill };
  cancelBackfill: { path: { id: string }; query: { runs?: boolean }; body: undefined; answer: Backfill };
  pauseBackfill: { path: { id: string }; query: object; body: undefined; answer: Backfill };
  resumeBackfill: { path: { id: string }; query: object; body: undefined; answer: Backfill };
  listBackups: { path: object; query: object; body: undefined; answer: BackupPage };
  makeBackup: { path: object; query: object; body: NewBackup; answer: Backup };
  listCalendars: { path: object; query: { namespace?: string; limit?: number; cursor?: string }; body: undefined; answer: CalendarSummaryPage };
  followChanges: { path: object; query: { namespace?: string; job?: string[]; state?: RunState[]; kind?: ("run" | "job" | "worker" | "calendar" | "queue" | "backfill" | "breaker")[]; max_rate?: number }; body: undefined; answer: undefined };
  showCluster: { path: object; query: object; body: undefined; answer: Cluster };
  listAllLetters: { path: object; query: { namespace?: string; reason?: "start_timed_out" | "overlap" | "task_failed" | "timed_out" | "worker_lost"; since?: string; until?: string; limit?: number; cursor?: string }; body: undefined; answer: LetterPage };
  listJobs: { path: object; query: { namespace?: string; label?: string[]; paused?: boolean; prefix?: string; search?: string; limit?: number; cursor?: string }; body: undefined; answer: JobPage };
  listLocks: { path: object; query: { namespace?: string; limit?: number; cursor?: string }; body: undefined; answer: LockPage };
  listNamespaceCalendars: { path: { namespace: string }; query: { limit?: number; cursor?: string }; body: undefined; answer: CalendarSummaryPage };
  deleteCalendar: { path: { namespace: string; name: string }; query: object; body: undefined; answer: undefined };
  showCalendar: { path: { namespace: string; name: string }; query: object; body: undefined; answer: Calendar };
  putCalendar: { path: { namespace: string; name: string }; query: object; body: CalendarSpecByPath; answer: Calendar };
  listCalendarVersions: { path: { namespace: string; name: string }; query: { limit?: number; cursor?: string }; body: undefined; answer: CalendarVersionPage };
  listLetters: { path: { namespace: string }; query: { job?: string; reason?: "start_timed_out" | "overlap" | "task_failed" | "timed_out" | "worker_lost"; since?: string; until?: string; limit?: number; cursor?: string }; body: undefined; answer: LetterPage };
  showLetter: { path: { namespace: string; id: string }; query: object; body: undefined; answer: Run };
  discardLetters: { path: { namespace: string }; query: object; body: LetterSelection; answer: LettersAnswer };
  requeueLetters: { path: { namespace: string }; query: object; body: LetterSelection; answer: LettersAnswer };
  listNamespaceJobs: { path: { namespace: string }; query: { label?: string[]; paused?: boolean; prefix?: string; search?: string; limit?: number; cursor?: string }; body: undefined; answer: JobPage };
  deleteJob: { path: { namespace: string; name: string }; query: object; body: undefined; answer: undefined };
  showJob: { path: { namespace: string; name: string }; query: object; body: undefined; answer: Job };
  patchJob: { path: { namespace: string; name: string }; query: object; body: JobSpecPatch; answer: Job };
  putJob: { path: { namespace: string; name: string }; query: object; body: JobSpecByPath; answer: Job };
  listJobBackfills: { path: { namespace: string; name: string }; query: { state?: BackfillState[]; limit?: number; cursor?: string }; body: undefined; answer: BackfillPage };
  createBackfill: { path: { namespace: string; name: string }; query: object; body: NewBackfill; answer: Backfill };
  previewBackfill: { path: { namespace: string; name: string }; query: object; body: NewBackfill; answer: BackfillPreview };
  diffJob: { path: { namespace: string; name: string }; query: { from?: number; to?: number }; body: undefined; answer: Diff };
  explainJob: { path: { namespace: string; name: string }; query: { from?: string; to?: string; limit?: number; cursor?: string }; body: undefined; answer: Explanation };
  nextTimes: { path: { namespace: string; name: string }; query: { from?: string; count?: number; backwards?: boolean }; body: undefined; answer: Times };
  pauseJob: { path: { namespace: string; name: string }; query: object; body: undefined; answer: Job };
  resetBreaker: { path: { namespace: string; name: string }; query: object; body: undefined; answer: Job };
  restoreJob: { path: { namespace: string; name: string }; query: object; body: Restoration; answer: Job };
  resumeJob: { path: { namespace: string; name: string }; query: object; body: undefined; answer: Job };
  triggerRun: { path: { namespace: string; name: string }; query: object; body: NewRun; answer: Triggered };
  validateJob: { path: { namespace: string; name: string }; query: object; body: JobSpecByPath; answer: Times };
  listJobVersions: { path: { namespace: string; name: string }; query: { limit?: number; cursor?: string }; body: undefined; answer: JobVersionPage };
  showJobVersion: { path: { namespace: string; name: string; version: number }; query: object; body: undefined; answer: JobVersion };
  deleteJobs: { path: { namespace: string }; query: object; body: Selection; answer: BulkAnswer };
  pauseJobs: { path: { namespace: string }; query: object; body: Selection; answer: BulkAnswer };
  resumeJobs: { path: { namespace: string }; query: object; body: Selection; answer: BulkAnswer };
  breakLock: { path: { namespace: string; name: string }; query: object; body: undefined; answer: undefined };
  showLock: { path: { namespace: string; name: string }; query: object; body: undefined; answer: Lock };
  acquireLock: { path: { namespace: string; name: string }; query: object; body: Acquire; answer: Lock };
  releaseLock: { path: { namespace: string; name: string }; query: object; body: Release; answer: undefined };
  renewLock: { path: { namespace: string; name: string }; query: object; body: Renew; answer: Lock };
  listNamespaceQueues: { path: { namespace: string }; query: { limit?: number; cursor?: string }; body: undefined; answer: QueuePage };
  deleteQueue: { path: { namespace: string; name: string }; query: object; body: undefined; answer: undefined };
  showQueue: { path: { namespace: string; name: string }; query: object; body: undefined; answer: Queue };
  putQueue: { path: { namespace: string; name: string }; query: object; body: QueueSpecByPath; answer: Queue };
  pauseQueue: { path: { namespace: string; name: string }; query: object; body: undefined; answer: Queue };
  resumeQueue: { path: { namespace: string; name: string }; query: object; body: undefined; answer: Queue };
  listSettings: { path: { namespace: string }; query: object; body: undefined; answer: SettingPage };
  deleteSetting: { path: { namespace: string; name: "notify" }; query: object; body: undefined; answer: undefined };
  showSetting: { path: { namespace: string; name: "notify" }; query: object; body: undefined; answer: Setting };
  putSetting: { path: { namespace: string; name: "notify" }; query: object; body: Notify; answer: Setting };
  listNotifications: { path: object; query: { namespace?: string; state?: "pending" | "delivered" | "failed" | "dropped"; limit?: number }; body: undefined; answer: NotificationPage };
  testNotification: { path: object; query: object; body: NotificationTest; answer: NotificationTestedPage };
  showOverview: { path: object; query: object; body: undefined; answer: Overview };
  showProblem: { path: { code: "malformed_json" | "unknown_field" | "unknown_parameter" | "invalid_parameter" | "invalid_header" | "unauthenticated" | "forbidden_role" | "forbidden_namespace" | "other_site" | "no_such_route" | "no_such_job" | "no_such_calendar" | "no_such_run" | "no_such_letter" | "no_such_token" | "no_such_setting" | "no_such_version" | "no_such_problem" | "no_such_worker" | "no_such_lock" | "no_such_queue" | "no_such_backfill" | "method_not_allowed" | "idempotency_key_reused" | "run_not_ended" | "overlap_full" | "breaker_open" | "lock_held" | "lock_lost" | "backfill_over" | "backfill_in_the_way" | "token_name_taken" | "calendar_in_use" | "backup_under_way" | "too_many_calendars" | "log_expired" | "output_away" | "stale" | "already_there" | "too_large" | "unsupported_media_type" | "invalid_field" | "overloaded" | "too_many_streams" | "not_ready" | "stopping" | "outcome_unknown" | "store_failed" | "backup_failed" | "internal" }; query: object; body: undefined; answer: undefined };
  listQueues: { path: object; query: { namespace?: string; limit?: number; cursor?: string }; body: undefined; answer: QueuePage };
  showRollups: { path: object; query: { namespace?: string; job?: string; since?: string; until?: string; step?: string }; body: undefined; answer: Rollups };
  listRuns: { path: object; query: { namespace?: string; job?: string; job_id?: string; state?: RunState[]; origin?: Origin; backfill?: string; since?: string; until?: string; limit?: number; cursor?: string }; body: undefined; answer: RunSummaryPage };
  showRun: { path: { id: string }; query: object; body: undefined; answer: Run };
  cancelRun: { path: { id: string }; query: object; body: undefined; answer: Run };
  explainRun: { path: { id: string }; query: object; body: undefined; answer: RunExplanation };
  readLogs: { path: { id: string }; query: { follow?: boolean; attempt?: number; stream?: "stdout" | "stderr"; since?: string; tail?: number; grep?: string }; body: undefined; answer: undefined };
  rerunRun: { path: { id: string }; query: object; body: NewRerun; answer: Triggered };
  waitRun: { path: { id: string }; query: { timeout?: string }; body: undefined; answer: Run };
  triggerBatch: { path: object; query: object; body: Batch; answer: BatchAnswer };
  previewSchedule: { path: object; query: object; body: SchedulePreview; answer: Times };
  showCalendarSchema: { path: object; query: object; body: undefined; answer: undefined };
  showJobSchema: { path: object; query: object; body: undefined; answer: undefined };
  showQueueSchema: { path: object; query: object; body: undefined; answer: undefined };
  signOut: { path: object; query: object; body: undefined; answer: undefined };
  showSession: { path: object; query: object; body: undefined; answer: Session };
  signIn: { path: object; query: object; body: undefined; answer: Session };
  listInstallationSettings: { path: object; query: object; body: undefined; answer: SettingPage };
  deleteInstallationSetting: { path: { name: "jobs" }; query: object; body: undefined; answer: undefined };
  showInstallationSetting: { path: { name: "jobs" }; query: object; body: undefined; answer: Setting };
  putInstallationSetting: { path: { name: "jobs" }; query: object; body: JobSettings; answer: Setting };
  listTokens: { path: object; query: object; body: undefined; answer: TokenPage };
  createToken: { path: object; query: object; body: NewToken; answer: Token };
  revokeToken: { path: { id: string }; query: object; body: undefined; answer: undefined };
  listUpcoming: { path: object; query: { namespace?: string; until?: string; limit?: number }; body: undefined; answer: UpcomingPage };
  listWorkers: { path: object; query: object; body: undefined; answer: WorkerPage };
  showWorker: { path: { name: string }; query: object; body: undefined; answer: WorkerInFull };
  drainWorker: { path: { name: string }; query: { namespace?: string }; body: Drain; answer: Standing };
  resetWorker: { path: { name: string }; query: { namespace?: string }; body: undefined; answer: Standing };
  resumeWorker: { path: { name: string }; query: { namespace?: string }; body: undefined; answer: Standing };
  health: { path: object; query: object; body: undefined; answer: Status };
  showMetrics: { path: object; query: object; body: undefined; answer: undefined };
  readiness: { path: object; query: object; body: undefined; answer: Status };
}

/** How each operation is called. */
export const CALLS = {
  showOpenapi: ['GET', '/api/openapi.json'],
  listAudit: ['GET', '/api/v1/audit'],
  listBackfills: ['GET', '/api/v1/backfills'],
  showBackfill: ['GET', '/api/v1/backfills/{id}'],
  cancelBackfill: ['POST', '/api/v1/backfills/{id}/cancel'],
  pauseBackfill: ['POST', '/api/v1/backfills/{id}/pause'],
  resumeBackfill: ['POST', '/api/v1/backfills/{id}/resume'],
  listBackups: ['GET', '/api/v1/backups'],
  makeBackup: ['POST', '/api/v1/backups'],
  listCalendars: ['GET', '/api/v1/calendars'],
  followChanges: ['GET', '/api/v1/changes'],
  showCluster: ['GET', '/api/v1/cluster'],
  listAllLetters: ['GET', '/api/v1/deadletters'],
  listJobs: ['GET', '/api/v1/jobs'],
  listLocks: ['GET', '/api/v1/locks'],
  listNamespaceCalendars: ['GET', '/api/v1/namespaces/{namespace}/calendars'],
  deleteCalendar: ['DELETE', '/api/v1/namespaces/{namespace}/calendars/{name}'],
  showCalendar: ['GET', '/api/v1/namespaces/{namespace}/calendars/{name}'],
  putCalendar: ['PUT', '/api/v1/namespaces/{namespace}/calendars/{name}'],
  listCalendarVersions: ['GET', '/api/v1/namespaces/{namespace}/calendars/{name}/versions'],
  listLetters: ['GET', '/api/v1/namespaces/{namespace}/deadletters'],
  showLetter: ['GET', '/api/v1/namespaces/{namespace}/deadletters/{id}'],
  discardLetters: ['POST', '/api/v1/namespaces/{namespace}/deadletters:discard'],
  requeueLetters: ['POST', '/api/v1/namespaces/{namespace}/deadletters:requeue'],
  listNamespaceJobs: ['GET', '/api/v1/namespaces/{namespace}/jobs'],
  deleteJob: ['DELETE', '/api/v1/namespaces/{namespace}/jobs/{name}'],
  showJob: ['GET', '/api/v1/namespaces/{namespace}/jobs/{name}'],
  patchJob: ['PATCH', '/api/v1/namespaces/{namespace}/jobs/{name}'],
  putJob: ['PUT', '/api/v1/namespaces/{namespace}/jobs/{name}'],
  listJobBackfills: ['GET', '/api/v1/namespaces/{namespace}/jobs/{name}/backfills'],
  createBackfill: ['POST', '/api/v1/namespaces/{namespace}/jobs/{name}/backfills'],
  previewBackfill: ['POST', '/api/v1/namespaces/{namespace}/jobs/{name}/backfills:preview'],
  diffJob: ['GET', '/api/v1/namespaces/{namespace}/jobs/{name}/diff'],
  explainJob: ['GET', '/api/v1/namespaces/{namespace}/jobs/{name}/explain'],
  nextTimes: ['GET', '/api/v1/namespaces/{namespace}/jobs/{name}/next'],
  pauseJob: ['POST', '/api/v1/namespaces/{namespace}/jobs/{name}/pause'],
  resetBreaker: ['POST', '/api/v1/namespaces/{namespace}/jobs/{name}/reset-breaker'],
  restoreJob: ['POST', '/api/v1/namespaces/{namespace}/jobs/{name}/restore'],
  resumeJob: ['POST', '/api/v1/namespaces/{namespace}/jobs/{name}/resume'],
  triggerRun: ['POST', '/api/v1/namespaces/{namespace}/jobs/{name}/runs'],
  validateJob: ['POST', '/api/v1/namespaces/{namespace}/jobs/{name}/validate'],
  listJobVersions: ['GET', '/api/v1/namespaces/{namespace}/jobs/{name}/versions'],
  showJobVersion: ['GET', '/api/v1/namespaces/{namespace}/jobs/{name}/versions/{version}'],
  deleteJobs: ['POST', '/api/v1/namespaces/{namespace}/jobs:delete'],
  pauseJobs: ['POST', '/api/v1/namespaces/{namespace}/jobs:pause'],
  resumeJobs: ['POST', '/api/v1/namespaces/{namespace}/jobs:resume'],
  breakLock: ['DELETE', '/api/v1/namespaces/{namespace}/locks/{name}'],
  showLock: ['GET', '/api/v1/namespaces/{namespace}/locks/{name}'],
  acquireLock: ['POST', '/api/v1/namespaces/{namespace}/locks/{name}/acquire'],
  releaseLock: ['POST', '/api/v1/namespaces/{namespace}/locks/{name}/release'],
  renewLock: ['POST', '/api/v1/namespaces/{namespace}/locks/{name}/renew'],
  listNamespaceQueues: ['GET', '/api/v1/namespaces/{namespace}/queues'],
  deleteQueue: ['DELETE', '/api/v1/namespaces/{namespace}/queues/{name}'],
  showQueue: ['GET', '/api/v1/namespaces/{namespace}/queues/{name}'],
  putQueue: ['PUT', '/api/v1/namespaces/{namespace}/queues/{name}'],
  pauseQueue: ['POST', '/api/v1/namespaces/{namespace}/queues/{name}/pause'],
  resumeQueue: ['POST', '/api/v1/namespaces/{namespace}/queues/{name}/resume'],
  listSettings: ['GET', '/api/v1/namespaces/{namespace}/settings'],
  deleteSetting: ['DELETE', '/api/v1/namespaces/{namespace}/settings/{name}'],
  showSetting: ['GET', '/api/v1/namespaces/{namespace}/settings/{name}'],
  putSetting: ['PUT', '/api/v1/namespaces/{namespace}/settings/{name}'],
  listNotifications: ['GET', '/api/v1/notifications'],
  testNotification: ['POST', '/api/v1/notifications:test'],
  showOverview: ['GET', '/api/v1/overview'],
  showProblem: ['GET', '/api/v1/problems/{code}'],
  listQueues: ['GET', '/api/v1/queues'],
  showRollups: ['GET', '/api/v1/rollups'],
  listRuns: ['GET', '/api/v1/runs'],
  showRun: ['GET', '/api/v1/runs/{id}'],
  cancelRun: ['POST', '/api/v1/runs/{id}/cancel'],
  explainRun: ['GET', '/api/v1/runs/{id}/explain'],
  readLogs: ['GET', '/api/v1/runs/{id}/logs'],
  rerunRun: ['POST', '/api/v1/runs/{id}/rerun'],
  waitRun: ['GET', '/api/v1/runs/{id}/wait'],
  triggerBatch: ['POST', '/api/v1/runs:batch'],
  previewSchedule: ['POST', '/api/v1/schedules:preview'],
  showCalendarSchema: ['GET', '/api/v1/schema/calendar'],
  showJobSchema: ['GET', '/api/v1/schema/job'],
  showQueueSchema: ['GET', '/api/v1/schema/queue'],
  signOut: ['DELETE', '/api/v1/session'],
  showSession: ['GET', '/api/v1/session'],
  signIn: ['POST', '/api/v1/session'],
  listInstallationSettings: ['GET', '/api/v1/settings'],
  deleteInstallationSetting: ['DELETE', '/api/v1/settings/{name}'],
  showInstallationSetting: ['GET', '/api/v1/settings/{name}'],
  putInstallationSetting: ['PUT', '/api/v1/settings/{name}'],
  listTokens: ['GET', '/api/v1/tokens'],
  createToken: ['POST', '/api/v1/tokens'],
  revokeToken: ['DELETE', '/api/v1/tokens/{id}'],
  listUpcoming: ['GET', '/api/v1/upcoming'],
  listWorkers: ['GET', '/api/v1/workers'],
  showWorker: ['GET', '/api/v1/workers/{name}'],
  drainWorker: ['POST', '/api/v1/workers/{name}/drain'],
  resetWorker: ['POST', '/api/v1/workers/{name}/reset'],
  resumeWorker: ['POST', '/api/v1/workers/{name}/resume'],
  health: ['GET', '/healthz'],
  showMetrics: ['GET', '/metrics'],
  readiness: ['GET', '/readyz'],
} as const satisfies Record<keyof Operations, readonly [string, string]>;
