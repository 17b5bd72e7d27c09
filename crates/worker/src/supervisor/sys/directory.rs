//! Directories that are held open, so that what is done in them stays in them whatever becomes of their names.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::check;

const PLAIN: libc::c_int = libc::O_DIRECTORY | libc::O_NOFOLLOW;

pub fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    let opened = File::options().read(true).custom_flags(PLAIN).open(path);
    opened.map(OwnedFd::from)
}

/// Gives the owner all rights on a directory in `above`, and opens it. A link is not followed.
pub fn own_directory(above: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let name = CString::new(name.as_bytes())?;
    let above = above.as_raw_fd();
    // SAFETY: the name is live and NUL-terminated, `above` is open. A descriptor that comes back is ours alone.
    unsafe {
        check(libc::fchmodat(
            above,
            name.as_ptr(),
            0o700,
            libc::AT_SYMLINK_NOFOLLOW,
        ))?;
        let flags = libc::O_RDONLY | libc::O_CLOEXEC | PLAIN;
        let opened = check(libc::openat(above, name.as_ptr(), flags))?;
        Ok(OwnedFd::from_raw_fd(opened))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn rights_are_given_to_directories_and_never_through_links() {
        let place = tempfile::tempdir().unwrap();
        let (inner, outer) = (place.path().join("inner"), place.path().join("outer"));
        for directory in [&inner, &outer] {
            fs::create_dir(directory).unwrap();
        }
        fs::create_dir(inner.join("closed")).unwrap();
        for closed in [&inner.join("closed"), &outer] {
            fs::set_permissions(closed, fs::Permissions::from_mode(0o500)).unwrap();
        }
        symlink(&outer, inner.join("link")).unwrap();
        let held = open_directory(&inner).unwrap();
        own_directory(&held, OsStr::new("closed")).unwrap();
        assert_eq!(mode(&inner.join("closed")), 0o700);
        own_directory(&held, OsStr::new("link")).unwrap_err();
        assert_eq!(mode(&outer), 0o500);
        open_directory(&inner.join("link")).unwrap_err();
    }
}
