//! Tasks that run programs on a worker: `exec` and `script`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ResourceLimits, check_bytes, check_no_zero, check_reserved};
use crate::model::{Limits, SpecError, job::is_default};

/// A program, or a line for the shell. Exactly one of `argv` and `shell` is given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Exec {
    /// The program and its arguments, as they are: nothing is expanded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub argv: Vec<String>,
    /// A line for `/bin/sh -c`, instead of `argv`: pipes, variables and patterns work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// Variables of the environment. Nothing is inherited from the worker; names that begin with `DRUMTOWER_` are taken.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The working directory, an absolute path on the worker; an empty directory of its own unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The user of the worker's machine to run as; only a worker that runs as root can change users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Text on standard input; nothing unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Exit codes that count as success.
    #[serde(default = "zero", skip_serializing_if = "is_zero")]
    #[schemars(length(min = 1), inner(range(max = 255)))]
    pub success_codes: Vec<u32>,
    /// What one attempt may use of the worker's machine.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: ResourceLimits,
}

/// A script that the job itself carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The script. It is written to a private file for the time of the attempt.
    pub body: String,
    /// The program that reads the script, with its arguments; the path of the script is added as the last one.
    #[serde(default = "shell", skip_serializing_if = "is_shell")]
    #[schemars(length(min = 1))]
    pub interpreter: Vec<String>,
    /// Variables of the environment. Nothing is inherited from the worker; names that begin with `DRUMTOWER_` are taken.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The working directory, an absolute path on the worker; an empty directory of its own unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The user of the worker's machine to run as; only a worker that runs as root can change users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Text on standard input; nothing unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Exit codes that count as success.
    #[serde(default = "zero", skip_serializing_if = "is_zero")]
    #[schemars(length(min = 1), inner(range(max = 255)))]
    pub success_codes: Vec<u32>,
    /// What one attempt may use of the worker's machine.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: ResourceLimits,
}

/// What `exec` and `script` have in common.
#[derive(Clone, Copy, Debug)]
pub struct Process<'a> {
    pub env: &'a BTreeMap<String, String>,
    pub cwd: Option<&'a str>,
    pub user: Option<&'a str>,
    pub stdin: Option<&'a str>,
    pub success_codes: &'a [u32],
    pub limits: &'a ResourceLimits,
}

impl Exec {
    pub fn process(&self) -> Process<'_> {
        Process {
            env: &self.env,
            cwd: self.cwd.as_deref(),
            user: self.user.as_deref(),
            stdin: self.stdin.as_deref(),
            success_codes: &self.success_codes,
            limits: &self.limits,
        }
    }

    pub(super) fn check(&self, field: &str) -> Result<(), SpecError> {
        match &self.shell {
            None => check_argv(&format!("{field}.argv"), &self.argv)?,
            Some(_) if !self.argv.is_empty() => {
                return Err(SpecError::new(
                    format!("{field}.shell"),
                    "stands beside `argv`: keep one of the two",
                ));
            }
            Some(line) => check_line(&format!("{field}.shell"), line)?,
        }
        self.process().check(field)
    }
}

impl Script {
    pub fn process(&self) -> Process<'_> {
        Process {
            env: &self.env,
            cwd: self.cwd.as_deref(),
            user: self.user.as_deref(),
            stdin: self.stdin.as_deref(),
            success_codes: &self.success_codes,
            limits: &self.limits,
        }
    }

    pub(super) fn check(&self, field: &str) -> Result<(), SpecError> {
        let body = format!("{field}.body");
        if self.body.trim().is_empty() {
            return Err(SpecError::new(body, "is empty: write the script"));
        }
        check_bytes(&body, &self.body, Limits::SCRIPT_BYTES)?;
        check_no_zero(&body, &self.body)?;
        check_argv(&format!("{field}.interpreter"), &self.interpreter)?;
        self.process().check(field)
    }
}

