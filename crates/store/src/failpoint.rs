//! Places where a test may make the process die as if by `kill -9`.
//!
//! Only with the cargo feature `failpoints`; otherwise [`hit`] is nothing. `DRUMTOWER_FAILPOINT=name:n` makes the nth
//! passage of `name` the last thing this process does. The names: `at_start`, `in_migration`, `before_commit`,
//! `after_commit`, `in_checkpoint`, `in_backup`, `in_restore`.

/// Passes the place called `name`.
#[cfg(not(feature = "failpoints"))]
#[inline]
pub fn hit(_name: &str) {}

#[cfg(feature = "failpoints")]
pub use armed::{due, hit, kill};

#[cfg(feature = "failpoints")]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    struct Armed {
        name: String,
        left: AtomicU64,
    }

    fn armed() -> Option<&'static Armed> {
        static ARMED: OnceLock<Option<Armed>> = OnceLock::new();
        ARMED.get_or_init(parse).as_ref()
    }

    fn parse() -> Option<Armed> {
        let text = std::env::var("DRUMTOWER_FAILPOINT").ok()?;
        let parts = text
            .rsplit_once(':')
            .and_then(|(name, count)| Some((name, count.parse::<u64>().ok()?)));
        match parts {
            Some((name, count)) if count > 0 => Some(Armed {
                name: name.to_owned(),
                left: AtomicU64::new(count),
            }),
            _ => panic!(
                "DRUMTOWER_FAILPOINT is `{text}`: expected a name, a colon and a count from 1"
            ),
        }
    }

    /// Passes the place called `name`, and dies there if it is the one.
    pub fn hit(name: &str) {
        if due(name) {
            kill();
        }
    }

    /// Passes the place called `name` and says whether the process should die in it.
    pub fn due(name: &str) -> bool {
        armed().is_some_and(|armed| {
            armed.name == name && armed.left.fetch_sub(1, Ordering::SeqCst) == 1
        })
    }

    /// Dies without a chance to flush, close or say anything.
    pub fn kill() -> ! {
        // SAFETY: both calls take no memory of ours; SIGKILL to ourselves does not return.
        unsafe {
            libc::kill(libc::getpid(), libc::SIGKILL);
        }
        std::process::abort();
    }
}
