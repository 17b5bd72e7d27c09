//! Deliberate faults, for proving that whoever looks for faults finds them.
//!
//! Each is one `if` at the line that it breaks. Without the cargo feature `faults` the question is always answered with no,
//! and the compiler takes the `if` away; with it, one fault of the process is armed at most.

/// A rule that is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Fault {
    /// What a batch tells is told before the batch is durable.
    EffectsBeforeCommit = 1,
    /// A commit without an answer is taken for done.
    ResubmissionSkipped,
    /// A heartbeat is echoed without a commit.
    RenewedWithoutCommit,
    /// A renewal echoes a heartbeat that has not come yet.
    UnreceivedBeatEchoed,
    /// After a restart, attempts of workers that have not dialled are given up at once.
    TermNotAwaited,
    /// The server concludes without a margin that a lease has ended.
    MarginForgotten,
    /// A worker counts its lease from when the echo came.
    LeaseFromReceipt,
    /// A worker goes on under a lease that was over when it asked for more.
    RenewedAfterExpiry,
    /// A worker does not repeat an unacknowledged end on its next stream.
    EndNotRepeated,
    /// Each failed attempt counts twice against the maximum.
    RetryCountedTwice,
    /// A failed run is tried again at once.
    BackoffSkipped,
    /// What a task says should become of its run is not heard.
    VerdictIgnored,
    /// A lost attempt does not count against its maximum.
    LossNotCounted,
    /// The next attempt is not told of the checkpoint of the one before.
    CheckpointNotHandedOn,
    /// A checkpoint is acknowledged and not written.
    CheckpointNotWritten,
    /// A checkpoint is taken although a newer one is kept.
    CheckpointGoesBack,
    /// A run that failed for good does not become a dead letter.
    LetterNotKept,
    /// A dead letter is requeued although it is none any more.
    LetterRequeuedTwice,
    /// A renewal of a lock is answered and changes nothing.
    LockNotProlonged,
    /// A renewal of a lock that came late, for a shorter term, shortens it.
    LockShortened,
    /// A lock is given under the fence of the hold before.
    LockFenceReused,
    /// A server that starts does not know who holds which lock.
    LockForgotten,
    /// An idempotency key is forgotten after ten seconds.
    KeyForgottenEarly,
    /// A known idempotency key answers whatever was asked for.
    FingerprintIgnored,
    /// A worker lets a task run for as long as it likes.
    TimeoutNotKept,
    /// A worker does not stop a task that says nothing.
    SilenceNotHeard,
    /// An attempt that a heartbeat does not name is given up although it may be on its way.
    OnItsWayIsLost,
    /// A cancelled run ends before its worker has confirmed.
    SlotFreedAtCancel,
    /// A request to cancel is acknowledged and not written.
    CancelNotWritten,
    /// An assignment does not use up credit.
    CreditNotCounted,
    /// A job that skips fires while a run of it is live.
    OverlapIgnored,
    /// Times that make no run are not recorded.
    MisfireNotRecorded,
    /// The cursor of a job is written as it was.
    CursorNotWritten,
    /// A run whose timer comes is due, whatever the wall clock shows.
    TimerBelieved,
    /// Ids are drawn above the mark of their segment.
    MarkNotRaised,
    /// An idempotency key is not written.
    KeyNotWritten,
    /// A run ends without being counted.
    EndNotCounted,
    /// A loaded row is taken although it has changed since.
    OldRowTaken,
    /// A scan of parked runs counts as whole although some were parked meanwhile.
    ScanNotRepeated,
    /// The store takes a commit of a session that was revoked.
    SessionNotFenced,
    /// An attempt that is given out is not counted at its gates.
    PlaceNotCounted,
    /// Who waits at a gate is not woken when a place is free.
    GateNotWoken,
    /// How far a rate has been used is not written.
    RateNotWritten,
    /// The end of a run that other jobs follow is kept in memory only.
    EndingNotWritten,
    /// Followers are told of an end once more by the next server.
    EndingToldTwice,
    /// A scan of runs that limits hold back counts as whole although some were parked meanwhile.
    LotScanNotRepeated,
    /// A restart of the server ends every drain.
    DrainForgotten,
    /// What a drain stops at its deadline counts as failed.
    DrainCountsAsFailure,
    /// A worker that was silent for a while is never given anything again.
    SuspicionNeverLifted,
    /// A worker that was lost again and again is never tried again.
    IsolationNeverEnds,
    /// Runs that are parked can wait for their first start for ever.
    ParkedStartsForgotten,
    /// The key of an overlap is not looked at when a run is made.
    KeyIgnored,
    /// A run is made although the one it takes the place of has not ended.
    OldNotAwaited,
    /// A run whose turn came is not counted as under way.
    PromotionNotCounted,
    /// A queue is not looked at when a place became free.
    QueueForgotten,
    /// The breaker of a job is not written.
    BreakerNotWritten,
    /// A breaker that is reset still counts what failed before.
    ResetForgetsNothing,
    /// A breaker lets a run through while its probe is under way.
    ManyProbes,
    /// A backfill makes runs and its row is written as it was.
    BackfillNotWritten,
    /// A backfill makes as many runs at once as there are times.
    BackfillUnbounded,
    /// A run of a backfill moves the cursor of its job.
    BackfillMovesCursor,
    /// A run of a backfill that obeys the overlap does not count for it.
    BackfillNotCounted,
    /// A backfill makes runs while the breaker of its job is open.
    BackfillPassesBreaker,
    /// A backfill that waits for its job is not looked at again.
    BackfillNotWoken,
    /// A run that is to start later takes the place of one that waits and is ready.
    LaterOnesPush,
    /// Who waited for a lock and has hung up keeps its place in the line.
    GoneWaitsOn,
    /// A worker that was lost again and again is given work all the same.
    IsolationIgnored,
    /// A worker on probation is given as much as it takes.
    ProbationUnbounded,
    /// Runs that failed together are tried again together.
    JitterForgotten,
    /// A lot that was not read to its end counts as read.
    LotLeftUnread,
    /// Who takes segments of a session that has ended does not revoke it.
    TakeOverWithoutRevoke,
    /// Segments are taken from a session that has not ended.
    LiveSessionRevoked,
    /// Segments that belong together are shared out like any others.
    TieNotKept,
    /// A renewal does not say what another server has to answer for.
    ForeignAttemptRenewed,
    /// The end of an attempt is acknowledged by a server that does not own it.
    ForeignEndAcknowledged,
    /// An attempt that another server gave out is given up although it may be on its way.
    ArrivalNotAwaited,
    /// Credit that was recalled counts as back before the answer.
    CreditLentTwice,
    /// A server that grants shorter leases than those before it waits no longer than its own.
    OldTermForgotten,
}

