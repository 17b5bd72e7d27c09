//! `drumtower run logs`: what a run wrote.

use std::io::{IsTerminal, Write};

use clap::{Args, ValueEnum};
use jiff::SignedDuration;
use serde_json::Value;

use super::following::{Asking, Reach};
use super::path;
use super::{escapes, following};
use crate::client::{Call, Client};
use crate::connect::Connect;
use crate::failure::Result;
use crate::moment::Moment;
use crate::output::{Color, Format, Output, exact, line, text};

/// Print the output of a run
///
/// What the task wrote to standard output goes to standard output, what it wrote to standard
/// error to standard error; on a terminal that is red.
///
///     drumtower run logs run_06d4ztbp00000
///     drumtower run logs -f run_06d4ztbp00000 --tail 20
///     drumtower run logs run_06d4ztbp00000 --since -10m --grep 'time(d )?out' -i
///     drumtower run logs run_06d4ztbp00000 --stream stderr --timestamps
///     drumtower run logs run_06d4ztbp00000 -o json
///
/// A task's own colours reach a terminal, and nothing else that moves its cursor does. In a
/// pipe they are left out; --ansi always keeps the text as it was written.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Logs {
    /// The run's id
    run: String,
    /// Go on until the run has ended; a server that ends or restarts meanwhile is waited for
    #[arg(short, long)]
    follow: bool,
    /// Only so many lines from the end of what there is, at most 10,000
    #[arg(long, value_name = "LINES")]
    tail: Option<u32>,
    /// Only what was written at or after this instant: RFC 3339, or a duration such as `-10m` from now
    #[arg(long, value_name = "INSTANT", allow_hyphen_values = true)]
    since: Option<Moment>,
    /// Only lines in which this regular expression is found
    #[arg(long, value_name = "REGEX")]
    grep: Option<String>,
    /// Take upper and lower case for the same in --grep
    #[arg(short, long, requires = "grep")]
    ignore_case: bool,
    /// Only this attempt
    #[arg(long, value_name = "NUMBER")]
    attempt: Option<u32>,
    /// Only this stream
    #[arg(long, value_enum)]
    stream: Option<Stream>,
    /// Begin each line with when it was written
    #[arg(short, long)]
    timestamps: bool,
    /// Whether escape sequences in the text, such as colours, are kept
    #[arg(long, value_enum, default_value_t, value_name = "WHEN")]
    ansi: Ansi,
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Ansi {
    /// Colours on a terminal, nothing in a pipe
    #[default]
    Auto,
    /// All of them, as they were written
    Always,
    Never,
}

impl Logs {
    pub fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let stream = self.stream.map(|stream| match stream {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        });
        let case = if self.ignore_case { "(?i)" } else { "" };
        let grep = self.grep.as_ref().map(|grep| format!("{case}{grep}"));
        // The same instants for whoever is asked again.
        let reach = Reach {
            tail: self.tail,
            since: self.since.map(Moment::instant),
            asked: Moment::Offset(SignedDuration::ZERO).instant(),
        };
        let call = |asking| {
            let (tail, since) = reach.at(asking);
            Call::get(format!("{}/logs", path(&self.run)))
                .query("follow", self.follow)
                .maybe("tail", tail)
                .maybe("since", since)
                .maybe("grep", grep.as_ref())
                .maybe("attempt", self.attempt)
                .maybe("stream", stream)
                .header("accept", "application/x-ndjson")
        };
        if self.output.output != Format::Table {
            return self.each(&client, call, |record| line(&record.to_string()));
        }
        let mut stdout = Sink::new(&self, std::io::stdout(), false);
        let mut stderr = Sink::new(&self, std::io::stderr(), true);
        let mut attempt = None;
        self.each(&client, call, |record| {
            let number = record.get("attempt").and_then(Value::as_u64);
            if attempt.replace(number).is_some_and(|last| last != number) && stderr.terminal {
                stderr.note(&format!("attempt {}", text(record, "attempt")))?;
            }
            match text(record, "stream").as_str() {
                "stdout" => stdout.print(record),
                "stderr" => stderr.print(record),
                _ => stderr.note(text(record, "text").trim_end()),
            }
        })
    }

    /// Prints what there is, or what comes until the run has ended.
    fn each(
        &self,
        client: &Client,
        call: impl Fn(Asking) -> Call,
        mut print: impl FnMut(&Value) -> Result<()>,
    ) -> Result<()> {
        if self.follow {
            return following::follow(client, call, print);
        }
        for record in client.lines(call(Asking::First))? {
            print(&record?)?;
        }
        Ok(())
    }
}

/// One of our own streams, and how its text looks there.
struct Sink<W> {
    out: W,
    terminal: bool,
    timestamps: bool,
    ansi: Ansi,
    /// Whether what is printed is painted, unless it has colours of its own.
    painted: bool,
    dimmed: bool,
    /// Whether the next text begins a line.
    fresh: bool,
}

impl<W: Write + IsTerminal> Sink<W> {
    fn new(logs: &Logs, out: W, red: bool) -> Self {
        let terminal = out.is_terminal();
        Self {
            terminal,
            out,
            timestamps: logs.timestamps,
            ansi: logs.ansi,
            painted: red && terminal && Color::on(terminal),
            dimmed: terminal && Color::on(terminal),
            fresh: true,
        }
    }

    fn print(&mut self, record: &Value) -> Result<()> {
        let raw = text(record, "text");
        let words = match self.ansi {
            Ansi::Always => raw,
            Ansi::Auto if self.terminal && Color::on(true) => escapes::tamed(&raw),
            Ansi::Auto | Ansi::Never => escapes::stripped(&raw, self.terminal),
        };
        let mut shown = String::with_capacity(words.len() + 40);
        if self.timestamps && self.fresh {
            let stamp = exact(&text(record, "ts"));
            shown.push_str(&if self.dimmed {
                format!("\u{1b}[2m{stamp}\u{1b}[0m ")
            } else {
                format!("{stamp} ")
            });
        }
        let body = words.trim_end_matches('\n');
        if self.painted && !body.is_empty() && !body.contains('\u{1b}') {
            shown.push_str(&format!("\u{1b}[31m{body}\u{1b}[0m"));
        } else {
            shown.push_str(body);
        }
        shown.push_str(&words[body.len()..]);
        self.fresh = words.ends_with('\n');
        self.write(&shown)
    }

    /// Words about the output, on a line of their own.
    fn note(&mut self, words: &str) -> Result<()> {
        let begin = if self.fresh { "" } else { "\n" };
        self.fresh = true;
        self.write(&format!("{begin}[{words}]\n"))
    }

    fn write(&mut self, text: &str) -> Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()?;
        Ok(())
    }
}
