//! How many files this process may have open.
//!
//! Systems start programs with a low soft limit, often 1,024, for the sake of old ones that cannot use more. A server or a
//! worker needs a few descriptors for each connection and each run, so it takes what the hard limit allows. Tasks begin with
//! the soft limit that was there before.

use std::sync::OnceLock;

use crate::supervisor::sys;

/// More is of no use, and some systems have no bound of their own.
const USEFUL: u64 = 1 << 20;

/// What the agent holds for a run of a command (socket, two pipes, the process itself), or for a request.
const PER_RUN: u64 = 4;

/// The process itself, and what is open for a moment while a command is started.
const RESERVE: u64 = 100;

static BEFORE: OnceLock<u64> = OnceLock::new();

/// Takes as many as the hard limit allows. Where that is not granted, the limit stays as it is.
pub fn raise() {
    let Ok((soft, hard)) = sys::open_files() else {
        return;
    };
    let wanted = hard.min(USEFUL);
    if soft < wanted && sys::soften_open_files(wanted).is_ok() {
        let _ = BEFORE.set(soft);
    }
}

/// The soft limit before it was raised.
pub(crate) fn before() -> Option<u64> {
    BEFORE.get().copied()
}

/// Why a worker of this capacity may not come to it, in words, if so.
pub fn shortage(capacity: u32) -> Option<String> {
    let (soft, _) = sys::open_files().ok()?;
    shortage_of(soft, capacity)
}

fn shortage_of(soft: u64, capacity: u32) -> Option<String> {
    let needed = u64::from(capacity) * PER_RUN + RESERVE;
    (needed > soft).then(|| {
        let fits = soft.saturating_sub(RESERVE) / PER_RUN;
        format!(
            "{capacity} runs at once need {needed} open files and this process may have {soft}, enough for {fits}: raise the limit (ulimit -n, LimitNOFILE=) or lower --capacity"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capacity_that_does_not_fit_is_named_with_a_remedy() {
        assert_eq!(shortage_of(1024, 16), None);
        assert_eq!(shortage_of(1024, 231), None);
        let told = shortage_of(1024, 300).unwrap();
        assert!(
            told.contains("1300") && told.contains("enough for 231"),
            "{told}"
        );
        assert!(told.contains("--capacity"), "{told}");
        assert!(shortage_of(10, 1).is_some());
    }
}
