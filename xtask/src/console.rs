//! How the web console is built and tried: npm in `console/`, behind the one door.
//!
//! The build lands in `console/embedded`, from where the server's build script takes it. Nothing else needs node: a build of
//! the workspace without it works, and its server says how to get the console.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cargo::{BIN_ENV, Profile, binary_path, run};
use crate::needs::on_path;

/// The oldest node that the build tools run on.
const OLDEST_NODE: u32 = 20;

fn directory() -> PathBuf {
    crate::tree::root().join("console")
}

fn npm(arguments: &[&str]) -> Command {
    let mut command = Command::new("npm");
    command
        .args(arguments)
        .args(["--silent", "--no-update-notifier"])
        .current_dir(directory());
    command
}

/// Installs exactly what the lock file says.
pub fn install() -> Result<Command> {
    check_node()?;
    Ok(npm(&["ci", "--prefer-offline"]))
}

/// Checks types, builds, compresses.
pub fn build() -> Command {
    npm(&["run", "build"])
}

/// Tests of single parts, without a browser.
pub fn unit_tests() -> Command {
    npm(&["run", "unit"])
}

/// The console in a real browser, against real servers and workers.
pub fn browser_tests() -> Command {
    let mut command = npm(&["run", "e2e"]);
    command.env(BIN_ENV, binary_path(Profile::Debug));
    command
}

/// Builds the console for the server to embed.
pub fn provide() -> Result<()> {
    run(install()?)?;
    run(build())
}

/// Builds it where node is there, and says what is missed where it is not.
pub fn provide_if_possible() -> Result<()> {
    match check_node() {
        Ok(()) => provide(),
        Err(error) => {
            eprintln!("without the web console: {error}");
            Ok(())
        }
    }
}

fn check_node() -> Result<()> {
    if !on_path("npm") {
        bail!("npm is not there; install Node.js {OLDEST_NODE} or later");
    }
    let output = Command::new("node")
        .arg("--version")
        .output()
        .context("cannot start node")?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match major(&version) {
        Some(major) if major >= OLDEST_NODE => Ok(()),
        _ => bail!("node {version} is too old; install Node.js {OLDEST_NODE} or later"),
    }
}

fn major(version: &str) -> Option<u32> {
    let number = version.strip_prefix('v')?.split('.').next()?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_read() {
        assert_eq!(major("v20.20.2"), Some(20));
        assert_eq!(major("20.1"), None);
        assert_eq!(major(""), None);
    }
}
