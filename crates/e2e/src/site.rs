//! A directory of its own for each test.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Everything a test makes lies below one directory, which goes with the test unless the test fails.
pub struct Site {
    dir: Option<tempfile::TempDir>,
    path: PathBuf,
}

impl Site {
    pub fn new() -> Self {
        let dir = tempfile::Builder::new()
            .prefix("drumtower-e2e-")
            .tempdir()
            .expect("a temporary directory");
        let path = dir.path().to_owned();
        Self {
            dir: Some(dir),
            path,
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The data directory of the server.
    pub fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    /// A directory in the site, made.
    pub fn dir(&self, name: &str) -> PathBuf {
        let dir = self.path.join(name);
        std::fs::create_dir_all(&dir).expect("a directory in the site");
        dir
    }

    /// Writes a file and returns where it is.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path.join(name);
        std::fs::write(&path, text).expect("a file in the site");
        path
    }

    /// An argument for `sleep` that no other test uses and that no test lives to see the end of.
    pub fn marker(&self) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        format!(
            "86400.{:07}{:03}",
            std::process::id(),
            NUMBER.fetch_add(1, Ordering::Relaxed)
        )
    }
}

impl Default for Site {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(dir) = self.dir.take()
        {
            eprintln!(
                "data and logs of the failed test are kept in {}",
                dir.keep().display()
            );
        }
    }
}
