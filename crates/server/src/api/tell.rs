//! Telling a run's output to one caller, as it was or as it comes.
//!
//! Following waits for two things without polling: more output, and a change of the run. It ends when the run has ended
//! and everything is sent. An attempt's end comes from the run's row once it has ended, from the logs' own tails before.
//! With a wish for the last lines, the chains are walked back from their ends only as far as it takes.
//! Files are read on blocking threads, a bounded piece at a time, and a piece is read only when the one before is taken.

use std::collections::VecDeque;
use std::io;

use axum::body::Bytes;
use drumtower_core::model::{Attempt, Run, RunId, WallMs};
use tokio::sync::mpsc;

use super::Edge;
use super::log_lines::{Last, Lines, matches};
use super::log_text::Printer;
use super::logs::Wish;
use crate::auth::Principal;
use crate::logs::{Chain, Expired, Place, Record, Source, Stream};

/// How much is read before it is sent.
const PIECE_BYTES: usize = 256 * 1024;

/// How many records more are looked at for the beginning of a line, once there are enough lines.
const RECORDS_FOR_BEGINNING: usize = 64;
/// Earlier attempts are not looked at for more lines once this much was found.
const TAIL_BYTES: usize = 16 << 20;

const DROPPED: &str = "output beyond 10 MiB of an attempt was dropped";
const EXPIRED: &str = "the log of this attempt has expired";
const BEGINNING_EXPIRED: &str = "the beginning of this log has expired";

/// Where the attempt's output ends, and whether some was dropped. An attempt that was lost with its worker has no place
/// in its run's row, but maybe a tail.
pub fn end_of(edge: &Edge, source: Source, attempt: &Attempt) -> Option<(Place, bool)> {
    let stored = attempt.end.as_ref().and_then(|end| end.log);
    let locator = stored.or_else(|| edge.logs.locator(source))?;
    Some((
        Place {
            file: locator.file,
            offset: locator.offset,
        },
        locator.truncated,
    ))
}

/// Nobody listens, or the files cannot be read: telling ends early.
struct Cut;

pub struct Teller {
    edge: Edge,
    /// Who listens: a token that is revoked hears no more.
    principal: Principal,
    run: RunId,
    wish: Wish,
    out: mpsc::Sender<Bytes>,
    /// Attempts up to this number are told in full.
    told: u32,
    /// Whether the last lines were told that the wish is for.
    tailed: bool,
    /// The attempt being told.
    telling: Option<Telling>,
}

/// How far the telling of one attempt has come.
struct Telling {
    source: Source,
    chain: Chain,
    printer: Printer,
    left: VecDeque<Place>,
    wish: Wish,
    /// Puts lines together where they are looked into.
    lines: Lines,
}

impl Teller {
    pub fn new(
        edge: Edge,
        principal: Principal,
        run: RunId,
        wish: Wish,
        out: mpsc::Sender<Bytes>,
    ) -> Self {
        Self {
            edge,
            principal,
            run,
            wish,
            out,
            told: 0,
            tailed: false,
            telling: None,
        }
    }

    pub async fn tell(mut self) {
        // Registered before the first look, so that nothing falls between looking and waiting.
        let mut changes = self.edge.handle.watch_run(self.run);
        let mut output = self.edge.logs.watch(self.run);
        let mut tokens = self.edge.authority.changes();
        loop {
            let id = self.run;
            let Ok(Some(run)) = self.edge.read(move |store| store.run(id)).await else {
                return;
            };
            if self.catch_up(&run).await.is_err() || run.state.is_terminal() || !self.wish.follow {
                return;
            }
            loop {
                tokio::select! {
                    () = changes.changed() => break,
                    () = output.changed() => if self.catch_up(&run).await.is_err() { return },
                    _ = tokens.changed() => if !self.edge.authority.still_knows(&self.principal) { return },
                    () = self.out.closed() => return,
                    () = self.edge.stopped() => return,
                }
            }
        }
    }

