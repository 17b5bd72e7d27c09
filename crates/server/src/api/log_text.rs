//! Output as text: JSON lines for programs, raw bytes for people.
//!
//! A JSON line holds one line of output with its newline, or a piece of one where the transport cut it, so that the texts
//! one after another are the output. A character that was cut in two is held back until its other half has come.

use axum::body::Bytes;
use axum::http::{HeaderMap, header};
use serde::Serialize;

use super::time::Time;
use crate::logs::{Record, Stream};

/// How a caller wants output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    JsonLines,
    Plain,
}

impl Form {
    /// From `Accept`: text only when it is asked for.
    pub fn wanted(headers: &HeaderMap) -> Self {
        let accept = headers
            .get(header::ACCEPT)
            .and_then(|value| value.to_str().ok())
            .unwrap_or("");
        let mut kinds = accept
            .split(',')
            .map(|kind| kind.split(';').next().unwrap_or("").trim());
        if kinds.any(|kind| kind.eq_ignore_ascii_case("text/plain")) {
            Self::Plain
        } else {
            Self::JsonLines
        }
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Self::JsonLines => "application/x-ndjson",
            Self::Plain => "text/plain; charset=utf-8",
        }
    }
}

#[derive(Serialize)]
struct Line<'a> {
    ts: Time,
    stream: &'a str,
    attempt: u32,
    text: &'a str,
    /// The run has not ended, and whoever follows it is to ask again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    again: bool,
}

/// Turns the records of one attempt into what is sent.
pub struct Printer {
    form: Form,
    attempt: u32,
    /// The first bytes of a character whose rest has not come, by stream.
    cut: [Vec<u8>; 2],
    out: Vec<u8>,
}

impl Printer {
    pub fn new(form: Form, attempt: u32) -> Self {
        Self {
            form,
            attempt,
            cut: Default::default(),
            out: Vec::new(),
        }
    }

    pub fn record(&mut self, record: &Record) {
        match self.form {
            Form::Plain => self.out.extend_from_slice(&record.data),
            Form::JsonLines => self.lines(record),
        }
    }

    /// Words of the server about the output.
    pub fn note(&mut self, ts: Time, words: &str) {
        match self.form {
            Form::Plain => self
                .out
                .extend_from_slice(format!("[{words}]\n").as_bytes()),
            Form::JsonLines => self.line(ts, "note", &format!("{words}\n"), false),
        }
    }

    /// Words to whoever follows a run that has not ended and of which no more is told here.
    pub fn ask_again(&mut self, ts: Time, words: &str) {
        match self.form {
            Form::Plain => self.note(ts, words),
            Form::JsonLines => self.line(ts, "note", &format!("{words}\n"), true),
        }
    }

    pub fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.out).into()
    }

    fn lines(&mut self, record: &Record) {
        let cut = &mut self.cut[usize::from(record.stream == Stream::Stderr)];
        let mut bytes = std::mem::take(cut);
        bytes.extend_from_slice(&record.data);
        let whole = whole_characters(&bytes);
        *cut = bytes.split_off(whole);
        let text = String::from_utf8_lossy(&bytes);
        for line in text.split_inclusive('\n') {
            self.line(record.wall.into(), record.stream.name(), line, false);
        }
    }

    fn line(&mut self, ts: Time, stream: &str, text: &str, again: bool) {
        let line = Line {
            ts,
            stream,
            attempt: self.attempt,
            text,
            again,
        };
        if serde_json::to_writer(&mut self.out, &line).is_ok() {
            self.out.push(b'\n');
        }
    }
}

/// How many bytes do not end in the middle of a character. Bytes that are no UTF-8 at all count as whole.
fn whole_characters(bytes: &[u8]) -> usize {
    let tail = bytes.len().saturating_sub(3);
    for at in tail..bytes.len() {
        let needed = match bytes[at] {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => continue,
        };
        let rest = &bytes[at + 1..];
        if rest.len() + 1 < needed && rest.iter().all(|byte| (0x80..0xc0).contains(byte)) {
            return at;
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use drumtower_core::model::WallMs;

    use super::*;

    fn printed(pieces: &[&[u8]]) -> Vec<String> {
        let mut printer = Printer::new(Form::JsonLines, 1);
        for piece in pieces {
            printer.record(&Record {
                stream: Stream::Stdout,
                wall: WallMs(0),
                data: piece.to_vec(),
            });
        }
        let text = String::from_utf8(printer.take().to_vec()).unwrap();
        let value =
            |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["text"].clone();
        text.lines()
            .map(|line| value(line).as_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn lines_keep_their_newlines_and_pieces_join() {
        assert_eq!(printed(&[b"a\nb", b"c\n\n"]), ["a\n", "b", "c\n", "\n"]);
    }

    #[test]
    fn a_character_cut_anywhere_is_whole_again() {
        let text = "é鼓🥁x\n";
        for cut in 0..=text.len() {
            let (one, other) = text.as_bytes().split_at(cut);
            assert_eq!(printed(&[one, other]).concat(), text, "cut at {cut}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_do_not_hold_the_rest_back() {
        assert_eq!(
            printed(&[b"\xff\xfe", b"ok\n"]).concat(),
            "\u{fffd}\u{fffd}ok\n"
        );
        assert_eq!(printed(&[b"\xe9x\n"]).concat(), "\u{fffd}x\n");
    }

    #[test]
    fn plain_text_is_asked_for() {
        let wanted = |accept: &'static str| {
            Form::wanted(&HeaderMap::from_iter([(
                header::ACCEPT,
                axum::http::HeaderValue::from_static(accept),
            )]))
        };
        assert_eq!(wanted("*/*"), Form::JsonLines);
        assert_eq!(wanted("application/x-ndjson"), Form::JsonLines);
        assert_eq!(wanted("text/html, Text/Plain;q=0.9"), Form::Plain);
        assert_eq!(Form::wanted(&HeaderMap::new()), Form::JsonLines);
    }
}
