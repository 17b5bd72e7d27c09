//! The file that a command may leave a result in.
//!
//! It lies in the scratch directory, so it goes with the attempt.

use std::io;
use std::path::{Path, PathBuf};

use drumtower_core::model::Limits;

use super::plain_file;
use super::wire::Left;

pub fn path(scratch: &Path) -> PathBuf {
    scratch.join(".drumtower-result.json")
}

/// What the command left; `None` when there is no file, or an empty one.
pub fn read(scratch: &Path) -> Option<Left> {
    match plain_file::read(&path(scratch), Limits::RESULT_BYTES) {
        Ok(text) if text.trim_ascii().is_empty() => None,
        Ok(text) => Some(match String::from_utf8(text) {
            Ok(text) => Left::Text(text),
            Err(_) => Left::Unusable("it is not UTF-8".to_owned()),
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(Left::Unusable(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(make: impl FnOnce(&Path)) -> Option<Left> {
        let scratch = tempfile::tempdir().unwrap();
        make(&path(scratch.path()));
        read(scratch.path())
    }

    fn unusable(make: impl FnOnce(&Path)) -> String {
        match left(make) {
            Some(Left::Unusable(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_plain_file_within_the_bound_is_read() {
        assert_eq!(left(|_| ()), None);
        assert_eq!(left(|path| std::fs::write(path, " \n").unwrap()), None);
        assert_eq!(
            left(|path| std::fs::write(path, "{}").unwrap()),
            Some(Left::Text("{}".to_owned()))
        );
        let long = vec![b'1'; Limits::RESULT_BYTES + 1];
        assert!(unusable(|path| std::fs::write(path, long).unwrap()).contains("65537 bytes"));
        assert!(unusable(|path| std::fs::write(path, [0xff]).unwrap()).contains("UTF-8"));
    }

    #[test]
    fn nothing_else_is_read() {
        let link = |path: &Path| std::os::unix::fs::symlink("/etc/passwd", path).unwrap();
        unusable(link);
        unusable(|path| std::fs::create_dir(path).unwrap());
        unusable(|path| {
            std::fs::write(path.with_extension("other"), "1").unwrap();
            std::fs::hard_link(path.with_extension("other"), path).unwrap();
        });
        unusable(|path| {
            let status = std::process::Command::new("mkfifo").arg(path).status();
            assert!(status.unwrap().success());
        });
    }
}
