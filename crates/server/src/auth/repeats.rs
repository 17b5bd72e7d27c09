//! What comes of an operation that is carried out twice because the answer to the first time was lost.
//!
//! Only where the second time changes nothing more and is answered as the first would have been, it may be sent again. So it
//! is not where a second time may be refused: what was deleted is not there to be deleted, a worker that was resumed may be
//! unknown, a backfill that was resumed may be over.

use super::Operation;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// It is as good as once.
    Harmlessly,
    /// It is as good as once, unless it rests on how things were: the first time has changed that. What somebody else did in
    /// between is undone, as if the request had come later.
    Unconditionally,
    /// It makes runs, and is recognised by what a server called it, or by the caller's key.
    Numbered,
    /// It is recognised if its caller gave it a key. So are batches: a number would be a row for each of their runs.
    UnderKey,
    /// Whoever asked has to look first.
    Never,
}

impl Operation {
    pub fn repeats(self) -> Repeats {
        match self {
            Self::CancelRun | Self::DrainWorker | Self::ResetBreaker => Repeats::Harmlessly,
            Self::PutJob
            | Self::PutCalendar
            | Self::PutQueue
            | Self::PutSetting
            | Self::PutInstallationSetting
            | Self::PauseJob
            | Self::ResumeJob
            | Self::PauseQueue
            | Self::ResumeQueue
            | Self::PauseBackfill
            | Self::CancelBackfill => Repeats::Unconditionally,
            Self::TriggerRun | Self::RerunRun => Repeats::Numbered,
            Self::TriggerBatch | Self::CreateBackfill => Repeats::UnderKey,
            _ => Repeats::Never,
        }
    }
}
