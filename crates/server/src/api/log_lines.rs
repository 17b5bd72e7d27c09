//! Output line by line: pieces put together again, and the lines that a caller wants.
//!
//! Memory is bounded: a line that goes on for ever is cut, and no more than [`MOST_LINES`] are held at a time.

use std::collections::VecDeque;

use drumtower_core::model::WallMs;
use regex::{Regex, RegexBuilder};

use super::problem::Problem;
use crate::logs::{Record, Stream};

/// The most lines that may be asked for from the end.
pub const MOST_LINES: usize = 10_000;
/// The longest pattern.
pub const PATTERN_CHARS: usize = 1000;
/// What a compiled pattern may take.
const PATTERN_BYTES: usize = 1 << 20;
/// A line beyond this is handed out in pieces.
const LINE_BYTES: usize = 1 << 20;
/// What the lines from the end may take together.
const LAST_BYTES: usize = 16 << 20;

pub fn pattern(text: &str) -> Result<Regex, Problem> {
    let wrong = |why: String| Problem::parameter("grep", format!("grep: {why}"));
    if text.chars().count() > PATTERN_CHARS {
        return Err(wrong(format!(
            "the pattern has more than {PATTERN_CHARS} characters"
        )));
    }
    let built = RegexBuilder::new(text)
        .size_limit(PATTERN_BYTES)
        .dfa_size_limit(PATTERN_BYTES)
        .build();
    built.map_err(|error| {
        let error = error.to_string();
        let why = error.lines().last().unwrap_or_default();
        wrong(format!(
            "the pattern cannot be read: {}",
            why.trim_start_matches("error: ")
        ))
    })
}

/// Whether a line is one that the pattern is found in. Colours do not come between its letters.
pub fn matches(pattern: &Regex, line: &Record) -> bool {
    let text = String::from_utf8_lossy(&line.data);
    let text = text.trim_end_matches(['\n', '\r']);
    if text.contains('\u{1b}') {
        pattern.is_match(&without_escapes(text))
    } else {
        pattern.is_match(text)
    }
}

/// Text without the sequences that colour it.
fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\u{1b}[") {
        plain.push_str(&rest[..at]);
        let inside = &rest[at + 2..];
        let end = inside.find(|c: char| ('@'..='~').contains(&c));
        rest = end.map_or("", |end| &inside[end + 1..]);
    }
    plain.push_str(rest);
    plain
}

/// Puts the pieces of lines together, each stream for itself.
#[derive(Default)]
pub struct Lines {
    /// The beginning of a line whose end has not come, with the stamp of its first piece.
    open: [Option<(WallMs, Vec<u8>)>; 2],
}

impl Lines {
    pub fn add(&mut self, record: &Record, each: &mut impl FnMut(Record)) {
        for piece in record.data.split_inclusive(|byte| *byte == b'\n') {
            let open = &mut self.open[usize::from(record.stream == Stream::Stderr)];
            let (wall, mut data) = open.take().unwrap_or((record.wall, Vec::new()));
            data.extend_from_slice(piece);
            if piece.ends_with(b"\n") || data.len() >= LINE_BYTES {
                each(Record {
                    stream: record.stream,
                    wall,
                    data,
                });
            } else {
                *open = Some((wall, data));
            }
        }
    }

    /// Nothing more comes: what was begun is a line as well.
    pub fn finish(&mut self, each: &mut impl FnMut(Record)) {
        for (open, stream) in self.open.iter_mut().zip([Stream::Stdout, Stream::Stderr]) {
            if let Some((wall, data)) = open.take() {
                each(Record { stream, wall, data });
            }
        }
    }
}

/// The last lines of many.
pub struct Last {
    most: usize,
    bytes: usize,
    pub lines: VecDeque<Record>,
}

impl Last {
    pub fn new(most: usize) -> Self {
        Self {
            most,
            bytes: 0,
            lines: VecDeque::new(),
        }
    }

    pub fn push(&mut self, line: Record) {
        self.bytes += line.data.len();
        self.lines.push_back(line);
        while self.lines.len() > self.most || self.bytes > LAST_BYTES {
            let Some(gone) = self.lines.pop_front() else {
                return;
            };
            self.bytes -= gone.data.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(stream: Stream, wall: i64, text: &str) -> Record {
        Record {
            stream,
            wall: WallMs(wall),
            data: text.as_bytes().to_vec(),
        }
    }

    #[test]
    fn pieces_become_lines_each_stream_for_itself() {
        let mut lines = Lines::default();
        let mut seen = Vec::new();
        let mut each = |line: Record| {
            seen.push((line.wall.0, String::from_utf8(line.data).unwrap()));
        };
        lines.add(&piece(Stream::Stdout, 1, "a\nb"), &mut each);
        lines.add(&piece(Stream::Stderr, 2, "x"), &mut each);
        lines.add(&piece(Stream::Stdout, 3, "c\n"), &mut each);
        lines.finish(&mut each);
        let expected = [(1, "a\n"), (1, "bc\n"), (2, "x")].map(|(wall, it)| (wall, it.to_owned()));
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_line_without_an_end_is_cut() {
        let mut lines = Lines::default();
        let mut count = 0;
        for _ in 0..33 {
            lines.add(
                &piece(Stream::Stdout, 0, &"x".repeat(LINE_BYTES / 16)),
                &mut |_| count += 1,
            );
        }
        assert_eq!(count, 2);
    }

    #[test]
    fn only_the_last_lines_stay() {
        let mut last = Last::new(2);
        for text in ["a\n", "b\n", "c\n"] {
            last.push(piece(Stream::Stdout, 0, text));
        }
        let left: Vec<&[u8]> = last.lines.iter().map(|line| &line.data[..]).collect();
        assert_eq!(left, [b"b\n", b"c\n"]);
    }

    #[test]
    fn colours_do_not_hide_words_from_a_pattern() {
        let red = piece(Stream::Stdout, 0, "\u{1b}[1;31mer\u{1b}[0mror\n");
        assert!(matches(&pattern("^error$").unwrap(), &red));
        assert!(!matches(&pattern("31m").unwrap(), &red));
        assert!(pattern("(").is_err() && pattern(&"x".repeat(1001)).is_err());
        let detail = pattern("a{99999999}").unwrap_err().detail;
        assert!(detail.starts_with("grep: "), "{detail}");
    }
}
