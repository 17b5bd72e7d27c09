//! What this machine is called.

use drumtower_core::model::{Limits, WorkerName};

const UNKNOWN: &str = "unknown";

/// The machine's own name, as workers announce it.
pub fn name() -> String {
    let mut buffer = [0u8; 256];
    // SAFETY: the call writes at most `len` bytes into `buffer`, which lives beyond it.
    let status = unsafe { libc::gethostname(buffer.as_mut_ptr().cast(), buffer.len()) };
    let end = buffer
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(buffer.len());
    let name = String::from_utf8_lossy(&buffer[..end]).into_owned();
    if status == 0 && !name.is_empty() {
        name
    } else {
        UNKNOWN.to_owned()
    }
}

/// The machine's name in the letters that a worker's name may have.
pub(crate) fn worker_name() -> WorkerName {
    let allowed =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-');
    let letters = name().to_ascii_lowercase();
    let fitting = letters
        .chars()
        .map(|letter| if allowed(letter) { letter } else { '-' });
    let cut: String = fitting.take(Limits::NAME_CHARS).collect();
    match WorkerName::new(&cut) {
        Ok(name) => name,
        Err(error) => unreachable!("the letters were replaced: {error}"),
    }
}