    /// Sends what there is and was not sent.
    async fn catch_up(&mut self, run: &Run) -> Result<(), Cut> {
        if let (Some(count), false) = (self.wish.tail, self.tailed) {
            self.tailed = true;
            self.tail(run, count).await?;
        }
        for attempt in &run.attempts {
            if attempt.number <= self.told || !self.wish.wants(attempt) {
                continue;
            }
            let source = Source {
                run: run.id,
                attempt: attempt.number,
            };
            if let Some((end, dropped)) = end_of(&self.edge, source, attempt) {
                let ended = attempt.end.as_ref().map(|end| end.at);
                self.send_up_to(source, end, ended, dropped).await?;
            }
            if attempt.end.is_some() {
                self.told = attempt.number;
            }
        }
        Ok(())
    }

    /// Sends the last lines of what there is, over all attempts; the rest of it counts as told.
    async fn tail(&mut self, run: &Run, count: usize) -> Result<(), Cut> {
        let mut newest_first = Vec::new();
        let mut left = count;
        let mut bytes = 0;
        for attempt in run.attempts.iter().rev().filter(|it| self.wish.wants(it)) {
            let source = Source {
                run: run.id,
                attempt: attempt.number,
            };
            let Some((end, dropped)) = end_of(&self.edge, source, attempt) else {
                continue;
            };
            let ended = attempt.end.as_ref().map(|end| end.at);
            let mut telling = self.telling_of(source);
            let (lent, found) = lend(telling, move |telling| {
                telling.last(end, left, ended.is_some())
            })
            .await?;
            telling = lent;
            for line in &found {
                bytes += line.data.len();
                telling.printer.record(line);
            }
            if let (Some(at), true) = (ended, dropped) {
                telling.printer.note(at.into(), DROPPED);
            }
            left -= found.len().min(left);
            newest_first.push(telling);
            if left == 0 || bytes > TAIL_BYTES {
                break;
            }
        }
        for telling in newest_first.iter_mut().rev() {
            self.send(telling).await?;
        }
        self.telling = newest_first.into_iter().next();
        let ended = run.attempts.iter().filter(|it| it.end.is_some());
        self.told = ended.map(|it| it.number).max().unwrap_or(0);
        Ok(())
    }

    fn telling_of(&self, source: Source) -> Telling {
        Telling {
            source,
            chain: self.edge.logs.chain(source).since(self.wish.since),
            printer: Printer::new(self.wish.form, source.attempt),
            left: VecDeque::new(),
            wish: self.wish.clone(),
            lines: Lines::default(),
        }
    }

    /// Sends the attempt's output up to `end`; once it has ended also that some of it was dropped.
    async fn send_up_to(
        &mut self,
        source: Source,
        end: Place,
        ended: Option<WallMs>,
        dropped: bool,
    ) -> Result<(), Cut> {
        let known = self
            .telling
            .take()
            .filter(|telling| telling.source == source);
        let mut telling = known.unwrap_or_else(|| self.telling_of(source));
        telling = blocking(telling, move |telling| telling.find(end)).await?;
        while !telling.left.is_empty() {
            telling = blocking(telling, Telling::read_piece).await?;
            self.send(&mut telling).await?;
        }
        if let Some(at) = ended {
            telling.finish();
            if dropped {
                telling.printer.note(at.into(), DROPPED);
            }
        }
        self.send(&mut telling).await?;
        self.telling = Some(telling);
        Ok(())
    }

    async fn send(&self, telling: &mut Telling) -> Result<(), Cut> {
        let piece = telling.printer.take();
        if piece.is_empty() {
            Ok(())
        } else {
            self.out.send(piece).await.map_err(|_| Cut)
        }
    }
}

impl Telling {
    /// Lines up what lies between the last call and `end`.
    fn find(&mut self, end: Place) -> io::Result<()> {
        let made = self.source.run.created().into();
        match self.chain.advance(end)? {
            Ok(found) => {
                if found.beginning_expired {
                    self.printer.note(made, BEGINNING_EXPIRED);
                }
                self.left.extend(found.places);
            }
            Err(Expired) => self.printer.note(made, EXPIRED),
        }
        Ok(())
    }

    fn read_piece(&mut self) -> io::Result<()> {
        let mut bytes = 0;
        while bytes < PIECE_BYTES
            && let Some(place) = self.left.pop_front()
        {
            // A record that went with its file since it was found is skipped.
            if let Some(record) = self.chain.load(place)? {
                bytes += record.data.len();
                self.record(&record);
            }
        }
        Ok(())
    }

