//! How far long work is, for people at a terminal.

use std::cell::Cell as Slot;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

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
        eprint!("\r{}: {done} of {}\u{1b}[K", self.what, self.of);
        // A terminal that takes nothing loses no more than this line.
        let _ = std::io::stderr().flush();
    }

    /// Makes room for other words.
    pub fn clear(&self) {
        if self.shown.replace(false) {
            eprint!("\r\u{1b}[K");
        }
    }
}
