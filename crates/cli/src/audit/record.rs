//! `drumtower audit record`: a line in a journal from within a task.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use drumtower_audit::journal::wall_now;
use drumtower_audit::{Journal, Outcome, Record as Line};
use drumtower_core::model::{RunId, WallMs};
use jiff::Timestamp;

use crate::failure::{Failure, Result};

/// Write into a journal that the task calling this has started or ended
///
/// For use inside an `exec` task: which run and attempt it is comes from the DRUMTOWER_*
/// variables of the task. Each call writes a file of its own. The line has reached the kernel
/// when the command returns.
///
///     drumtower audit record --journal /var/tmp/journal started
///     drumtower audit record --journal /var/tmp/journal ended --outcome failed
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Record {
    /// What happened
    #[arg(value_enum)]
    event: Event,
    /// The directory of the journals
    #[arg(long, value_name = "DIR")]
    journal: PathBuf,
    /// How it ended
    #[arg(long, value_enum, default_value_t)]
    outcome: Ended,
    /// The run
    #[arg(long, env = "DRUMTOWER_RUN")]
    run: RunId,
    /// The number of the attempt
    #[arg(long, env = "DRUMTOWER_ATTEMPT")]
    attempt: u32,
    /// The fence of the attempt
    #[arg(long, env = "DRUMTOWER_FENCE")]
    fence: u64,
    /// The scheduled time that the run stands for
    #[arg(long, env = "DRUMTOWER_NOMINAL_MS", value_parser = instant, value_name = "TIME")]
    nominal: Option<WallMs>,
    /// When the run should start
    #[arg(long, env = "DRUMTOWER_DUE_MS", value_parser = instant, value_name = "TIME")]
    due: Option<WallMs>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Event {
    Started,
    Ended,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Ended {
    #[default]
    Succeeded,
    Failed,
    Cancelled,
}

/// An instant in RFC 3339, or in milliseconds since 1970.
pub fn instant(text: &str) -> std::result::Result<WallMs, String> {
    if let Ok(ms) = text.parse() {
        return Ok(WallMs(ms));
    }
    let at: Timestamp = text
        .parse()
        .map_err(|_| format!("`{text}` is not a time such as 2026-01-31T08:00:00Z"))?;
    Ok(WallMs(at.as_millisecond()))
}

impl Record {
    pub fn run(self) -> Result<()> {
        // The clock is read first: what it takes to start this program and make a file belongs to the task.
        let wall_ms = wall_now();
        let (run, attempt) = (self.run, self.attempt);
        let line = match self.event {
            Event::Started => Line::Started {
                run,
                attempt,
                fence: self.fence,
                nominal_ms: self.nominal,
                due_ms: self.due,
                wall_ms,
                pid: parent(),
            },
            Event::Ended => Line::Ended {
                run,
                attempt,
                wall_ms,
                outcome: self.outcome.into(),
            },
        };
        let mut journal = Journal::create(&self.journal, "task").map_err(Failure::from)?;
        Ok(journal.write(&line)?)
    }
}

/// The task is whoever called us.
fn parent() -> u32 {
    std::os::unix::process::parent_id()
}

impl From<Ended> for Outcome {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Succeeded => Self::Succeeded,
            Ended::Failed => Self::Failed,
            Ended::Cancelled => Self::Cancelled,
        }
    }
}
