//! Second line of defence: the supervisor of an attempt died (SIGKILL) before its tree did.
//!
//! The kernel has killed the command with its supervisor. Descendants that stayed in the supervisor's session or
//! control group are killed here. One that made its own session is out of reach where there was no control group.

use std::path::Path;
use std::time::Duration;

use tokio::process::Child;

use crate::supervisor::cgroup::Cgroup;
use crate::supervisor::resume_files;
use crate::supervisor::sys::Pid;
use crate::supervisor::tree::kill_session;
use crate::supervisor::wire::Started;

/// How long, in all, members of the control group are waited for.
const ROUNDS: u32 = 200;
const PAUSE: Duration = Duration::from_millis(5);

/// Must be called before the supervisor is waited for: until then its process id is the name of its session.
pub async fn clear_up(supervisor: &mut Child, started: Option<&Started>, scratch: &Path) {
    // It closed its socket without a report; should it live on, it is of no use.
    let _ = supervisor.start_kill();
    let leader = supervisor.id().map(|pid| pid as Pid);
    let cgroup = started.and_then(|started| started.cgroup.clone());
    let command = started.map(|started| started.pid as Pid);
    let scratch = scratch.to_owned();
    let clearing = tokio::task::spawn_blocking(move || {
        let cgroup = cgroup.map(Cgroup::existing);
        if let Some(cgroup) = &cgroup {
            cgroup.kill();
        }
        if let Some(leader) = leader {
            kill_session(leader, command);
        }
        // Members die a moment after the kill; an outcome must not be told before.
        for _ in 0..ROUNDS {
            if cgroup.as_ref().is_none_or(Cgroup::is_empty) {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        resume_files::keep(&scratch);
        // What is left of a directory that cannot be removed is for the operator; the outcome says what happened.
        let _ = std::fs::remove_dir_all(scratch);
    });
    let _ = clearing.await;
}
