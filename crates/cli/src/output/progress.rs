//! How far long work is, for people at a terminal.

use std::cell::Cell as Slot;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use super::hint;

/// Work shorter than this needs no telling.
const SILENT: Duration = Duration::from_millis(500);
const EVERY: Duration = Duration::from_millis(100);

/// A line on standard error that is written over. Nothing at all in a pipe.
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

    pub fn at(&self, done: usize) {
        let now = Instant::now();
        if !self.terminal || now < self.next.get() {
            return;
        }
        self.next.set(now + EVERY);
        self.shown.set(true);
        hint(&format!("\r{}: {done} of {}\u{1b}[K", self.what, self.of));
    }

    /// Makes room for other words.
    pub fn clear(&self) {
        if self.shown.replace(false) {
            hint("\r\u{1b}[K");
        }
    }
}
