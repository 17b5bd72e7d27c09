//! `cargo xtask dist`: what people install who have no Rust.
//!
//! A tarball and a Debian package from one binary, with licences and sums, in `target/dist`. The binary is built here,
//! static (musl) where the toolchain has that target, or one that the caller names, so that a test need not build twice.

mod binary;
mod debian;
mod licences;
mod tarball;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cargo::{run, shown};
use crate::tree::root;

/// What the caller chose.
#[derive(Debug, Default)]
pub struct Choice {
    /// Package this binary instead of building one.
    pub binary: Option<PathBuf>,
    /// Build for this target instead of the best one there is.
    pub target: Option<String>,
    /// Put everything there instead of `target/dist`.
    pub out: Option<PathBuf>,
}

/// What every kind of package is made of.
struct Parts {
    version: String,
    /// As Debian and the names of files call it.
    machine: Machine,
    /// Stripped, with its mode set.
    binary: PathBuf,
    /// The oldest glibc it starts with; `None` when it needs none.
    glibc: Option<String>,
    licences: String,
    out: PathBuf,
    /// Where packages are put together; emptied at the end.
    work: PathBuf,
}

struct Machine {
    linux: &'static str,
    debian: &'static str,
}

/// Makes every package and says where it is.
pub fn make(choice: &Choice) -> Result<()> {
    let parts = gather(choice)?;
    let files = [tarball::make(&parts)?, debian::make(&parts)?];
    let sums = sums(&parts.out, &files)?;
    fs::remove_dir_all(&parts.work)
        .with_context(|| format!("cannot remove {}", parts.work.display()))?;
    for file in files.iter().chain([&sums]) {
        println!("{}", file.display());
    }
    match &parts.glibc {
        Some(version) => println!("needs glibc {version} or newer"),
        None => println!("static: needs no library of the system"),
    }
    Ok(())
}

fn gather(choice: &Choice) -> Result<Parts> {
    let out = choice
        .out
        .clone()
        .unwrap_or_else(|| root().join("target/dist"));
    let work = out.join("work");
    if work.exists() {
        fs::remove_dir_all(&work).with_context(|| format!("cannot empty {}", work.display()))?;
    }
    fs::create_dir_all(&work).with_context(|| format!("cannot make {}", work.display()))?;
    let metadata = licences::metadata()?;
    let built = match &choice.binary {
        Some(named) => named.clone(),
        None => binary::build(choice.target.as_deref())?,
    };
    let binary = binary::strip(&built, &work.join("drumtower"))?;
    Ok(Parts {
        version: metadata.version()?,
        machine: machine()?,
        glibc: binary::oldest_glibc(&binary)?,
        binary,
        licences: metadata.licences()?,
        out,
        work,
    })
}

fn machine() -> Result<Machine> {
    match std::env::consts::ARCH {
        "x86_64" => Ok(Machine {
            linux: "x86_64",
            debian: "amd64",
        }),
        "aarch64" => Ok(Machine {
            linux: "aarch64",
            debian: "arm64",
        }),
        other => bail!("there are no packages for {other}; build from source"),
    }
}

/// Writes `SHA256SUMS`, as `sha256sum -c` reads it.
fn sums(out: &Path, files: &[PathBuf]) -> Result<PathBuf> {
    let mut command = Command::new("sha256sum");
    command.current_dir(out);
    command.args(files.iter().filter_map(|file| file.file_name()));
    let text = output(command)?;
    let path = out.join("SHA256SUMS");
    write(&path, &text, 0o644)?;
    Ok(path)
}

/// What a program prints, when it succeeds.
fn output(mut command: Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot start {}", shown(&command)))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("{} failed: {}", shown(&command), complaint.trim());
    }
    String::from_utf8(output.stdout).context("a program did not print UTF-8")
}

fn execute(command: Command) -> Result<()> {
    run(command)
}

/// Writes a file with its mode, and the directories above it.
fn write(path: &Path, text: &str, mode: u32) -> Result<()> {
    make_parent(path)?;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    set_mode(path, mode)
}

fn copy(from: &Path, to: &Path, mode: u32) -> Result<()> {
    make_parent(to)?;
    fs::copy(from, to)
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    set_mode(to, mode)
}

fn make_parent(path: &Path) -> Result<()> {
    match path.parent() {
        Some(parent) => {
            fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))
        }
        None => Ok(()),
    }
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .with_context(|| format!("cannot set the mode of {}", path.display()))
}

#[cfg(not(unix))]
fn set_mode(_: &Path, _: u32) -> Result<()> {
    Ok(())
}

/// What the packaged binary prints, such as shell completions.
fn printed(binary: &Path, arguments: &[&str]) -> Result<String> {
    let printed = Command::new(binary).args(arguments).output()?;
    let text = String::from_utf8(printed.stdout)?;
    anyhow::ensure!(
        printed.status.success() && !text.trim().is_empty(),
        "`drumtower {}` prints nothing: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&printed.stderr)
    );
    Ok(text)
}

/// Has the binary write its manual pages into `directory`; returns them in order.
fn pages(binary: &Path, directory: &Path) -> Result<Vec<PathBuf>> {
    let mut man = Command::new(binary);
    man.arg("man").arg(directory);
    execute(man)?;
    let mut pages = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        set_mode(&path, 0o644)?;
        pages.push(path);
    }
    pages.sort();
    Ok(pages)
}

/// Completions as (shell, where Debian keeps them, text).
fn completions(binary: &Path) -> Result<Vec<(&'static str, &'static str, String)>> {
    let shells = [
        ("bash", "usr/share/bash-completion/completions/drumtower"),
        ("zsh", "usr/share/zsh/vendor-completions/_drumtower"),
        ("fish", "usr/share/fish/vendor_completions.d/drumtower.fish"),
    ];
    let found = shells.into_iter().map(|(shell, place)| {
        let text = printed(binary, &["completions", shell])?;
        Ok((shell, place, text))
    });
    found.collect()
}
