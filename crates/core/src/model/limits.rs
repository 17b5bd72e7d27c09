//! The bounds of everything that comes from outside. Over a bound there is a clear error, never memory.

/// Fixed bounds, each named where it is enforced and documented for users.
pub struct Limits;

impl Limits {
    pub const NAME_CHARS: usize = 128;
    pub const PARAMS_BYTES: usize = 64 * 1024;
    pub const RESULT_BYTES: usize = 64 * 1024;
    pub const ERROR_BYTES: usize = 8 * 1024;
    pub const CHECKPOINT_BYTES: usize = 1024 * 1024;
    pub const PROGRESS_CHARS: usize = 256;
    /// Workers look for the progress of commands once a second.
    pub const PROGRESS_TIMEOUT_MIN_MS: u64 = 3_000;
    /// Payloads beyond this live in a side table, so that rows stay narrow.
    pub const INLINE_PAYLOAD_BYTES: usize = 1024;
    pub const FRAME_BYTES: usize = 1024 * 1024;
    /// A message that carries a checkpoint is alone in its frame, and may be longer than others.
    pub const CHECKPOINT_FRAME_BYTES: usize = Self::CHECKPOINT_BYTES + 64 * 1024;
    pub const COMMIT_CHANGES: usize = 4096;
    pub const COMMIT_BYTES: usize = 8 * 1024 * 1024;
    pub const LOG_LINE_BYTES: usize = 64 * 1024;
    pub const LOG_ATTEMPT_BYTES: u64 = 10 * 1024 * 1024;
    pub const PAGE_ROWS: usize = 1000;
    pub const BATCH_RUNS: usize = 1000;
    pub const ARGV_ITEMS: usize = 1024;
    pub const ARGV_BYTES: usize = 128 * 1024;
    /// A line for the shell; longer ones are a script's.
    pub const SHELL_BYTES: usize = 64 * 1024;
    pub const SCRIPT_BYTES: usize = 128 * 1024;
    pub const STDIN_BYTES: usize = 64 * 1024;
    pub const ENV_ITEMS: usize = 256;
    pub const ENV_BYTES: usize = 64 * 1024;
    pub const PATH_BYTES: usize = 4095;
    pub const USER_CHARS: usize = 64;
    pub const SUCCESS_CODES: usize = 32;
    /// Less than this and no program of today starts.
    pub const MEMORY_MIN: u64 = 4 << 20;
    pub const MEMORY_MAX: u64 = 1 << 50;
    /// Thousandths of a core.
    pub const CPU_MILLI_MIN: u32 = 10;
    pub const CPU_MILLI_MAX: u32 = 1_024_000;
    pub const OPEN_FILES_MIN: u64 = 16;
    pub const OPEN_FILES_MAX: u64 = 1 << 20;
    pub const PROCESSES_MAX: u64 = 1 << 20;
    pub const HTTP_URL_BYTES: usize = 8 * 1024;
    pub const HTTP_HEADERS: usize = 64;
    pub const HTTP_HEADER_BYTES: usize = 16 * 1024;
    pub const HTTP_BODY_BYTES: usize = 128 * 1024;
    pub const HTTP_TIMEOUT_MS: u64 = 86_400_000;
    pub const HTTP_REDIRECTS: u32 = 10;
    pub const HTTP_STATUSES: usize = 32;
    pub const PATTERN_BYTES: usize = 1024;
    pub const LABELS: usize = 64;
    pub const LABEL_CHARS: usize = 256;
    pub const DESCRIPTION_CHARS: usize = 4096;
    pub const SCHEDULE_ENTRIES: usize = 64;
    /// Jobs that one job runs after.
    pub const AFTER_JOBS: usize = 64;
    /// Jobs that come before a job, one after another.
    pub const AFTER_WALK: usize = 1000;
    /// Named calendars in one job's `only` or `minus`.
    pub const CALENDARS_USED: usize = 16;
    /// Calendars that one installation keeps; all of them are held in memory.
    pub const CALENDARS: usize = 1000;
    /// Entries of `include` and `exclude` together.
    pub const CALENDAR_DATES: usize = 5000;
    /// Versions of a calendar that are kept.
    pub const CALENDAR_VERSIONS: usize = 100;
    /// Runs that one decision makes to catch up with missed times.
    pub const CATCH_UP_RUNS: u32 = 1000;
    /// How far ahead a triggered run may be due: ten years.
    pub const DELAY_MS: i64 = 3_653 * 86_400_000;
    /// Attempts of a run that may fail, and as many that may be lost.
    pub const ATTEMPTS: u32 = 100;
    /// How often a run may be put off by its own handler.
    pub const SNOOZES: usize = 100;
    /// How often a run may be stopped because its worker leaves: deployments and drains are no losses, but a run that nobody
    /// ever lets end must end.
    pub const STOPS: usize = 100;
    /// How often an assignment of a run may come back undelivered: more of it points to something that another try will not
    /// mend.
    pub const UNDELIVERED: usize = 10;
    /// The longest that a run waits to be tried again: thirty days.
    pub const RETRY_WAIT_MS: u64 = 30 * 86_400_000;
    pub const RETRY_RULES: usize = 32;
    pub const RETRY_RULE_ITEMS: usize = 64;
    /// Dead letters that one namespace keeps; beyond, its oldest go.
    pub const DEAD_LETTERS: usize = 100_000;
    /// How long a dead letter is kept: thirty days.
    pub const DEAD_LETTER_MS: i64 = 30 * 86_400_000;
    /// Dead letters that one request may requeue or discard.
    pub const DEAD_LETTERS_AT_ONCE: usize = 1000;
    /// The most that a limit can say, of attempts at once or of starts in a time.
    pub const CONCURRENCY: u32 = 1_000_000;
    /// A JSON pointer into parameters.
    pub const POINTER_BYTES: usize = 256;
    /// The value of a key as it is counted by; of a longer one its hash.
    pub const KEY_VALUE_BYTES: usize = 96;
    pub const RATE_MIN_MS: u64 = 1_000;
    pub const RATE_MAX_MS: u64 = 30 * 86_400_000;
    /// Queues of one installation; all of them are held in memory.
    pub const QUEUES: usize = 10_000;
    /// Runs that a queue names as those who hold its places.
    pub const QUEUE_HOLDERS: usize = 20;
    /// Runs of a job, or of one key, that may be under way at once where there is a limit.
    pub const OVERLAP_RUNS: u32 = 10_000;
    /// Runs of a job, or of one key, that wait for their turn.
    pub const OVERLAP_QUEUE: u32 = 10_000;
    /// Keys of a job under which runs are under way or wait; all of them are held in memory with the job.
    pub const OVERLAP_KEYS: usize = 10_000;
    pub const BREAKER_FAILURES: u32 = 1_000;
    pub const BREAKER_PROBES: u32 = 100;
    /// Thirty days.
    pub const BREAKER_COOLDOWN_MS: u64 = 30 * 86_400_000;
    /// Backfills of one namespace that are not over; all of them are held in memory.
    pub const BACKFILLS: usize = 100;
    /// Backfills of one namespace that are over and still listed; beyond, its oldest go.
    pub const BACKFILLS_KEPT: usize = 10_000;
    /// How long a backfill that is over is listed: ninety days.
    pub const BACKFILL_MS: i64 = 90 * 86_400_000;
    /// Times of the schedule that one backfill goes through.
    pub const BACKFILL_TIMES: u64 = 100_000;
    /// Runs of one backfill that are under way at once; its row names them.
    pub const BACKFILL_ACTIVE: u32 = 100;
    /// Written with each change of a backfill, so less than a run may have.
    pub const BACKFILL_PARAMS_BYTES: usize = 16 * 1024;
    pub const PRIORITY: u32 = 9;
    pub const WEIGHT: u32 = 10_000;
    pub const IDEMPOTENCY_KEY_CHARS: usize = 256;
    /// Fields that one entry of the audit log tells of, and the bytes of each value in it.
    pub const AUDIT_FIELDS: usize = 64;
    pub const AUDIT_VALUE_BYTES: usize = 512;
    pub const SETTING_BYTES: usize = 64 * 1024;
    /// Settings of one installation; all of them are held in memory.
    pub const SETTINGS: usize = 10_000;
    /// Locks that a namespace holds at once; all of them are held in memory.
    pub const LOCKS: usize = 10_000;
    pub const LOCK_TTL_MIN_MS: u64 = 1_000;
    pub const LOCK_TTL_MAX_MS: u64 = 86_400_000;
    pub const LOCK_WAIT_MS: u64 = 300_000;
    /// Callers that wait for one lock, and for all of a namespace together.
    pub const LOCK_WAITERS: usize = 1_000;
    pub const LOCK_WAITERS_NAMESPACE: usize = 10_000;
    /// Names of workers that are drained at once; all of them are held in memory.
    pub const DRAINS: usize = 10_000;
    /// The longest deadline of a drain: thirty days.
    pub const DRAIN_MS: u64 = 30 * 86_400_000;
    /// Names of workers whose losses are remembered at once; beyond, those that were lost longest ago go.
    pub const LOST_WORKERS: usize = 10_000;
    /// The longest that a run may wait for its first start: a year.
    pub const START_TIMEOUT_MS: u64 = 366 * 86_400_000;
    pub const NOTIFY_RULES: usize = 16;
    pub const NOTIFY_ADDRESSES: usize = 50;
    pub const URL_BYTES: usize = 2048;
    pub const EMAIL_BYTES: usize = 254;
    /// Ready runs held in memory for one requirement and priority; the rest wait parked in the store.
    pub const READY_WINDOW: usize = 100_000;
    /// Ready runs held in memory in all; a run with large parameters counts as several.
    pub const READY_TOTAL: usize = 200_000;
}
