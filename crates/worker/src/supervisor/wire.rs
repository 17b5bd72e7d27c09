//! What agent and supervisor say to each other: frames of a little-endian `u32` length and a postcard body.
//!
//! The agent sends one [`Command::Start`], then any number of the others. The supervisor answers `Started` and
//! `Exited`, or `NotStarted` alone. Both ends are the same binary, so there is no version. A frame over
//! [`FRAME_MAX`] or one that does not decode breaks the link, and each side treats a broken link as the other's death.

use std::path::PathBuf;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::BootMs;
use super::cgroup::Groups;

pub const FRAME_MAX: usize = 1 << 20;
const HEAD: usize = size_of::<u32>();

#[derive(Debug, Serialize, Deserialize)]
pub enum Command {
    Start(Box<Start>),
    /// The lease was renewed. A deadline before the one in force changes nothing.
    Extend {
        deadline: BootMs,
    },
    /// SIGTERM to the whole tree, SIGKILL after the grace.
    Kill {
        grace_ms: u64,
        reason: KillReason,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Start {
    pub argv: Vec<String>,
    /// The complete environment.
    pub env: Vec<(String, String)>,
    pub scratch: PathBuf,
    pub deadline: BootMs,
    pub timeout_ms: Option<u64>,
    pub timeout_grace_ms: u64,
    /// Use a control group of its own where one may be made.
    pub cgroup: bool,
    /// Where such groups are made; beside this process's own group unless given.
    pub groups: Option<Groups>,
    /// The working directory; the scratch directory unless given.
    pub cwd: Option<PathBuf>,
    /// Whom to become.
    pub user: Option<String>,
    pub stdin: Option<String>,
    /// Written to a private file, whose path the last argument already is.
    pub script: Option<String>,
    /// What an earlier attempt left lies beside the scratch directory, to be moved into it.
    pub resume: bool,
    /// The soft limit of open files to start with; what this process has unless given.
    pub open_files: Option<u64>,
    pub limits: Limits,
}

/// What the tree may use; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub memory_bytes: Option<u64>,
    pub cpu_milli: Option<u32>,
    pub open_files: Option<u64>,
    pub processes: Option<u64>,
}

impl Limits {
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// The limit that a tree went beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Excess {
    Memory,
    Processes,
}

/// What a command left in its result file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Left {
    Text(String),
    /// Why there is no text to use, for people.
    Unusable(String),
}

#[derive(Debug, Serialize, Deserialize)]
pub enum Status {
    Started(Started),
    NotStarted { reason: Reason, error: String },
    Exited(Exited),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Started {
    /// Process id of the command itself.
    pub pid: u32,
    pub at: BootMs,
    pub wall_ms: u64,
    pub cgroup: Option<PathBuf>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Exited {
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub reason: Reason,
    pub duration_ms: u64,
    /// User and system time of every process of the tree.
    pub cpu_ms: u64,
    /// The larger of: resident sizes summed over the tree, at the highest sample; the peak of its largest process.
    pub peak_rss_bytes: u64,
    /// Why the scratch directory could not be removed, if it could not.
    pub scratch_error: Option<String>,
    /// The limit it went beyond, as far as that was seen.
    pub excess: Option<Excess>,
    /// Whether a control group held it to its limits.
    pub grouped: bool,
    pub left: Option<Left>,
    /// The last line of its progress file.
    pub progress: Option<String>,
    /// Its checkpoint lies beside where the scratch directory was.
    pub checkpoint: bool,
}

/// Why an attempt's command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// By itself, or by a signal that the supervisor did not send.
    Exited,
    /// The lease was over.
    Deadline,
    /// The run took longer than its job allows.
    Timeout,
    /// The agent asked for it.
    Killed(KillReason),
    /// It went beyond a limit and was killed for it.
    Excess(Excess),
    /// The agent died or let go.
    AgentGone,
    /// The command could not be started.
    NotStarted,
    /// The supervisor died before it could report; what the command did is unknown.
    SupervisorLost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KillReason {
    /// A person or a program cancelled the run.
    Cancelled,
    /// The worker is stopping.
    Draining,
    /// The server says that this attempt is not to run here.
    Fenced,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("frame of {0} bytes is over the bound of {FRAME_MAX}; shorten argv or parameters")]
    TooLarge(usize),
    #[error("frame does not encode or decode: {0}")]
    Malformed(#[from] postcard::Error),
}

pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, Error> {
    let mut frame = postcard::to_extend(message, vec![0; HEAD])?;
    let body = frame.len() - HEAD;
    if body > FRAME_MAX {
        return Err(Error::TooLarge(body));
    }
    frame[..HEAD].copy_from_slice(&(body as u32).to_le_bytes());
    Ok(frame)
}

/// Collects bytes as they come and gives back whole messages.
#[derive(Default)]
pub struct Decoder {
    buffer: Vec<u8>,
}

impl Decoder {
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    pub fn take<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Error> {
        let Some((head, rest)) = self.buffer.split_first_chunk::<HEAD>() else {
            return Ok(None);
        };
        let body = u32::from_le_bytes(*head) as usize;
        if body > FRAME_MAX {
            return Err(Error::TooLarge(body));
        }
        let Some(bytes) = rest.get(..body) else {
            return Ok(None);
        };
        let message = postcard::from_bytes(bytes)?;
        self.buffer.drain(..HEAD + body);
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_any_cut() {
        let kill = Command::Kill {
            grace_ms: 7,
            reason: KillReason::Draining,
        };
        let extend = Command::Extend {
            deadline: BootMs(9),
        };
        let bytes = [encode(&kill).unwrap(), encode(&extend).unwrap()].concat();
        for cut in 0..=bytes.len() {
            let mut decoder = Decoder::default();
            let mut seen = Vec::new();
            for part in [&bytes[..cut], &bytes[cut..]] {
                decoder.push(part);
                while let Some(command) = decoder.take::<Command>().unwrap() {
                    seen.push(format!("{command:?}"));
                }
            }
            assert_eq!(
                seen,
                [format!("{kill:?}"), format!("{extend:?}")],
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn a_frame_over_the_bound_is_refused_on_both_sides() {
        let big = "x".repeat(FRAME_MAX + 1);
        assert!(matches!(encode(&big), Err(Error::TooLarge(_))));
        let mut decoder = Decoder::default();
        decoder.push(&u32::MAX.to_le_bytes());
        assert!(matches!(decoder.take::<String>(), Err(Error::TooLarge(_))));
    }

    #[test]
    fn noise_is_an_error_and_not_a_panic() {
        let mut decoder = Decoder::default();
        decoder.push(&[1, 0, 0, 0, 0xff]);
        assert!(matches!(
            decoder.take::<Command>(),
            Err(Error::Malformed(_))
        ));
    }
}