impl Process<'_> {
    fn check(&self, field: &str) -> Result<(), SpecError> {
        self.check_env(&format!("{field}.env"))?;
        if let Some(cwd) = self.cwd {
            check_cwd(&format!("{field}.cwd"), cwd)?;
        }
        if let Some(user) = self.user {
            check_user(&format!("{field}.user"), user)?;
        }
        if let Some(stdin) = self.stdin {
            let field = format!("{field}.stdin");
            check_bytes(&field, stdin, Limits::STDIN_BYTES)?;
            check_reserved(&field, stdin)?;
        }
        self.check_codes(&format!("{field}.success_codes"))?;
        self.limits.check(&format!("{field}.limits"))
    }

    fn check_env(&self, field: &str) -> Result<(), SpecError> {
        let bytes: usize = self.env.iter().map(|(k, v)| k.len() + v.len() + 2).sum();
        if self.env.len() > Limits::ENV_ITEMS || bytes > Limits::ENV_BYTES {
            let message = format!(
                "may have {} variables and {} bytes, has {} and {bytes}: put the rest in a file",
                Limits::ENV_ITEMS,
                Limits::ENV_BYTES,
                self.env.len()
            );
            return Err(SpecError::new(field, message));
        }
        for (name, value) in self.env {
            let field = format!("{field}.{name}");
            let odd = |c: char| c == '=' || c == '\0' || c.is_whitespace() || c.is_control();
            if name.is_empty() || name.chars().any(odd) {
                let message = format!("`{name}` cannot name a variable: use letters, digits and _");
                return Err(SpecError::new(field, message));
            }
            if name.starts_with("DRUMTOWER_") {
                let message = "names that begin with DRUMTOWER_ are set by the worker: rename it";
                return Err(SpecError::new(field, message));
            }
            check_no_zero(&field, value)?;
            check_reserved(&field, value)?;
        }
        Ok(())
    }

    fn check_codes(&self, field: &str) -> Result<(), SpecError> {
        if self.success_codes.is_empty() || self.success_codes.len() > Limits::SUCCESS_CODES {
            let message = format!(
                "may have 1 to {} codes, has {}: name the codes that count as success",
                Limits::SUCCESS_CODES,
                self.success_codes.len()
            );
            return Err(SpecError::new(field, message));
        }
        match self.success_codes.iter().find(|code| **code > 255) {
            Some(code) => Err(SpecError::new(
                field,
                format!("`{code}` is not an exit code: use 0 to 255"),
            )),
            None => Ok(()),
        }
    }
}

fn check_argv(field: &str, argv: &[String]) -> Result<(), SpecError> {
    let bytes: usize = argv.iter().map(|argument| argument.len() + 1).sum();
    if argv.first().is_none_or(String::is_empty) {
        return Err(SpecError::new(
            field,
            "is empty: give the program and its arguments, such as [\"echo\", \"hello\"]",
        ));
    }
    if argv.len() > Limits::ARGV_ITEMS || bytes > Limits::ARGV_BYTES {
        let message = format!(
            "may have {} items and {} bytes",
            Limits::ARGV_ITEMS,
            Limits::ARGV_BYTES
        );
        return Err(SpecError::new(field, message));
    }
    argv.iter()
        .try_for_each(|argument| check_no_zero(field, argument))
}

fn check_line(field: &str, line: &str) -> Result<(), SpecError> {
    if line.trim().is_empty() {
        let message = "is empty: give a line for the shell, such as \"df -h | sort\"";
        return Err(SpecError::new(field, message));
    }
    if line.len() > Limits::SHELL_BYTES {
        let message = format!(
            "may have {} bytes, has {}: use `script` for more",
            Limits::SHELL_BYTES,
            line.len()
        );
        return Err(SpecError::new(field, message));
    }
    check_no_zero(field, line)
}

fn check_cwd(field: &str, cwd: &str) -> Result<(), SpecError> {
    if !cwd.starts_with('/') {
        let message = format!("`{cwd}` is not an absolute path: begin it with /");
        return Err(SpecError::new(field, message));
    }
    check_bytes(field, cwd, Limits::PATH_BYTES)?;
    // Whoever shows the job to a person shows this too.
    if let Some(odd) = cwd.chars().find(|c| c.is_control()) {
        let message = format!("holds the control character {odd:?}: remove it");
        return Err(SpecError::new(field, message));
    }
    Ok(())
}

fn check_user(field: &str, user: &str) -> Result<(), SpecError> {
    let odd = |c: char| c.is_whitespace() || c.is_control() || c == ':' || c == '/';
    if user.is_empty() || user.chars().count() > Limits::USER_CHARS || user.chars().any(odd) {
        let message = format!(
            "`{user}` is not the name of a user: 1 to {} characters without spaces",
            Limits::USER_CHARS
        );
        return Err(SpecError::new(field, message));
    }
    Ok(())
}

fn zero() -> Vec<u32> {
    vec![0]
}

fn is_zero(codes: &[u32]) -> bool {
    codes == [0]
}

fn shell() -> Vec<String> {
    vec!["sh".to_owned()]
}

fn is_shell(interpreter: &[String]) -> bool {
    interpreter == ["sh"]
}
