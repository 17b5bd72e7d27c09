//! Questions before something is lost.

use std::io::{IsTerminal, Write};

use crate::failure::{Failure, Result};

/// Asks on the terminal; where nobody could answer it is refused, with the flag that answers.
pub fn confirm(question: &str) -> Result<()> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(
            Failure::usage(format!("nobody is here to answer: {question}"))
                .remedy("add --yes when you mean it, or look first with --dry-run"),
        );
    }
    let mut err = std::io::stderr().lock();
    write!(err, "{question} [y/N] ")?;
    err.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::failed("nothing was changed")),
    }
}
