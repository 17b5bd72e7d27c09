//! Output that is followed on when the server that tells it ends or hands the run over.
//!
//! ```text
//! asking ──answered──► telling ──the server says that it is to be asked again, or the stream breaks──► asking
//!    ▲ not reached, for a minute │
//!    └───────────────────────────┴──ends without that──► the run has ended
//! ```
//!
//! Whoever is asked again tells everything from the beginning. What was printed is known by when it was written: the times of
//! one attempt are of one worker's clock. Some of it may be missing the second time, because it lies with a server that is away, so
//! nothing is counted but what has the very time of the last that was printed.

use std::collections::{BTreeMap, BTreeSet};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::client::{Call, Client};
use crate::failure::{Exit, Result};
use crate::output::text;

/// A run that nobody tells of is waited for this long.
const RETURN: Duration = Duration::from_secs(60);
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Prints the output that `call` asks for until the run has ended. The call is told whether it is the first.
pub fn follow(
    client: &Client,
    call: impl Fn(bool) -> Call,
    mut print: impl FnMut(&Value) -> Result<()>,
) -> Result<()> {
    let mut printed = Printed::default();
    let (mut answered, mut pause, mut is_first) = (Instant::now(), SHORTEST_PAUSE, true);
    loop {
        let mut telling = printed.tell();
        let asked = client.lines(call(is_first));
        let is_answered = asked.is_ok();
        let ended = asked.and_then(|records| {
            for record in records {
                let record = record?;
                if is_to_be_asked_again(&record) {
                    return Ok(false);
                }
                if let Some(record) = telling.unprinted(record) {
                    print(&record)?;
                    pause = SHORTEST_PAUSE;
                }
            }
            Ok(true)
        });
        printed = telling.printed;
        if is_answered {
            (answered, is_first) = (Instant::now(), false);
        }
        match ended {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            // Whoever was never answered has named a wrong server.
            Err(failure) if is_first || failure.exit != Exit::Unavailable => return Err(failure),
            Err(failure) if answered.elapsed() > RETURN => return Err(failure),
            Err(_) => {}
        }
        sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// The server says so of a run that has not ended and that it tells no more of.
fn is_to_be_asked_again(record: &Value) -> bool {
    record.get("again").and_then(Value::as_bool) == Some(true)
}

/// How far the printing has come.
#[derive(Clone, Default)]
struct Printed {
    /// The attempt that the last output was of. Those before it are over.
    attempt: u64,
    /// When the first that was printed of it was written.
    begun: String,
    /// By stream: when the last that was printed was written, and how many bytes of that very time were printed.
    last: BTreeMap<String, (String, usize)>,
    notes: BTreeSet<(u64, String)>,
}

/// What is told once more from the beginning.
struct Telling {
    before: Printed,
    printed: Printed,
}

impl Printed {
    fn tell(self) -> Telling {
        Telling {
            before: self.clone(),
            printed: self,
        }
    }

    fn add(&mut self, attempt: u64, stream: &str, written: &str, bytes: usize) {
        if attempt != self.attempt {
            self.attempt = attempt;
            self.begun = written.to_owned();
            self.last.clear();
        }
        let last = self.last.entry(stream.to_owned()).or_default();
        if last.0 != written {
            *last = (written.to_owned(), 0);
        }
        last.1 += bytes;
    }
}

impl Telling {
    /// What of a record was not printed before. Times have one width, so that their texts are in their order.
    fn unprinted(&mut self, mut record: Value) -> Option<Value> {
        let attempt = record.get("attempt").and_then(Value::as_u64).unwrap_or(0);
        let (stream, written) = (text(&record, "stream"), text(&record, "ts"));
        let words = text(&record, "text");
        if stream == "note" {
            return self
                .printed
                .notes
                .insert((attempt, words))
                .then_some(record);
        }
        let skipped = self.skipped(attempt, &stream, &written, words.len())?;
        self.printed
            .add(attempt, &stream, &written, words.len() - skipped);
        if skipped > 0 {
            let rest = words.get(skipped..).unwrap_or(&words);
            record["text"] = Value::from(rest);
        }
        Some(record)
    }

    /// How many bytes at the beginning of a record were printed; `None` for all of them.
    fn skipped(
        &mut self,
        attempt: u64,
        stream: &str,
        written: &str,
        bytes: usize,
    ) -> Option<usize> {
        if attempt != self.before.attempt {
            return (attempt > self.before.attempt).then_some(0);
        }
        let Some((last, left)) = self.before.last.get_mut(stream) else {
            return (written >= self.before.begun.as_str()).then_some(0);
        };
        if written < last.as_str() {
            return None;
        }
        let skipped = match written == last.as_str() {
            true => (*left).min(bytes),
            false => 0,
        };
        *left -= skipped;
        if written > last.as_str() {
            // From here on nothing was printed, whatever the worker's clock says.
            self.before.last.remove(stream);
            self.before.begun.clear();
        }
        (skipped < bytes || bytes == 0).then_some(skipped)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(attempt: u64, stream: &str, ms: u32, text: &str) -> Value {
        let ts = format!("2026-11-19T04:00:00.{ms:03}Z");
        json!({"ts": ts, "stream": stream, "attempt": attempt, "text": text})
    }

    /// What is printed of each telling.
    fn printed(tellings: &[&[Value]]) -> Vec<Vec<String>> {
        let mut printed = Printed::default();
        let told = tellings.iter().map(|records| {
            let mut telling = std::mem::take(&mut printed).tell();
            let records = records.iter().cloned();
            let new = records.filter_map(|record| telling.unprinted(record));
            let new: Vec<String> = new.map(|record| text(&record, "text")).collect();
            printed = telling.printed;
            new
        });
        told.collect()
    }

    #[test]
    fn what_is_told_again_is_printed_once() {
        let all = [
            record(1, "stdout", 1, "a\n"),
            record(1, "stderr", 2, "b\n"),
            record(1, "stdout", 3, "same\n"),
            record(1, "stdout", 3, "same\n"),
            record(1, "stdout", 3, "same\n"),
            record(1, "stderr", 4, "c\n"),
            record(2, "stdout", 2, "d\n"),
        ];
        for cut in 0..=all.len() {
            let told = printed(&[&all[..cut], &all[..cut], &all]);
            assert_eq!(told[1], Vec::<String>::new(), "cut at {cut}");
            assert_eq!(told.concat().len(), all.len(), "cut at {cut}");
        }
    }

    #[test]
    fn what_is_away_the_second_time_is_not_waited_for() {
        let all = [
            record(1, "stdout", 1, "a\n"),
            record(1, "stdout", 2, "b\n"),
            record(1, "stdout", 3, "c\n"),
        ];
        let note = record(1, "note", 0, "some of it is away\n");
        let told = printed(&[&all[..2], &[note.clone(), all[2].clone()], &[note]]);
        assert_eq!(
            told[1..],
            [
                vec!["some of it is away\n".to_owned(), "c\n".to_owned()],
                vec![]
            ]
        );
    }

    #[test]
    fn a_line_that_was_begun_goes_on_where_it_was() {
        let begun = record(1, "stdout", 1, "one ");
        let whole = record(1, "stdout", 1, "one two\n");
        let back = record(1, "stdout", 0, "the clock was set back\n");
        let whole = std::slice::from_ref(&whole);
        let told = printed(&[&[begun], whole, whole]);
        assert_eq!(told, [vec!["one "], vec!["two\n"], vec![]]);
        let later = record(1, "stdout", 5, "later\n");
        let again = [later.clone(), record(1, "stdout", 6, "x"), back];
        let told = printed(&[std::slice::from_ref(&later), &again]);
        assert_eq!(told[1], ["x", "the clock was set back\n"]);
    }
}
