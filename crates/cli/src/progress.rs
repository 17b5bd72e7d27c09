//! A line on the terminal that says how far a long piece of work has come; nothing where nobody looks.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use drumtower_store::sqlite::backup::{Progress, Stage};

use crate::output::hint;

const EVERY: Duration = Duration::from_millis(100);
const CELLS: u64 = 30;

/// Drawn on standard error, so that it never mixes with an answer. Gone when dropped.
pub struct Bar {
    shown: bool,
    drawn: Option<Instant>,
}

impl Bar {
    pub fn new() -> Self {
        Self {
            shown: std::io::stderr().is_terminal(),
            drawn: None,
        }
    }

    pub fn show(&mut self, progress: Progress) {
        let fresh = self.drawn.is_some_and(|at| at.elapsed() < EVERY);
        if self.shown && !fresh {
            self.drawn = Some(Instant::now());
            hint(&format!("\r{}\x1b[K", line(progress)));
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            hint("\r\x1b[K");
        }
    }
}

fn line(progress: Progress) -> String {
    let what = match progress.stage {
        Stage::Copying => "copying",
        Stage::Logs => "output of runs",
        Stage::Checking => "checking",
    };
    let (done, total) = (progress.done.min(progress.total), progress.total.max(1));
    let full = usize::try_from(done * CELLS / total).unwrap_or(0);
    let bar = format!("{}{}", "#".repeat(full), ".".repeat(CELLS as usize - full));
    format!("{what} [{bar}] {} %", done * 100 / total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_never_longer_than_the_work() {
        let at = |done, total| {
            line(Progress {
                stage: Stage::Copying,
                done,
                total,
            })
        };
        assert_eq!(at(0, 0), format!("copying [{}] 0 %", ".".repeat(30)));
        assert_eq!(at(9, 3), format!("copying [{}] 100 %", "#".repeat(30)));
        assert!(at(1, 2).ends_with("] 50 %"));
    }
}
