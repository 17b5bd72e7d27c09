//! The environment that a command sees: defined here and in the attempt, never inherited from the agent.

use std::path::Path;

use crate::supervisor::{result_file, resume_files, surroundings};

/// Where programs are looked up.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The defined variables, then those of the attempt; of two with one name the later wins.
/// The home of another user is for the supervisor to find.
pub fn complete(
    scratch: &Path,
    other_user: bool,
    resume: bool,
    given: Vec<(String, String)>,
) -> Vec<(String, String)> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let defined = [
        ("PATH", PATH.to_owned()),
        ("HOME", text(scratch)),
        ("LANG", "C.UTF-8".to_owned()),
        ("TZ", "UTC".to_owned()),
        ("DRUMTOWER_SCRATCH", text(scratch)),
        ("DRUMTOWER_RESULT_FILE", text(&result_file::path(scratch))),
        ("DRUMTOWER_PROGRESS", text(&resume_files::progress(scratch))),
        (
            "DRUMTOWER_CHECKPOINT",
            text(&resume_files::checkpoint(scratch)),
        ),
        ("DRUMTOWER_RESUME", text(&resume_files::resume(scratch))),
    ];
    let defined = defined
        .into_iter()
        .filter(|(name, _)| !(other_user && *name == "HOME"))
        .filter(|(name, _)| resume || *name != "DRUMTOWER_RESUME")
        .map(|(name, value)| (name.to_owned(), value));
    defined.chain(given).collect()
}

/// Where a script of the attempt is.
pub fn script(scratch: &Path) -> String {
    surroundings::script_path(scratch)
        .to_string_lossy()
        .into_owned()
}
