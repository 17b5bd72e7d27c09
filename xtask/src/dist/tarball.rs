//! One directory in a tarball: unpack it anywhere and start it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::{Parts, completions, copy, execute, pages, write};
use crate::tree::root;

pub(super) fn make(parts: &Parts) -> Result<PathBuf> {
    let name = format!("drumtower-{}-linux-{}", parts.version, parts.machine.linux);
    let directory = parts.work.join(&name);
    copy(&parts.binary, &directory.join("drumtower"), 0o755)?;
    for file in ["README.md", "README.zh-CN.md", "LICENSE", "CHANGELOG.md"] {
        copy(&root().join(file), &directory.join(file), 0o644)?;
    }
    write(
        &directory.join("THIRD-PARTY-LICENSES.txt"),
        &parts.licences,
        0o644,
    )?;
    for (from, to) in [
        ("deploy/drumtower.toml", "drumtower.toml"),
        (
            "deploy/systemd/drumtower.service",
            "systemd/drumtower.service",
        ),
        (
            "deploy/systemd/drumtower-worker.service",
            "systemd/drumtower-worker.service",
        ),
        (
            "deploy/systemd/drumtower.sysusers",
            "systemd/drumtower.sysusers",
        ),
    ] {
        copy(&root().join(from), &directory.join(to), 0o644)?;
    }
    for (shell, _, text) in completions(&parts.binary)? {
        write(&directory.join("completions").join(shell), &text, 0o644)?;
    }
    pages(&parts.binary, &directory.join("man"))?;
    let file = parts.out.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args([
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "-czf",
    ]);
    tar.arg(&file).arg("-C").arg(&parts.work).arg(&name);
    execute(tar)?;
    Ok(file)
}
