//! Telling a run's output to one caller, as it was or as it comes.
//!
//! Following waits for two things without polling: more output, and a change of the run. It ends when the run has ended
//! and everything is sent. An attempt's end comes from the run's row once it has ended, from the logs' own tails before.
//! With a wish for the last lines, the chains are walked back from their ends only as far as it takes.
//! Files are read on blocking threads, a bounded piece at a time, and a piece is read only when the one before is taken.
//! What other servers have of an attempt is fetched whole before the first of it is told ([`parts`](super::parts)): they write
//! no more of it, so what comes later comes here.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;

use axum::body::Bytes;
use drumtower_core::model::{Attempt, Run, RunId};
use tokio::sync::mpsc;

use super::log_lines::{Last, Lines, matches};
use super::log_text::Printer;
use super::logs::Wish;
use super::parts::{self, Holder, Parts, end_here};
use super::{Edge, time};
use crate::auth::Principal;
use crate::logs::{Chain, Expired, Part, Place, Record, Source, Stream};

/// How much is read before it is sent.
const PIECE_BYTES: usize = 256 * 1024;

/// How many records more are looked at for the beginning of a line, once there are enough lines.
const RECORDS_FOR_BEGINNING: usize = 64;
/// Earlier attempts are not looked at for more lines once this much was found.
const TAIL_BYTES: usize = 16 << 20;

const DROPPED: &str = "output beyond 10 MiB of an attempt was dropped";
const EXPIRED: &str = "the log of this attempt has expired";
const BEGINNING_EXPIRED: &str = "the beginning of this log has expired";
const MOVED: &str = "the run has come to another server: follow its output again";
const STOPS: &str = "this server ends: follow the output again";
const PART_EXPIRED: &str = "a part of this log has expired";

/// Nobody listens, or the files cannot be read: telling ends early.
struct Cut;

pub struct Teller {
    edge: Edge,
    /// Who listens: a token that is revoked hears no more.
    principal: Principal,
    run: RunId,
    wish: Wish,
    /// Where the output may lie, if not only here.
    parts: Option<Parts>,
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
    /// What was found and is not in order yet, by number.
    found: BTreeMap<u64, Piece>,
    left: VecDeque<Piece>,
    /// The numbers of those that were put in order.
    told: BTreeSet<u64>,
    /// How much all that was found holds.
    bytes: u64,
    wish: Wish,
    /// Puts lines together where they are looked into.
    lines: Lines,
}

/// A record to tell.
enum Piece {
    Here(Place),
    /// From another server.
    Fetched(Record),
}

