//! Users of the machine, and becoming one.

use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;

use super::check;

/// Enough for any entry of the user database; a longer one is an error.
const ENTRY_BYTES: usize = 64 * 1024;
const GROUPS: usize = 1024;

/// `getgrouplist` counts groups in another type than `setgroups` on some systems.
#[cfg(target_os = "macos")]
type ListedGroup = libc::c_int;
#[cfg(not(target_os = "macos"))]
type ListedGroup = libc::gid_t;

pub struct User {
    pub name: String,
    pub uid: libc::uid_t,
    pub gid: libc::gid_t,
    pub home: String,
    groups: Vec<libc::gid_t>,
}

pub fn effective_user() -> libc::uid_t {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::geteuid() }
}

impl User {
    /// Looks a user up by name; `None` when there is none.
    pub fn find(name: &str) -> io::Result<Option<Self>> {
        let text = CString::new(name)?;
        let mut entry = MaybeUninit::<libc::passwd>::zeroed();
        let mut buffer = vec![0; ENTRY_BYTES];
        let mut found = std::ptr::null_mut();
        // SAFETY: all pointers are live for the call; the buffer's length is given.
        let failed = unsafe {
            libc::getpwnam_r(
                text.as_ptr(),
                entry.as_mut_ptr(),
                buffer.as_mut_ptr(),
                buffer.len(),
                &mut found,
            )
        };
        if found.is_null() {
            // Some systems report "no such user" as one of these instead of success without an entry.
            return match failed {
                0 | libc::ENOENT | libc::ESRCH | libc::EBADF | libc::EPERM => Ok(None),
                error => Err(io::Error::from_raw_os_error(error)),
            };
        }
        // SAFETY: an entry was found, so it is filled in, and its strings lie in `buffer`, which is live.
        let (uid, gid, home) = unsafe {
            let entry = entry.assume_init();
            let home = CStr::from_ptr(entry.pw_dir).to_string_lossy().into_owned();
            (entry.pw_uid, entry.pw_gid, home)
        };
        let groups = groups_of(&text, gid)?;
        Ok(Some(Self {
            name: name.to_owned(),
            uid,
            gid,
            home,
            groups,
        }))
    }

    pub fn has_group(&self, gid: libc::gid_t) -> bool {
        self.gid == gid || self.groups.contains(&gid)
    }

    /// Becomes this user for good. Called in the child; async-signal-safe.
    pub fn switch(&self) -> io::Result<()> {
        // SAFETY: the list is live and its length is given; the others take integers only.
        unsafe {
            check(libc::setgroups(
                self.groups.len() as _,
                self.groups.as_ptr(),
            ))?;
            check(libc::setgid(self.gid))?;
            check(libc::setuid(self.uid)).map(drop)
        }
    }
}

fn groups_of(name: &CStr, gid: libc::gid_t) -> io::Result<Vec<libc::gid_t>> {
    let mut groups: Vec<ListedGroup> = vec![0; GROUPS];
    let mut count = GROUPS as libc::c_int;
    // SAFETY: the list is live and `count` says its length; on return it says how many there are.
    let listed = unsafe {
        libc::getgrouplist(
            name.as_ptr(),
            gid as ListedGroup,
            groups.as_mut_ptr(),
            &mut count,
        )
    };
    if listed == -1 {
        return Err(io::Error::other("it is in too many groups"));
    }
    groups.truncate(usize::try_from(count).unwrap_or(0));
    Ok(groups
        .into_iter()
        .map(|group| group as libc::gid_t)
        .collect())
}
