//! What a run does: the `task` of a manifest.
//!
//! One type a kind, one file a kind. Nothing is flattened or untagged, so that a fault in a manifest keeps its line; keys
//! that [`Exec`] and [`Script`] share are therefore written twice and checked once, as a [`Process`].

mod http;
mod process;
mod resources;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Limits, SpecError, TaskNeed};

pub use http::{Expect, Http, Method, StatusPattern};
pub use process::{Exec, Process, Script};
pub use resources::{Cores, ResourceLimits, format_bytes};

/// What a run does. Exactly one of the keys is given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// A program with its arguments, or a line for the shell, run on a worker.
    Exec(Box<Exec>),
    /// A script that the job itself carries, run on a worker by an interpreter.
    Script(Box<Script>),
    /// An HTTP request, made by a worker.
    Http(Box<Http>),
    /// A function registered by a worker that was built with an SDK.
    Handler(Handler),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Handler {
    /// The name under which workers registered the function.
    pub name: String,
}

impl Task {
    /// Checks what types alone do not; `field` is where the task stands.
    pub fn check(&self, field: &str) -> Result<(), SpecError> {
        match self {
            Self::Exec(exec) => exec.check(&format!("{field}.exec")),
            Self::Script(script) => script.check(&format!("{field}.script")),
            Self::Http(http) => http.check(&format!("{field}.http")),
            Self::Handler(handler) => handler.check(&format!("{field}.handler")),
        }
    }

    /// What a worker must offer.
    pub fn need(&self) -> TaskNeed {
        match self {
            Self::Exec(_) | Self::Script(_) => TaskNeed::Exec,
            Self::Http(_) => TaskNeed::Http,
            Self::Handler(handler) => TaskNeed::Handler(handler.name.clone()),
        }
    }
}

impl Handler {
    fn check(&self, field: &str) -> Result<(), SpecError> {
        let chars = self.name.chars().count();
        let odd = |c: char| c.is_control() || c.is_whitespace();
        if chars == 0 || chars > Limits::NAME_CHARS || self.name.chars().any(odd) {
            return Err(SpecError::new(
                format!("{field}.name"),
                "must be 1 to 128 printable characters without spaces",
            ));
        }
        Ok(())
    }
}

/// The form is kept for secrets, and no text is sent anywhere with the form in it.
fn check_reserved(field: &str, text: &str) -> Result<(), SpecError> {
    if text.contains("${secret:") {
        return Err(SpecError::new(
            field,
            "`${secret:…}` is reserved and not available: write the value, or let the command read it from a file",
        ));
    }
    Ok(())
}

fn check_bytes(field: &str, text: &str, most: usize) -> Result<(), SpecError> {
    if text.len() > most {
        let message = format!("may have {most} bytes, has {}: shorten it", text.len());
        return Err(SpecError::new(field, message));
    }
    Ok(())
}

fn check_no_zero(field: &str, text: &str) -> Result<(), SpecError> {
    if text.contains('\0') {
        return Err(SpecError::new(
            field,
            "holds a zero byte, which no program can receive: remove it",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
