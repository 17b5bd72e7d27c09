//! Keeps what a worker says within what a server takes.

use drumtower_core::model::Limits;

/// Cuts a text to what a server takes, at the end of a character.
pub(crate) fn error_text(mut text: String) -> String {
    if text.len() > Limits::ERROR_BYTES {
        const MARK: &str = " … (cut)";
        text.truncate(text.floor_char_boundary(Limits::ERROR_BYTES - MARK.len()));
        text.push_str(MARK);
    }
    text
}
