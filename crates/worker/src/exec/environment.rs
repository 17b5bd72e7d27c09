//! The environment that a command sees: defined here and in the attempt, never inherited from the agent.

use std::path::Path;

use crate::supervisor::{result_file, surroundings};

/// Where programs are looked up.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The defined variables, then those of the attempt; of two with one name the later wins.
/// The home of another user is for the supervisor to find.
pub fn complete(
    scratch: &Path,
    other_user: bool,
    given: Vec<(String, String)>,
) -> Vec<(String, String)> {
    let result = result_file::path(scratch);
    let (scratch, result) = (scratch.to_string_lossy(), result.to_string_lossy());
    let defined = [
        ("PATH", PATH),
        ("HOME", &*scratch),
        ("LANG", "C.UTF-8"),
        ("TZ", "UTC"),
        ("DRUMTOWER_SCRATCH", &*scratch),
        ("DRUMTOWER_RESULT_FILE", &*result),
    ];
    let defined = defined
        .into_iter()
        .filter(|(name, _)| !(other_user && *name == "HOME"))
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    defined.chain(given).collect()
}

/// Where a script of the attempt is.
pub fn script(scratch: &Path) -> String {
    surroundings::script_path(scratch)
        .to_string_lossy()
        .into_owned()
}
