//! A small file system of its own that a test can fill.
//!
//! Needs the right to mount, which root on Linux has.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Gone with the test.
pub struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// A disk of so many megabytes over the directory `path`; `None` when we may not mount.
    pub fn mount(path: PathBuf, megabytes: u32) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o"])
            .arg(format!("size={megabytes}m"))
            .arg("tmpfs")
            .arg(&path);
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        mounted.then_some(Self { path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn ballast(&self) -> PathBuf {
        self.path.join("ballast")
    }

    /// Writes until not one more byte fits.
    pub fn fill(&self) {
        let mut file = File::create(self.ballast()).expect("a file on the small disk");
        for size in [1 << 20, 1 << 16, 1 << 12, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
    }

    pub fn free(&self) {
        std::fs::remove_file(self.ballast()).expect("the ballast can go");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a failing test may still have the server's files open.
        let _ = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}
