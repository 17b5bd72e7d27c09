//! How a command ends when it does not end well, and the exit code that says so.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | it worked; for `run wait` and `job trigger --wait`: the run is COMPLETED |
//! | 1 | it failed, or the run that was waited for did not complete, or `diff` found a difference, or `doctor` something that fails |
//! | 2 | the command line or a manifest is not understood |
//! | 3 | there is no such job, run, token or log |
//! | 4 | the server refuses: not allowed, not valid, or in conflict with what is there |
//! | 5 | no answer could be had: the server is not running, not ready or overloaded |

use std::io;
use std::process::ExitCode;

use crate::output::hint;

pub type Result<T> = std::result::Result<T, Failure>;

/// From the mildest to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    Failed = 1,
    Usage = 2,
    NotFound = 3,
    Refused = 4,
    Unavailable = 5,
}

/// What went wrong and what can be done about it.
#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    /// The server's name for what it refused, such as `stale`.
    pub code: Option<String>,
    /// The status of the answer, when it is an answer that failed.
    pub status: Option<u16>,
    message: String,
    /// Lines that belong to it, below the message.
    notes: Option<String>,
    remedy: Option<String>,
    /// Whoever read our output has gone. That is their right and nobody's failure.
    quiet: bool,
}

impl Failure {
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            code: None,
            status: None,
            message: message.into(),
            notes: None,
            remedy: None,
            quiet: false,
        }
    }

    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// An end that needs no words: the output says it all.
    pub fn wordless(exit: Exit) -> Self {
        Self::new(exit, "")
    }

    /// Adds lines below the message.
    pub fn also(mut self, notes: impl Into<String>) -> Self {
        self.notes = Some(notes.into());
        self
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    /// Names the place that it concerns. A server that does not answer concerns none.
    pub fn at(self, place: &str) -> Self {
        if self.exit == Exit::Unavailable {
            return self;
        }
        Self {
            message: format!("{place}: {}", self.message),
            ..self
        }
    }

    pub fn file(path: &std::path::Path, error: &io::Error) -> Self {
        Self::failed(format!("{}: {error}", path.display()))
    }

    /// Prints what there is to say and returns the exit code.
    pub fn report(&self) -> ExitCode {
        if self.quiet {
            return ExitCode::SUCCESS;
        }
        if !self.message.is_empty() {
            hint(&self.to_string());
        }
        ExitCode::from(self.exit as u8)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Some of the words come from tasks and servers: a terminal must not take them for orders.
        let tamed = |text: &str| {
            let lines: Vec<String> = text.lines().map(crate::output::tame).collect();
            lines.join("\n")
        };
        writeln!(f, "error: {}", tamed(&self.message))?;
        if let Some(notes) = &self.notes {
            writeln!(f, "{}", tamed(notes))?;
        }
        match &self.remedy {
            Some(remedy) => writeln!(f, "  try: {}", tamed(remedy)),
            None => Ok(()),
        }
    }
}

/// Only output to our own standard streams is converted this way; files say their name.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let quiet = error.kind() == io::ErrorKind::BrokenPipe;
        Self {
            quiet,
            ..Self::failed(format!("the output cannot be written: {error}"))
        }
    }
}

impl From<drumtower_store::Error> for Failure {
    fn from(error: drumtower_store::Error) -> Self {
        let exit = match error {
            drumtower_store::Error::Locked(_) => Exit::Unavailable,
            _ => Exit::Failed,
        };
        Self::new(exit, error.to_string())
    }
}

impl From<drumtower_audit::Error> for Failure {
    fn from(error: drumtower_audit::Error) -> Self {
        Self::failed(error.to_string())
    }
}

impl From<drumtower_store::sqlite::backup::Error> for Failure {
    fn from(error: drumtower_store::sqlite::backup::Error) -> Self {
        use drumtower_store::sqlite::backup::{self, Error};
        let exit = match &error {
            Error::Store(drumtower_store::Error::Locked(_)) | Error::Busy(_) => Exit::Unavailable,
            Error::NoStore(_)
            | Error::Elsewhere(_)
            | Error::NotABackup { .. }
            | Error::Occupied(_)
            | Error::Foreign(_) => Exit::Usage,
            _ => Exit::Failed,
        };
        let failure = Self::new(exit, error.to_string());
        // A directory of backups in the place of one of them is an easy mistake.
        let newest = match &error {
            Error::NotABackup { path, .. } => backup::list(path).ok().and_then(|mut all| all.pop()),
            _ => None,
        };
        match newest {
            Some(newest) => failure.remedy(format!(
                "the newest backup in it is {}",
                newest.path.display()
            )),
            None => failure,
        }
    }
}
