//! The command line as a user types it.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::drumtower;

/// Runs commands in a clean environment, so that nothing on the developer's machine answers for the test.
#[derive(Clone, Debug, Default)]
pub struct Cli {
    env: Vec<(String, String)>,
    home: PathBuf,
}

/// What a command left behind.
#[derive(Debug)]
pub struct Done {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    shown: String,
}

impl Cli {
    /// A user whose home is `home`.
    pub fn new(home: impl Into<PathBuf>) -> Self {
        Self {
            env: Vec::new(),
            home: home.into(),
        }
    }

    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.push((name.to_owned(), value.into()));
        self
    }

    /// A command ready to be started, for those who want to do it themselves.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(drumtower());
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
            .env("HOME", &self.home)
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        command.current_dir(&self.home);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Done {
        self.run_with_input(arguments, "")
    }

    pub fn run_with_input(&self, arguments: &[&str], input: &str) -> Done {
        let mut command = self.command(arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command starts");
        // A command that does not read its input has every right to.
        let _ = child
            .stdin
            .take()
            .expect("a pipe")
            .write_all(input.as_bytes());
        let output = child.wait_with_output().expect("the command ends");
        Done {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
            shown: arguments.join(" "),
        }
    }

    /// A command that must succeed; what it printed.
    #[track_caller]
    pub fn ok(&self, arguments: &[&str]) -> String {
        let done = self.run(arguments);
        assert_eq!(done.code, 0, "{done:?}");
        done.stdout
    }

    /// A command that must succeed and print JSON.
    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> Value {
        let text = self.ok(&[arguments, &["-o", "json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// A command that must fail with this code; what it said.
    #[track_caller]
    pub fn fails(&self, code: i32, arguments: &[&str]) -> String {
        self.run(arguments).failed(code)
    }
}

impl Done {
    /// Runs a command of whatever kind to its end.
    pub fn of(command: &mut Command, arguments: &[&str]) -> Self {
        let output = command
            .stdin(Stdio::null())
            .output()
            .expect("the command runs");
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
            shown: arguments.join(" "),
        }
    }

    #[track_caller]
    pub fn failed(self, code: i32) -> String {
        assert_eq!(self.code, code, "`drumtower {}`: {self:?}", self.shown);
        assert!(self.stderr.starts_with("error: "), "{self:?}");
        self.stderr
    }
}
