//! The environment that a command sees: defined here and in the attempt, never inherited from the agent.

use std::path::Path;

/// Where programs are looked up.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The defined variables, then those of the attempt; of two with one name the later wins.
pub fn complete(scratch: &Path, given: Vec<(String, String)>) -> Vec<(String, String)> {
    let scratch = scratch.to_string_lossy();
    let defined = [
        ("PATH", PATH),
        ("HOME", &scratch),
        ("LANG", "C.UTF-8"),
        ("TZ", "UTC"),
        ("DRUMTOWER_SCRATCH", &scratch),
    ];
    let defined = defined
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    defined.chain(given).collect()
}
