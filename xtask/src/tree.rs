//! The repository as a list of files.
//!
//! Git decides what belongs to it: tracked files and those that would be tracked. Without git (a source
//! archive) the directory is walked and build output is left out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Directories that a walk without git does not enter.
const NOT_SOURCE: &[&str] = &["target", "node_modules", "embedded", ".git", ".drumtower"];

/// The root of the workspace.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// One text file of the repository, its path relative to the root with forward slashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    pub path: String,
    pub text: String,
}

impl File {
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> File {
        File {
            path: path.into(),
            text: text.into(),
        }
    }

    pub fn has_extension(&self, extensions: &[&str]) -> bool {
        match Path::new(&self.path).extension().and_then(|it| it.to_str()) {
            Some(extension) => extensions.contains(&extension),
            None => false,
        }
    }
}

/// Every file of the repository that is valid UTF-8, sorted by path.
pub fn files(root: &Path) -> Vec<File> {
    let mut paths = tracked(root).unwrap_or_else(|| walk(root));
    paths.sort();
    paths.dedup();
    // A file that was deleted but is still in the index, or is not text, has nothing to check.
    let read = |path: String| {
        fs::read_to_string(root.join(&path))
            .ok()
            .map(|text| File { path, text })
    };
    paths.into_iter().filter_map(read).collect()
}

fn tracked(root: &Path) -> Option<Vec<String>> {
    let output = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root)
        .output()
        .ok()?;
    if !output.status.success() {
        return None;
    }
    let listing = String::from_utf8(output.stdout).ok()?;
    Some(listing.split_terminator('\0').map(str::to_owned).collect())
}

fn walk(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_path_buf()];
    while let Some(directory) = pending.pop() {
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() {
                if !NOT_SOURCE.contains(&name.as_str()) {
                    pending.push(path);
                }
            } else if let Ok(relative) = path.strip_prefix(root) {
                found.push(relative.to_string_lossy().replace('\\', "/"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_and_walk_agree_on_the_sources() {
        let root = root();
        let walked = walk(&root);
        for expected in ["Cargo.toml", "xtask/src/tree.rs", "crates/core/src/lib.rs"] {
            assert!(
                walked.iter().any(|it| it == expected),
                "{expected} not walked"
            );
            assert!(
                files(&root).iter().any(|it| it.path == expected),
                "{expected} not listed"
            );
        }
        assert!(
            !walked.iter().any(|it| it.starts_with("target/")),
            "build output is not source"
        );
    }
}
