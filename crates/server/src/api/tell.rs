//! Telling a run's output to one caller, as it was or as it comes.
//!
//! Following waits for two things without polling: more output, and a change of the run. It ends when the run has ended
//! and everything is sent. An attempt's end comes from the run's row once it has ended, from the logs' own tails before.
//! Files are read on blocking threads, a bounded piece at a time, and a piece is read only when the one before is taken.

use std::collections::VecDeque;
use std::io;

use axum::body::Bytes;
use drumtower_core::model::{Attempt, Run, RunId, WallMs};
use tokio::sync::mpsc;

use super::Edge;
use super::log_text::Printer;
use super::logs::Wish;
use crate::auth::Principal;
use crate::logs::{Chain, Expired, Place, Source, Stream};

/// How much is read before it is sent.
const PIECE_BYTES: usize = 256 * 1024;

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
    /// The attempt being told.
    telling: Option<Telling>,
}

/// How far the telling of one attempt has come.
struct Telling {
    source: Source,
    chain: Chain,
    printer: Printer,
    left: VecDeque<Place>,
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
                self.send_up_to(source, end, ended.filter(|_| dropped))
                    .await?;
            }
            if attempt.end.is_some() {
                self.told = attempt.number;
            }
        }
        Ok(())
    }

    /// Sends the attempt's output up to `end`, then the note that some of it was dropped by `dropped`.
    async fn send_up_to(
        &mut self,
        source: Source,
        end: Place,
        dropped: Option<WallMs>,
    ) -> Result<(), Cut> {
        let known = self
            .telling
            .take()
            .filter(|telling| telling.source == source);
        let mut telling = known.unwrap_or_else(|| Telling {
            source,
            chain: self.edge.logs.chain(source),
            printer: Printer::new(self.wish.form, source.attempt),
            left: VecDeque::new(),
        });
        telling = blocking(telling, move |telling| telling.find(end)).await?;
        let stream = self.wish.stream;
        while !telling.left.is_empty() {
            telling = blocking(telling, move |telling| telling.read_piece(stream)).await?;
            self.send(&mut telling).await?;
        }
        if let Some(at) = dropped {
            telling.printer.note(at.into(), DROPPED);
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

    fn read_piece(&mut self, stream: Option<Stream>) -> io::Result<()> {
        let mut bytes = 0;
        while bytes < PIECE_BYTES
            && let Some(place) = self.left.pop_front()
        {
            // A record that went with its file since it was found is skipped.
            if let Some(record) = self.chain.load(place)? {
                bytes += record.data.len();
                if stream.is_none_or(|stream| stream == record.stream) {
                    self.printer.record(&record);
                }
            }
        }
        Ok(())
    }
}

/// Lends `telling` to a blocking thread.
async fn blocking(
    mut telling: Telling,
    work: impl FnOnce(&mut Telling) -> io::Result<()> + Send + 'static,
) -> Result<Telling, Cut> {
    let lent = tokio::task::spawn_blocking(move || work(&mut telling).map(|()| telling)).await;
    match lent {
        Ok(Ok(telling)) => Ok(telling),
        Ok(Err(error)) => {
            tracing::error!(%error, "a log file cannot be read");
            Err(Cut)
        }
        Err(_) => Err(Cut),
    }
}
