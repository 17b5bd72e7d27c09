//! How far long work is, for people at a terminal.

use std::cell::Cell as Slot;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use super::hint;

/// Work shorter than this needs no telling.
const SILENT: Duration = Duration::from_millis(500);
const EVERY: Duration = Duration::from_millis(100);
const CELLS: u64 = 30;

/// A line on standard error that is written over, and gone when dropped. Nothing at all in a pipe.
#[derive(Debug)]
pub struct Progress {
    what: &'static str,
    of: usize,
    next: Slot<Instant>,
    shown: Slot<bool>,
    terminal: bool,
}

impl Progress {
    pub fn new(what: &'static str, of: usize) -> Self {
        Self {
            what,
            of,
            next: Slot::new(Instant::now() + SILENT),
            shown: Slot::new(false),
            terminal: std::io::stderr().is_terminal(),
        }
    }

    /// So many of them are done.
    pub fn at(&self, done: usize) {
        self.tell(|| {
            let bar = bar(self.what, done as u64, self.of as u64);
            format!("{bar} ({done} of {})", self.of)
        });
    }

    /// Another piece of the same work, counted in whatever it is counted in.
    pub fn stage(&self, what: &str, done: u64, of: u64) {
        self.tell(|| bar(what, done, of));
    }

    /// Words of the work's own.
    pub fn tell(&self, words: impl FnOnce() -> String) {
        let now = Instant::now();
        if !self.terminal || now < self.next.get() {
            return;
        }
        self.next.set(now + EVERY);
        self.shown.set(true);
        overwrite(words);
    }

    /// Makes room for other words.
    pub fn clear(&self) {
        if self.shown.replace(false) {
            hint("\r\u{1b}[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Writes over the line on standard error, if that is a terminal.
pub fn overwrite(words: impl FnOnce() -> String) {
    if std::io::stderr().is_terminal() {
        hint(&format!("\r{}\u{1b}[K", words()));
    }
}

fn bar(what: &str, done: u64, of: u64) -> String {
    let (done, of) = (done.min(of), of.max(1));
    let full = usize::try_from(done.saturating_mul(CELLS) / of).unwrap_or(0);
    let cells = format!("{}{}", "#".repeat(full), ".".repeat(CELLS as usize - full));
    format!("{what} [{cells}] {} %", done.saturating_mul(100) / of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_never_longer_than_the_work() {
        assert_eq!(
            bar("copying", 0, 0),
            format!("copying [{}] 0 %", ".".repeat(30))
        );
        assert_eq!(
            bar("copying", 9, 3),
            format!("copying [{}] 100 %", "#".repeat(30))
        );
        assert!(bar("copying", 1, 2).ends_with("] 50 %"));
    }
}