    fn wants(&self, stream: Stream) -> bool {
        self.wish.stream.is_none_or(|wanted| wanted == stream)
    }

    fn record(&mut self, record: &Record) {
        if !self.wants(record.stream) {
            return;
        }
        let Some(grep) = &self.wish.grep else {
            return self.printer.record(record);
        };
        let printer = &mut self.printer;
        self.lines.add(record, &mut |line| {
            if matches(grep, &line) {
                printer.record(&line);
            }
        });
    }

    /// The attempt has ended: a line that was begun is whole.
    fn finish(&mut self) {
        if let Some(grep) = &self.wish.grep {
            let printer = &mut self.printer;
            self.lines.finish(&mut |line| {
                if matches(grep, &line) {
                    printer.record(&line);
                }
            });
        }
    }

    /// The last lines up to `end`.
    fn last(&mut self, end: Place, count: usize, ended: bool) -> io::Result<Vec<Record>> {
        let mut last = Last::new(count);
        if let Some(grep) = self.wish.grep.clone() {
            self.find(end)?;
            let mut each = |line: Record| {
                if matches(&grep, &line) {
                    last.push(line);
                }
            };
            while let Some(place) = self.left.pop_front() {
                if let Some(record) = self.chain.load(place)?
                    && self.wants(record.stream)
                {
                    self.lines.add(&record, &mut each);
                }
            }
            // Of an attempt that goes on, the beginning of a line waits for its end.
            if ended {
                self.lines.finish(&mut each);
            }
        } else {
            let mut lines = Lines::default();
            for record in self.records_from_end(end, count)?.iter().rev() {
                lines.add(record, &mut |line| last.push(line));
            }
            lines.finish(&mut |line| last.push(line));
        }
        Ok(last.lines.into())
    }

    /// Records, newest first, that hold at least so many lines, and the beginning of each unless it lies far back.
    fn records_from_end(&mut self, end: Place, count: usize) -> io::Result<Vec<Record>> {
        let wanted = self.wish.stream;
        let mut records: Vec<Record> = Vec::new();
        let (mut ends, mut looked, mut bytes) = (0, 0, 0);
        let walked = self.chain.back(end, |record| {
            if wanted.is_none_or(|wanted| wanted == record.stream) {
                ends += record.data.iter().filter(|byte| **byte == b'\n').count();
                bytes += record.data.len();
                records.push(record);
            }
            // One end more than lines: the first of them may be that of a line whose beginning is not there.
            looked += usize::from(ends > count);
            let settled = ends > count && (wanted.is_some() || both_begun(&records));
            !settled && looked < RECORDS_FOR_BEGINNING && bytes < TAIL_BYTES
        })?;
        if walked == Err(Expired) {
            self.printer.note(self.source.run.created().into(), EXPIRED);
        }
        Ok(records)
    }
}

/// Whether each stream that there is has an end of a line before its last, so that no line lacks its beginning.
fn both_begun(newest_first: &[Record]) -> bool {
    [Stream::Stdout, Stream::Stderr].iter().all(|stream| {
        let own = newest_first.iter().filter(|it| it.stream == *stream);
        let ends = own
            .clone()
            .flat_map(|it| &it.data)
            .filter(|it| **it == b'\n');
        own.clone().next().is_none() || ends.take(2).count() == 2
    })
}

/// Lends `telling` to a blocking thread.
async fn blocking(
    telling: Telling,
    work: impl FnOnce(&mut Telling) -> io::Result<()> + Send + 'static,
) -> Result<Telling, Cut> {
    lend(telling, work).await.map(|(telling, ())| telling)
}

/// As [`blocking`], with what came of it.
async fn lend<T: Send + 'static>(
    mut telling: Telling,
    work: impl FnOnce(&mut Telling) -> io::Result<T> + Send + 'static,
) -> Result<(Telling, T), Cut> {
    let lent =
        tokio::task::spawn_blocking(move || work(&mut telling).map(|made| (telling, made))).await;
    match lent {
        Ok(Ok(back)) => Ok(back),
        Ok(Err(error)) => {
            tracing::error!(%error, "a log file cannot be read");
            Err(Cut)
        }
        Err(_) => Err(Cut),
    }
}
