//! The two binaries: one of a commit, one of the working tree, both of the release profile.
//!
//! The commit is checked out as a worktree under the target directory and built into the same target directory, so that
//! both share the dependencies they have in common. Its binary is kept under its id and not built twice.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::Side;
use crate::cargo::{Profile, binary_path, build_binary, run};
use crate::tree::root;

pub struct Builds {
    /// The whole id of the commit.
    pub commit: String,
    /// The working tree, as `git describe` names it.
    pub tree: String,
    old: PathBuf,
    new: PathBuf,
    /// A directory that does not exist yet, where benches make their stores.
    pub room: PathBuf,
}

impl Builds {
    pub fn make(commit: &str) -> Result<Self> {
        let id = git(&["rev-parse", "--verify", &format!("{commit}^{{commit}}")])
            .with_context(|| format!("there is no commit {commit}"))?;
        let home = target().join("bench-compare");
        let builds = Self {
            old: home.join(&id).join("drumtower"),
            new: home.join("tree").join("drumtower"),
            room: home.join(format!("store-{}", std::process::id())),
            tree: git(&[
                "describe",
                "--always",
                "--dirty",
                "--abbrev=40",
                "--exclude=*",
            ])?,
            commit: id,
        };
        if !builds.old.is_file() {
            build_commit(&builds.commit, &home.join(&builds.commit))?;
        }
        // Last, so that the target directory is left with the build of what is checked out.
        run(build_binary(Profile::Release))?;
        keep(&builds.new)?;
        Ok(builds)
    }

    pub fn binary(&self, side: Side) -> &Path {
        match side {
            Side::Old => &self.old,
            Side::New => &self.new,
        }
    }
}

/// Builds a commit and keeps its binary in `home`.
fn build_commit(commit: &str, home: &Path) -> Result<()> {
    let tree = home.join("source");
    // What a build that was interrupted left behind.
    let _ = git(&["worktree", "remove", "--force", &tree.display().to_string()]);
    git(&["worktree", "prune"])?;
    git(&[
        "worktree",
        "add",
        "--detach",
        &tree.display().to_string(),
        commit,
    ])?;
    let mut build = build_binary(Profile::Release);
    build.current_dir(&tree);
    build.env("CARGO_TARGET_DIR", target());
    run(build)?;
    keep(&home.join("drumtower"))?;
    git(&["worktree", "remove", "--force", &tree.display().to_string()])?;
    Ok(())
}

/// Copies the binary that was just built to a place of its own.
fn keep(place: &Path) -> Result<()> {
    if let Some(home) = place.parent() {
        fs::create_dir_all(home)?;
    }
    let built = binary_path(Profile::Release);
    fs::copy(&built, place)
        .with_context(|| format!("cannot copy {} to {}", built.display(), place.display()))?;
    Ok(())
}

fn target() -> PathBuf {
    let release = binary_path(Profile::Release);
    let target = release.parent().and_then(Path::parent);
    target.map_or_else(|| root().join("target"), Path::to_path_buf)
}

/// What git answers, without the last line break.
fn git(arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(root());
    let output = command.output().context("cannot start git")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("git {}: {}", arguments.join(" "), said.trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned())
}