impl Fault {
    pub const ALL: &'static [Self] = &[
        Self::EffectsBeforeCommit,
        Self::ResubmissionSkipped,
        Self::RenewedWithoutCommit,
        Self::UnreceivedBeatEchoed,
        Self::TermNotAwaited,
        Self::MarginForgotten,
        Self::LeaseFromReceipt,
        Self::RenewedAfterExpiry,
        Self::EndNotRepeated,
        Self::RetryCountedTwice,
        Self::BackoffSkipped,
        Self::VerdictIgnored,
        Self::LossNotCounted,
        Self::CheckpointNotHandedOn,
        Self::CheckpointNotWritten,
        Self::CheckpointGoesBack,
        Self::LetterNotKept,
        Self::LetterRequeuedTwice,
        Self::LockNotProlonged,
        Self::LockShortened,
        Self::LockFenceReused,
        Self::LockForgotten,
        Self::KeyForgottenEarly,
        Self::FingerprintIgnored,
        Self::TimeoutNotKept,
        Self::SilenceNotHeard,
        Self::OnItsWayIsLost,
        Self::SlotFreedAtCancel,
        Self::CancelNotWritten,
        Self::CreditNotCounted,
        Self::OverlapIgnored,
        Self::MisfireNotRecorded,
        Self::CursorNotWritten,
        Self::TimerBelieved,
        Self::MarkNotRaised,
        Self::KeyNotWritten,
        Self::EndNotCounted,
        Self::OldRowTaken,
        Self::ScanNotRepeated,
        Self::SessionNotFenced,
        Self::PlaceNotCounted,
        Self::GateNotWoken,
        Self::RateNotWritten,
        Self::EndingNotWritten,
        Self::EndingToldTwice,
        Self::LotScanNotRepeated,
        Self::DrainForgotten,
        Self::DrainCountsAsFailure,
        Self::SuspicionNeverLifted,
        Self::IsolationNeverEnds,
        Self::ParkedStartsForgotten,
        Self::KeyIgnored,
        Self::OldNotAwaited,
        Self::PromotionNotCounted,
        Self::QueueForgotten,
        Self::BreakerNotWritten,
        Self::ResetForgetsNothing,
        Self::ManyProbes,
        Self::BackfillNotWritten,
        Self::BackfillUnbounded,
        Self::BackfillMovesCursor,
        Self::BackfillNotCounted,
        Self::BackfillPassesBreaker,
        Self::BackfillNotWoken,
        Self::LaterOnesPush,
        Self::GoneWaitsOn,
        Self::IsolationIgnored,
        Self::ProbationUnbounded,
        Self::JitterForgotten,
        Self::LotLeftUnread,
        Self::TakeOverWithoutRevoke,
        Self::LiveSessionRevoked,
        Self::TieNotKept,
        Self::ForeignAttemptRenewed,
        Self::ForeignEndAcknowledged,
        Self::ArrivalNotAwaited,
        Self::CreditLentTwice,
        Self::OldTermForgotten,
    ];

    /// As it is called on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::EffectsBeforeCommit => "effects-before-commit",
            Self::ResubmissionSkipped => "resubmission-skipped",
            Self::RenewedWithoutCommit => "renewed-without-commit",
            Self::UnreceivedBeatEchoed => "unreceived-beat-echoed",
            Self::TermNotAwaited => "term-not-awaited",
            Self::MarginForgotten => "margin-forgotten",
            Self::LeaseFromReceipt => "lease-from-receipt",
            Self::RenewedAfterExpiry => "renewed-after-expiry",
            Self::EndNotRepeated => "end-not-repeated",
            Self::RetryCountedTwice => "retry-counted-twice",
            Self::BackoffSkipped => "backoff-skipped",
            Self::VerdictIgnored => "verdict-ignored",
            Self::LossNotCounted => "loss-not-counted",
            Self::CheckpointNotHandedOn => "checkpoint-not-handed-on",
            Self::CheckpointNotWritten => "checkpoint-not-written",
            Self::CheckpointGoesBack => "checkpoint-goes-back",
            Self::LetterNotKept => "letter-not-kept",
            Self::LetterRequeuedTwice => "letter-requeued-twice",
            Self::LockNotProlonged => "lock-not-prolonged",
            Self::LockShortened => "lock-shortened",
            Self::LockFenceReused => "lock-fence-reused",
            Self::LockForgotten => "lock-forgotten",
            Self::KeyForgottenEarly => "key-forgotten-early",
            Self::FingerprintIgnored => "fingerprint-ignored",
            Self::TimeoutNotKept => "timeout-not-kept",
            Self::SilenceNotHeard => "silence-not-heard",
            Self::OnItsWayIsLost => "on-its-way-is-lost",
            Self::SlotFreedAtCancel => "slot-freed-at-cancel",
            Self::CancelNotWritten => "cancel-not-written",
            Self::CreditNotCounted => "credit-not-counted",
            Self::OverlapIgnored => "overlap-ignored",
            Self::MisfireNotRecorded => "misfire-not-recorded",
            Self::CursorNotWritten => "cursor-not-written",
            Self::TimerBelieved => "timer-believed",
            Self::MarkNotRaised => "mark-not-raised",
            Self::KeyNotWritten => "key-not-written",
            Self::EndNotCounted => "end-not-counted",
            Self::OldRowTaken => "old-row-taken",
            Self::ScanNotRepeated => "scan-not-repeated",
            Self::SessionNotFenced => "session-not-fenced",
            Self::PlaceNotCounted => "place-not-counted",
            Self::GateNotWoken => "gate-not-woken",
            Self::RateNotWritten => "rate-not-written",
            Self::EndingNotWritten => "ending-not-written",
            Self::EndingToldTwice => "ending-told-twice",
            Self::LotScanNotRepeated => "lot-scan-not-repeated",
            Self::DrainForgotten => "drain-forgotten",
            Self::DrainCountsAsFailure => "drain-counts-as-failure",
            Self::SuspicionNeverLifted => "suspicion-never-lifted",
            Self::IsolationNeverEnds => "isolation-never-ends",
            Self::ParkedStartsForgotten => "parked-starts-forgotten",
            Self::KeyIgnored => "key-ignored",
            Self::OldNotAwaited => "old-not-awaited",
            Self::PromotionNotCounted => "promotion-not-counted",
            Self::QueueForgotten => "queue-forgotten",
            Self::BreakerNotWritten => "breaker-not-written",
            Self::ResetForgetsNothing => "reset-forgets-nothing",
            Self::ManyProbes => "many-probes",
            Self::BackfillNotWritten => "backfill-not-written",
            Self::BackfillUnbounded => "backfill-unbounded",
            Self::BackfillMovesCursor => "backfill-moves-cursor",
            Self::BackfillNotCounted => "backfill-not-counted",
            Self::BackfillPassesBreaker => "backfill-passes-breaker",
            Self::BackfillNotWoken => "backfill-not-woken",
            Self::LaterOnesPush => "later-ones-push",
            Self::GoneWaitsOn => "gone-waits-on",
            Self::IsolationIgnored => "isolation-ignored",
            Self::ProbationUnbounded => "probation-unbounded",
            Self::JitterForgotten => "jitter-forgotten",
            Self::LotLeftUnread => "lot-left-unread",
            Self::TakeOverWithoutRevoke => "take-over-without-revoke",
            Self::LiveSessionRevoked => "live-session-revoked",
            Self::TieNotKept => "tie-not-kept",
            Self::ForeignAttemptRenewed => "foreign-attempt-renewed",
            Self::ForeignEndAcknowledged => "foreign-end-acknowledged",
            Self::ArrivalNotAwaited => "arrival-not-awaited",
            Self::CreditLentTwice => "credit-lent-twice",
            Self::OldTermForgotten => "old-term-forgotten",
        }
    }
}

#[cfg(feature = "faults")]
mod switch {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::Fault;

    static ARMED: AtomicU8 = AtomicU8::new(0);

    /// Arms one fault for the whole process, or none.
    pub fn arm(fault: Option<Fault>) {
        ARMED.store(fault.map_or(0, |fault| fault as u8), Ordering::SeqCst);
    }

    pub fn armed(fault: Fault) -> bool {
        ARMED.load(Ordering::Relaxed) == fault as u8
    }
}

#[cfg(feature = "faults")]
pub use switch::{arm, armed};

/// Whether this fault is armed: never, without the feature.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub fn armed(_: Fault) -> bool {
    false
}
