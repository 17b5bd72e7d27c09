//! How cargo is called, and where it puts the `drumtower` binary.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Where tests look for the binary under test.
pub const BIN_ENV: &str = "DRUMTOWER_BIN";

/// Asks tests for their soak sizes.
pub const LONG_ENV: &str = "DRUMTOWER_LONG";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    Debug,
    Release,
}

/// The cargo that runs us, so that a toolchain chosen on the command line stays chosen.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(crate::tree::root());
    command
}

pub fn binary_path(profile: Profile) -> PathBuf {
    let directory = match profile {
        Profile::Debug => "debug",
        Profile::Release => "release",
    };
    binary_in(directory, "drumtower")
}

/// Where cargo puts a binary, by the directory of its profile.
pub fn binary_in(directory: &str, name: &str) -> PathBuf {
    let root = crate::tree::root();
    let target = match env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => root.join(directory),
        None => root.join("target"),
    };
    target
        .join(directory)
        .join(format!("{name}{}", env::consts::EXE_SUFFIX))
}

pub fn build_binary(profile: Profile) -> Command {
    let mut command = cargo();
    command.args(["build", "--package", "drumtower", "--bin", "drumtower"]);
    if profile == Profile::Release {
        command.arg("--release");
    }
    command
}

/// The feature with which tests choose where a process dies. Tests are built with it too, so that cargo does not build
/// the binary a second time, without it.
pub const TEST_FEATURES: &str = "drumtower/failpoints";

/// The binary that tests start.
pub fn build_test_binary() -> Command {
    let mut command = build_binary(Profile::Debug);
    command.args(["--features", TEST_FEATURES]);
    command
}

/// The binary that the tidy test may ask: the one a caller names, else the debug build if there is one.
///
/// A named binary that does not exist is an error: whoever set the variable meant it.
pub fn binary_under_test() -> Result<Option<PathBuf>> {
    if let Some(named) = env::var_os(BIN_ENV) {
        let path = PathBuf::from(named);
        if !path.is_file() {
            bail!(
                "{BIN_ENV} names {}, which does not exist; build it or unset the variable",
                path.display()
            );
        }
        return Ok(Some(path));
    }
    let built = binary_path(Profile::Debug);
    Ok(built.is_file().then_some(built))
}

/// Runs a command to its end and refuses any exit but success.
pub fn run(mut command: Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", shown(&command)))?;
    if !status.success() {
        bail!("{} ended with {status}", shown(&command));
    }
    Ok(())
}

/// Becomes the program, so that signals and the exit code are the program's own.
#[cfg(unix)]
pub fn become_program(program: &Path, arguments: &[String]) -> Result<()> {
    use std::os::unix::process::CommandExt;
    let error = Command::new(program).args(arguments).exec();
    Err(error).with_context(|| format!("cannot start {}", program.display()))
}

#[cfg(not(unix))]
pub fn become_program(program: &Path, arguments: &[String]) -> Result<()> {
    let mut command = Command::new(program);
    command.args(arguments);
    run(command)
}

/// The command as a person would type it.
pub fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program
        .file_name()
        .unwrap_or(program.as_os_str())
        .to_string_lossy();
    let arguments = command.get_args().map(|it| it.to_string_lossy());
    std::iter::once(name)
        .chain(arguments)
        .collect::<Vec<_>>()
        .join(" ")
}
