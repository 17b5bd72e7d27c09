//! The binary that is packaged: built, stripped, and asked what it needs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{copy, execute, output};
use crate::cargo::{Profile, binary_path, build_binary, run};

/// Builds the release binary: for the target that was named, else static where that can be done, else as it comes.
pub fn build(target: Option<&str>) -> Result<PathBuf> {
    let target = target.map(str::to_owned).or_else(static_target);
    let mut build = build_binary(Profile::Release);
    let path = binary_path(Profile::Release);
    let Some(target) = target else {
        eprintln!(
            "no musl target or no musl-gcc: the binary will need this system's glibc or a newer one"
        );
        run(build)?;
        return Ok(path);
    };
    build.args(["--target", &target]);
    run(build)?;
    let directory = path.parent().and_then(Path::parent);
    let directory = directory.context("the target directory has a parent")?;
    Ok(directory.join(target).join("release/drumtower"))
}

/// The musl target of this machine, when toolchain and C compiler for it are there.
fn static_target() -> Option<String> {
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "list", "--installed"]);
    let installed = output(rustup).ok()?;
    let compiler = Command::new("musl-gcc").arg("--version").output();
    let ready = installed.lines().any(|line| line == target)
        && compiler.is_ok_and(|it| it.status.success());
    ready.then_some(target)
}

/// Copies the binary without its symbols.
pub fn strip(from: &Path, to: &Path) -> Result<PathBuf> {
    copy(from, to, 0o755)?;
    let mut strip = Command::new("strip");
    strip.arg(to);
    execute(strip)?;
    Ok(to.to_owned())
}

/// The newest version of glibc that a symbol of the binary asks for.
pub fn oldest_glibc(binary: &Path) -> Result<Option<String>> {
    let bytes = fs::read(binary).with_context(|| format!("cannot read {}", binary.display()))?;
    Ok(newest_version(&bytes))
}

fn newest_version(bytes: &[u8]) -> Option<String> {
    const MARK: &[u8] = b"GLIBC_";
    let mut newest: Option<(u32, u32)> = None;
    for at in 0..bytes.len().saturating_sub(MARK.len()) {
        if !bytes[at..].starts_with(MARK) {
            continue;
        }
        let rest = &bytes[at + MARK.len()..];
        let end = rest
            .iter()
            .position(|byte| !byte.is_ascii_digit() && *byte != b'.')
            .unwrap_or(rest.len());
        let text = std::str::from_utf8(&rest[..end]).unwrap_or_default();
        let mut numbers = text.split('.').map_while(|part| part.parse().ok());
        if let (Some(major), Some(minor)) = (numbers.next(), numbers.next()) {
            newest = newest.max(Some((major, minor)));
        }
    }
    newest.map(|(major, minor)| format!("{major}.{minor}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_counts_by_number() {
        let bytes = b"\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.9\0GLIBC_PRIVATE\0";
        assert_eq!(newest_version(bytes).as_deref(), Some("2.34"));
        assert_eq!(newest_version(b"static"), None);
    }
}
