//! Open files: a server with many connections needs many, and so do processes that host many workers.
//!
//! What the bench starts inherits its limits. The server raises its own to the hard one; here the same is done for the
//! rest, and what the hard limit cannot hold is refused before anything is started.

use crate::failure::{Failure, Result};

/// What a process has open beside its connections.
const BESIDE: u64 = 256;

/// Makes room for `workers` hosted by `processes`, and for `connections` of the load.
pub fn make_room(workers: u32, processes: u32, connections: u32) -> Result<()> {
    let (soft, hard) = limits();
    let needed = needed(workers, processes, connections);
    refuse_beyond(hard, needed, workers)?;
    if soft < needed {
        raise_to(needed, hard)?;
    }
    Ok(())
}

fn refuse_beyond(hard: u64, needed: u64, workers: u32) -> Result<()> {
    if needed <= hard {
        return Ok(());
    }
    let message = format!(
        "{workers} workers need {needed} open files in one process, and the system allows {hard}"
    );
    Err(Failure::usage(message).remedy(format!(
        "raise the limit (`ulimit -Hn {needed}` as root, or LimitNOFILE= of a unit), or take fewer workers"
    )))
}

/// The server gives one address three quarters of its places, and everything here comes from one; a host holds one connection
/// for each of its workers, and for a moment another.
fn needed(workers: u32, processes: u32, connections: u32) -> u64 {
    let places = u64::from(workers) + u64::from(connections) + 16;
    let server = places.div_ceil(3) * 4 + BESIDE;
    let hosted = u64::from(workers.div_ceil(processes.max(1)));
    server.max(hosted * 2 + BESIDE)
}

fn limits() -> (u64, u64) {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the call fills the struct it is given and keeps no pointer to it.
    let answered = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0;
    match answered {
        true => (limit.rlim_cur, limit.rlim_max),
        false => (u64::MAX, u64::MAX),
    }
}

fn raise_to(soft: u64, hard: u64) -> Result<()> {
    let limit = libc::rlimit {
        rlim_cur: soft,
        rlim_max: hard,
    };
    // SAFETY: the call reads the struct it is given and keeps no pointer to it.
    match unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } {
        0 => Ok(()),
        _ => Err(Failure::failed(format!(
            "the limit of open files cannot be raised to {soft}: {}",
            std::io::Error::last_os_error()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_keeps_a_quarter_of_its_places_from_one_address() {
        assert_eq!(needed(10_000, 4, 64), (10_080 / 3) * 4 + BESIDE);
        let share = (needed(10_000, 4, 64) - BESIDE) / 4 * 3;
        assert!(share >= 10_080);
    }

    #[test]
    fn what_no_limit_can_hold_is_refused_with_a_remedy() {
        let needed = needed(10_000, 4, 64);
        refuse_beyond(needed, needed, 10_000).expect("just enough");
        let failure = refuse_beyond(4096, needed, 10_000).expect_err("too few");
        assert!(failure.message().contains("allows 4096"), "{failure}");
        assert!(failure.to_string().contains("ulimit"), "{failure}");
    }
}
