//! What the system lets this user do.

use super::Findings;

/// A server with many workers and callers, or a worker with many commands, opens more than the usual 1,024.
const FILES: u64 = 4096;

pub fn check(findings: &mut Findings) {
    files(findings);
    #[cfg(target_os = "linux")]
    groups(findings);
}

fn files(findings: &mut Findings) {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the call writes one `rlimit` into valid memory.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return;
    }
    #[allow(clippy::unnecessary_cast)] // The type differs between systems.
    let files = limit.rlim_cur as u64;
    if files < FILES {
        findings.warn(
            "files",
            format!("at most {files} may be open at once"),
            "ulimit -n 65536, or LimitNOFILE=65536 in the systemd unit",
        );
    } else {
        findings.ok("files", format!("{files} may be open at once"));
    }
}

#[cfg(target_os = "linux")]
fn groups(findings: &mut Findings) {
    let controllers = std::fs::read_to_string("/sys/fs/cgroup/cgroup.controllers");
    let has = |name: &str| {
        controllers
            .as_ref()
            .is_ok_and(|all| all.split_whitespace().any(|it| it == name))
    };
    if ["cpu", "memory", "pids"].iter().all(|name| has(name)) {
        findings.ok(
            "cgroups",
            "version 2, with cpu, memory and pids; `drumtower worker show` says whether a worker may use them",
        );
    } else {
        findings.warn(
            "cgroups",
            "no control groups of version 2 with cpu, memory and pids: commands are held to limits one process at a time",
            "boot with systemd.unified_cgroup_hierarchy=1; in a container hand the controllers on",
        );
    }
}