impl Teller {
    pub fn new(
        edge: Edge,
        principal: Principal,
        run: RunId,
        wish: Wish,
        parts: Option<Parts>,
        out: mpsc::Sender<Bytes>,
    ) -> Self {
        Self {
            edge,
            principal,
            run,
            wish,
            parts,
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
                    () = self.edge.stopped() => return self.ask_again(&run, STOPS).await,
                    // What comes next is written elsewhere: whoever follows asks again, and is sent there.
                    () = self.edge.cluster.moves_away(self.run.segment()) => {
                        let _ = self.catch_up(&run).await;
                        return self.ask_again(&run, MOVED).await;
                    }
                }
            }
        }
    }

    /// The last word to whoever follows a run that is told of elsewhere, or later: it is not over.
    async fn ask_again(&mut self, run: &Run, words: &str) {
        let telling = self.telling.take();
        let mut telling = telling.unwrap_or_else(|| {
            self.telling_of(Source {
                run: run.id,
                attempt: run.attempts.last().map_or(0, |attempt| attempt.number),
            })
        });
        telling.printer.ask_again(time::now().into(), words);
        let _ = self.send(&mut telling).await;
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
            let end = end_here(&self.edge, source, attempt);
            let holders = self.holders(attempt);
            if end.is_some() || !holders.is_empty() {
                self.send_up_to(source, attempt, end, &holders).await?;
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
            let end = end_here(&self.edge, source, attempt);
            let holders = self.holders(attempt);
            if end.is_none() && holders.is_empty() {
                continue;
            }
            let dropped = end.is_some_and(|(_, dropped)| dropped);
            let end = end.map(|(end, _)| end);
            let ended = attempt.end.as_ref().map(|end| end.at);
            let mut telling = self.telling_of(source);
            if !holders.is_empty() {
                telling = self.gather(telling, attempt, end, &holders).await?;
            }
            let walk_back = end.filter(|_| holders.is_empty());
            let (lent, found) = lend(telling, move |telling| {
                telling.last(walk_back, left, ended.is_some())
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
            found: BTreeMap::new(),
            left: VecDeque::new(),
            told: BTreeSet::new(),
            bytes: 0,
            wish: self.wish.clone(),
            lines: Lines::default(),
        }
    }

    fn holders(&self, attempt: &Attempt) -> Vec<Holder> {
        let parts = self.parts.as_ref();
        parts.map_or(Vec::new(), |parts| parts.holders(&self.edge, attempt))
    }

    /// Finds what there is of an attempt here and, unless that is all of it, with others.
    async fn gather(
        &self,
        telling: Telling,
        attempt: &Attempt,
        end: Option<Place>,
        holders: &[Holder],
    ) -> Result<Telling, Cut> {
        let mut telling = telling;
        if let Some(end) = end {
            telling = blocking(telling, move |telling| telling.find(end)).await?;
        }
        let is_whole = telling.is_whole(attempt);
        if !is_whole || !parts::ended_here(&self.edge, attempt) {
            // While it runs, what lies here may be all there is: nothing is said of those who are only not there.
            let may_be_all = is_whole && attempt.end.is_none();
            let asked = holders.iter().filter(|it| !may_be_all || it.is_there());
            self.fetch(&mut telling, asked).await;
        }
        Ok(telling)
    }

    /// Adds what others have.
    async fn fetch(&self, telling: &mut Telling, holders: impl Iterator<Item = &Holder>) {
        let Some(parts) = &self.parts else {
            return;
        };
        for holder in holders {
            match parts.fetch(&self.edge, holder, telling.source).await {
                Ok(part) => telling.add(part),
                Err(words) => {
                    let made = telling.source.run.created();
                    telling.printer.note(made.into(), &words);
                }
            }
        }
    }

    /// Sends the attempt's output up to `end`; once it has ended also that some of it was dropped.
    async fn send_up_to(
        &mut self,
        source: Source,
        attempt: &Attempt,
        end: Option<(Place, bool)>,
        holders: &[Holder],
    ) -> Result<(), Cut> {
        let dropped = end.is_some_and(|(_, dropped)| dropped);
        let end = end.map(|(end, _)| end);
        let known = self
            .telling
            .take()
            .filter(|telling| telling.source == source);
        let mut telling = match known {
            None => {
                let telling = self.telling_of(source);
                self.gather(telling, attempt, end, holders).await?
            }
            // Whoever else has some of it was asked before, but the end may have gone to who had the run until then.
            Some(telling) => {
                let mut telling = match end {
                    Some(end) => blocking(telling, move |telling| telling.find(end)).await?,
                    None => telling,
                };
                if telling.lacks_some(attempt) {
                    self.fetch(&mut telling, holders.iter()).await;
                }
                telling
            }
        };
        telling.line_up();
        while !telling.left.is_empty() {
            telling = blocking(telling, Telling::read_piece).await?;
            self.send(&mut telling).await?;
        }
        if let Some(at) = attempt.end.as_ref().map(|end| end.at) {
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
    /// Whether what was found is everything from the beginning on, to the end if there is one.
    fn is_whole(&self, attempt: &Attempt) -> bool {
        let numbers = self.found.keys().copied();
        let begins = !self.found.is_empty() && numbers.eq(1..=self.found.len() as u64);
        begins && !self.lacks_some(attempt)
    }

    /// Whether it has ended and more was written than has been found.
    fn lacks_some(&self, attempt: &Attempt) -> bool {
        let log = attempt.end.as_ref().and_then(|end| end.log);
        log.is_some_and(|log| self.bytes < log.bytes)
    }

    /// Takes what another server has.
    fn add(&mut self, part: Part) {
        if part.expired {
            let made = self.source.run.created();
            self.printer.note(made.into(), PART_EXPIRED);
        }
        let since = self.wish.since;
        let wanted = part.records.into_iter();
        for it in wanted.filter(|it| since.is_none_or(|since| it.record.wall >= since)) {
            if !self.told.contains(&it.seq) && !self.found.contains_key(&it.seq) {
                self.bytes += it.record.data.len() as u64;
                self.found.insert(it.seq, Piece::Fetched(it.record));
            }
        }
    }

    /// Puts what was found in order, to be told next.
    fn line_up(&mut self) {
        self.told.extend(self.found.keys());
        self.left
            .extend(std::mem::take(&mut self.found).into_values());
    }

    /// Finds what lies here between the last call and `end`.
    fn find(&mut self, end: Place) -> io::Result<()> {
        let made = self.source.run.created().into();
        match self.chain.advance(end)? {
            Ok(found) => {
                if found.beginning_expired {
                    self.printer.note(made, BEGINNING_EXPIRED);
                }
                self.bytes += found.bytes;
                let places = found.places.into_iter();
                self.found
                    .extend(places.map(|(seq, place)| (seq, Piece::Here(place))));
            }
            Err(Expired) => self.printer.note(made, EXPIRED),
        }
        Ok(())
    }

    fn read_piece(&mut self) -> io::Result<()> {
        let mut bytes = 0;
        while bytes < PIECE_BYTES
            && let Some(piece) = self.left.pop_front()
        {
            if let Some(record) = self.load(piece)? {
                bytes += record.data.len();
                self.record(&record);
            }
        }
        Ok(())
    }

    /// A record that went with its file since it was found is skipped.
    fn load(&mut self, piece: Piece) -> io::Result<Option<Record>> {
        match piece {
            Piece::Here(place) => self.chain.load(place),
            Piece::Fetched(record) => Ok(Some(record)),
        }
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

    /// The last lines up to `end`, or of what was found when there is none.
    fn last(&mut self, end: Option<Place>, count: usize, ended: bool) -> io::Result<Vec<Record>> {
        let mut last = Last::new(count);
        match end {
            Some(end) if self.wish.grep.is_none() => {
                let mut lines = Lines::default();
                for record in self.records_from_end(end, count)?.iter().rev() {
                    lines.add(record, &mut |line| last.push(line));
                }
                lines.finish(&mut |line| last.push(line));
            }
            end => {
                if let Some(end) = end {
                    self.find(end)?;
                }
                self.line_up();
                self.last_of_found(&mut last, ended)?;
            }
        }
        Ok(last.lines.into())
    }

    /// Goes through all that was found, forwards.
    fn last_of_found(&mut self, last: &mut Last, ended: bool) -> io::Result<()> {
        let grep = self.wish.grep.clone();
        let mut each = |line: Record| {
            if grep.as_ref().is_none_or(|grep| matches(grep, &line)) {
                last.push(line);
            }
        };
        while let Some(piece) = self.left.pop_front() {
            if let Some(record) = self.load(piece)?
                && self.wants(record.stream)
            {
                self.lines.add(&record, &mut each);
            }
        }
        // Where lines are looked into, the beginning of one of an attempt that goes on waits for its end.
        if ended || grep.is_none() {
            self.lines.finish(&mut each);
        }
        Ok(())
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
