//! The data directory on the machine of the server.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use drumtower_store::{Address, Error, sqlite};

use super::{Findings, shared};
use crate::config::server::database_of;
use crate::output::bytes;

const MIB: u64 = 1 << 20;
/// Free space below which it is time to do something, and below which it is late.
const LITTLE: u64 = 1024 * MIB;
const TOO_LITTLE: u64 = 100 * MIB;

pub fn check(dir: &Path, deep: bool, findings: &mut Findings) {
    let shown = dir.display();
    let metadata = match std::fs::metadata(dir) {
        Ok(metadata) => metadata,
        Err(error) => {
            return findings.fail(
                "data",
                format!("{shown}: {error}"),
                "give the server's directory with --data, as the user that runs it",
            );
        }
    };
    // SAFETY: the call only reads.
    let user = unsafe { libc::geteuid() };
    if metadata.uid() != user {
        findings.warn(
            "data",
            format!("{shown} belongs to user {}, you are {user}", metadata.uid()),
            "run server and commands as the user that owns the directory",
        );
    } else if metadata.mode() & 0o077 != 0 {
        findings.warn(
            "data",
            format!(
                "others may look into {shown} ({:03o})",
                metadata.mode() & 0o777
            ),
            "chmod 700 the directory: it holds tokens and the output of runs",
        );
    } else {
        findings.ok("data", format!("{shown} is yours alone"));
    }
    space(dir, findings);
    match configuration(dir, findings) {
        Some(address) if !address.is_embedded() => shared::check(&address, findings),
        _ if deep => database(dir, findings),
        _ => {}
    }
}

fn space(dir: &Path, findings: &mut Findings) {
    let Some((free, all)) = free_of(dir) else {
        return;
    };
    let words = format!("{} free of {}", bytes(free), bytes(all));
    let remedy = "free some, or bound the output of runs with `logs.max_bytes`";
    if free < TOO_LITTLE {
        findings.fail("space", words, remedy);
    } else if free < LITTLE {
        findings.warn("space", words, remedy);
    } else {
        findings.ok("space", words);
    }
}

/// Free and total bytes of the file system under `path`.
fn free_of(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: all fields of `statvfs` are plain integers, for which zero is a value.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends in a zero byte, and the call writes one `statvfs` into valid memory.
    let failed = unsafe { libc::statvfs(path.as_ptr(), &raw mut stat) } != 0;
    #[allow(clippy::unnecessary_cast)] // The fields are narrower on some systems.
    let (unit, free, all) = (
        stat.f_frsize as u64,
        stat.f_bavail as u64,
        stat.f_blocks as u64,
    );
    (!failed).then(|| (free.saturating_mul(unit), all.saturating_mul(unit)))
}

/// Where the state is kept, if the configuration can be read.
fn configuration(dir: &Path, findings: &mut Findings) -> Option<Address> {
    match database_of(dir) {
        Ok(address) => {
            findings.ok("config", "can be read");
            Some(address)
        }
        Err(failure) => {
            findings.fail(
                "config",
                failure.message(),
                "`drumtower config check` says where",
            );
            None
        }
    }
}

fn database(dir: &Path, findings: &mut Findings) {
    match sqlite::check(dir) {
        Ok(()) => findings.ok("database", "every page was read and is sound"),
        Err(Error::Locked(_)) => findings.warn(
            "database",
            "a server works on it",
            "stop the server for --deep; `drumtower backup` checks a copy of a running one",
        ),
        Err(error) => findings.fail(
            "database",
            error.to_string(),
            "`drumtower restore BACKUP --replace` with the newest backup",
        ),
    }
}
