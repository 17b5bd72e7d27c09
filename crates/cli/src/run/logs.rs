//! `drumtower run logs`: what a run wrote.

use std::io::{IsTerminal, Write};

use clap::{Args, ValueEnum};
use serde_json::Value;

use super::path;
use crate::client::{Call, Client};
use crate::connect::Connect;
use crate::failure::Result;
use crate::output::{Format, Output, line, text, write};

/// Print the output of a run
///
/// What the task wrote to standard output goes to standard output, what it wrote to standard
/// error to standard error.
///
///     drumtower run logs run_06d4ztbp00000
///     drumtower run logs -f run_06d4ztbp00000
///     drumtower run logs run_06d4ztbp00000 --stream stderr -o json
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Logs {
    /// The run's id
    run: String,
    /// Go on until the run has ended
    #[arg(short, long)]
    follow: bool,
    /// Only this attempt
    #[arg(long, value_name = "NUMBER")]
    attempt: Option<u32>,
    /// Only this stream
    #[arg(long, value_enum)]
    stream: Option<Stream>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Stream {
    Stdout,
    Stderr,
}

impl Logs {
    pub fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let stream = self.stream.map(|stream| {
            if stream == Stream::Stdout {
                "stdout"
            } else {
                "stderr"
            }
        });
        let call = Call::get(format!("{}/logs", path(&self.run)))
            .query("follow", self.follow)
            .maybe("attempt", self.attempt)
            .maybe("stream", stream)
            .header("accept", "application/x-ndjson");
        for record in client.lines(call)? {
            self.print(&record?)?;
        }
        Ok(())
    }

    fn print(&self, record: &Value) -> Result<()> {
        if self.output.output != Format::Table {
            return line(&record.to_string());
        }
        let words = text(record, "text");
        match text(record, "stream").as_str() {
            "stdout" => write(&shown(&words, std::io::stdout().is_terminal())),
            "stderr" => to_stderr(&shown(&words, std::io::stderr().is_terminal())),
            _ => to_stderr(&format!("[{}]\n", words.trim_end())),
        }
    }
}

fn to_stderr(words: &str) -> Result<()> {
    let mut out = std::io::stderr().lock();
    out.write_all(words.as_bytes())?;
    Ok(())
}

/// A task's colours may reach a terminal; what moves the cursor or sets a title may not.
fn shown(words: &str, terminal: bool) -> String {
    if !terminal {
        return words.to_owned();
    }
    let mut safe = String::with_capacity(words.len());
    let mut rest = words;
    while let Some(at) = rest.find(|c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r')) {
        let (before, from) = rest.split_at(at);
        safe.push_str(before);
        match color_sequence(from) {
            Some(length) => {
                safe.push_str(&from[..length]);
                rest = &from[length..];
            }
            None => {
                safe.push('\u{fffd}');
                rest = &from[from.chars().next().map_or(0, char::len_utf8)..];
            }
        }
    }
    safe.push_str(rest);
    safe
}

/// The length of `ESC [ digits and semicolons m` at the start of the text.
fn color_sequence(text: &str) -> Option<usize> {
    let inside = text.strip_prefix("\u{1b}[")?;
    let end = inside.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    inside[end..].starts_with('m').then_some(2 + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_pass_and_other_sequences_do_not_reach_a_terminal() {
        let words = "\u{1b}[1;31mred\u{1b}[0m\n\u{1b}[2Jgone \u{1b}]0;title\u{7} 结束\u{1b}";
        let safe =
            "\u{1b}[1;31mred\u{1b}[0m\n\u{fffd}[2Jgone \u{fffd}]0;title\u{fffd} 结束\u{fffd}";
        assert_eq!(shown(words, true), safe);
        assert_eq!(shown(words, false), words);
    }
}
