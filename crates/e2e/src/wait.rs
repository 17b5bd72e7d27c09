//! Waiting for what must happen.

use std::time::{Duration, Instant};

/// No test waits longer for anything that it does not say it waits longer for. A healthy machine never comes near.
pub const PATIENCE: Duration = Duration::from_secs(60);

const POLL: Duration = Duration::from_millis(10);

/// Asks until there is an answer. Gives up, with words, after [`PATIENCE`].
#[track_caller]
pub fn eventually<T>(what: &str, condition: impl FnMut() -> Option<T>) -> T {
    within(PATIENCE, what, condition)
}

/// As [`eventually`], for what may take longer.
#[track_caller]
pub fn within<T>(patience: Duration, what: &str, condition: impl FnMut() -> Option<T>) -> T {
    let answer = wait(patience, condition);
    answer.unwrap_or_else(|| panic!("waited {patience:?} in vain: {what}"))
}

/// As [`eventually`], for a caller who has more to say about what did not happen.
pub fn in_time<T>(condition: impl FnMut() -> Option<T>) -> Option<T> {
    wait(PATIENCE, condition)
}

fn wait<T>(patience: Duration, mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        let answer = condition();
        if answer.is_some() || start.elapsed() >= patience {
            return answer;
        }
        std::thread::sleep(POLL);
    }
}

/// Whether soak sizes are asked for.
pub fn long() -> bool {
    std::env::var_os("DRUMTOWER_LONG").is_some_and(|value| value == "1")
}
