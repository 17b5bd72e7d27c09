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
//! nothing is counted but what has the very time of the last that was printed. While nothing was printed there is nothing to know
//! it by, and a caller that wishes for the last lines only has to say so again ([`Reach`]).

use std::collections::{BTreeMap, BTreeSet};
use std::thread::sleep;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::Value;

use crate::client::{Call, Client};
use crate::failure::{Exit, Result};
use crate::output::text;

/// A run that nobody tells of is waited for this long.
const RETURN: Duration = Duration::from_secs(60);
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// What has come of the output when it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    First,
    /// It was asked for before, and none of it was printed.
    Again,
    /// Some was printed.
    On,
}

/// How far back the output is wished for.
pub struct Reach {
    /// Only so many lines from the end of what there is.
    pub tail: Option<u32>,
    pub since: Option<Timestamp>,
    /// When it was first asked for.
    pub asked: Timestamp,
}

impl Reach {
    /// What to ask for as `tail` and `since`.
    pub fn at(&self, asking: Asking) -> (Option<u32>, Option<Timestamp>) {
        match (asking, self.tail) {
            // All of it is needed, to find what was printed in it.
            (Asking::On, _) => (None, self.since),
            // The last none of what there is by now would leave out what was written meanwhile. Which that is, is told by two
            // clocks: this machine's, and the worker's for what it writes.
            (Asking::Again, Some(0)) => (None, self.since.max(Some(self.asked))),
            (Asking::First | Asking::Again, tail) => (tail, self.since),
        }
    }
}

/// Prints the output that `call` asks for until the run has ended.
pub fn follow(
    client: &Client,
    call: impl Fn(Asking) -> Call,
    mut print: impl FnMut(&Value) -> Result<()>,
) -> Result<()> {
    let mut printed = Printed::default();
    let (mut answered, mut pause, mut asking) = (Instant::now(), SHORTEST_PAUSE, Asking::First);
    loop {
        let mut telling = printed.tell();
        let asked = client.lines(call(asking));
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
            (answered, asking) = (Instant::now(), printed.asking());
        }
        match ended {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            // Whoever was never answered has named a wrong server.
            Err(failure) if asking == Asking::First || failure.exit != Exit::Unavailable => {
                return Err(failure);
            }
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

    /// How to ask next. Notes say nothing of how far the output was printed.
    fn asking(&self) -> Asking {
        match self.last.is_empty() {
            true => Asking::Again,
            false => Asking::On,
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
    use std::cell::RefCell;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    use drumtower_sdk::tls::Trust;
    use serde_json::json;

    use super::*;
    use crate::connect::Target;

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

    /// A server that answers one call after another with these records; after those that are not `whole` it breaks off.
    fn telling(answers: Vec<(Vec<Value>, bool)>) -> Client {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        std::thread::spawn(move || {
            for (records, whole) in answers {
                let (stream, _) = listener.accept().expect("a call");
                let lines = BufReader::new(&stream).lines();
                // The request has no body.
                let is_read = lines
                    .map(|line| line.expect("a line"))
                    .any(|line| line.is_empty());
                assert!(is_read);
                let lines = records.iter().map(|record| format!("{record}\n"));
                let body: String = lines.collect();
                let promised = body.len() + usize::from(!whole);
                write!(
                    &stream,
                    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {promised}\r\n\r\n{body}"
                )
                .expect("it is written");
            }
        });
        Client::to(Target {
            url,
            token: None,
            trust: Trust::default(),
        })
    }

    #[test]
    fn who_asks_again_says_whether_anything_was_printed() {
        let again = json!({"stream": "note", "text": "ask again", "again": true});
        let note = record(1, "note", 0, "some of it is away\n");
        let (one, two) = (
            record(1, "stdout", 1, "one\n"),
            record(1, "stdout", 2, "two\n"),
        );
        let client = telling(vec![
            // It breaks after its head.
            (vec![], false),
            (vec![note.clone(), again], true),
            (vec![note, one.clone()], false),
            (vec![one, two], true),
        ]);
        let (asked, mut shown) = (RefCell::new(Vec::new()), Vec::new());
        let call = |asking| {
            asked.borrow_mut().push(asking);
            Call::get("/")
        };
        let followed = follow(&client, call, |record| {
            shown.push(text(record, "text"));
            Ok(())
        });
        assert!(followed.is_ok());
        assert_eq!(shown, ["some of it is away\n", "one\n", "two\n"]);
        use Asking::{Again, First, On};
        assert_eq!(asked.into_inner(), [First, Again, Again, On]);
    }

    #[test]
    fn the_last_lines_are_wished_for_until_some_are_printed() {
        let at = |second| Timestamp::from_second(second).expect("an instant");
        let asked = |tail, since: Option<i64>, asking| {
            let reach = Reach {
                tail,
                since: since.map(at),
                asked: at(100),
            };
            let (tail, since) = reach.at(asking);
            (tail, since.map(Timestamp::as_second))
        };
        for since in [None, Some(50), Some(150)] {
            for tail in [None, Some(0), Some(20)] {
                assert_eq!(asked(tail, since, Asking::First), (tail, since));
                assert_eq!(asked(tail, since, Asking::On), (None, since));
            }
            for tail in [None, Some(20)] {
                assert_eq!(asked(tail, since, Asking::Again), (tail, since));
            }
        }
        // The last none of what there is once more would leave out what was written in between.
        assert_eq!(asked(Some(0), None, Asking::Again), (None, Some(100)));
        assert_eq!(asked(Some(0), Some(50), Asking::Again), (None, Some(100)));
        assert_eq!(asked(Some(0), Some(150), Asking::Again), (None, Some(150)));
    }
}
