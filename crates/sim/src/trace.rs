//! What happened, in lines of text. They are always hashed, so that two lives of one seed can be compared; they are kept
//! only on request.

use std::fmt::{Arguments, Write};

use xxhash_rust::xxh3::Xxh3;

use crate::clock::At;

pub struct Trace {
    hash: Xxh3,
    line: String,
    lines: u64,
    kept: Option<Vec<String>>,
}

impl Trace {
    pub fn new(keep: bool) -> Self {
        Self {
            hash: Xxh3::new(),
            line: String::new(),
            lines: 0,
            kept: keep.then(Vec::new),
        }
    }

    pub fn note(&mut self, at: At, words: Arguments<'_>) {
        self.line.clear();
        let (s, us) = (at.0 / 1_000_000, at.0 % 1_000_000);
        // Writing to a string cannot fail.
        let _ = write!(self.line, "{s:>6}.{us:06} {words}");
        self.hash.update(self.line.as_bytes());
        self.hash.update(b"\n");
        self.lines += 1;
        if let Some(kept) = &mut self.kept {
            kept.push(self.line.clone());
        }
    }

    pub fn hash(&self) -> u64 {
        self.hash.digest()
    }

    pub fn lines(&self) -> u64 {
        self.lines
    }

    pub fn take(&mut self) -> Vec<String> {
        self.kept.take().unwrap_or_default()
    }
}
