//! One worker's stream, from hello to its end: the incoming half.
//!
//! Frames that have already arrived are taken together and become one message to the driver. Output is written to the
//! logs before the ends in the same frames are passed on, so that an end carries the place of everything before it.
//! Output is taken only for attempts that the store knows to be this worker's: what a token may not run, it may not
//! write about either.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use drumtower_core::engine::{AttemptRef, Hello, StreamId, WorkerEvent};
use drumtower_core::model::{LogLocator, ProcessId, Run, WorkerName};
use drumtower_proto::worker::v1::WorkerFrame;
use futures_util::StreamExt;
use tokio::sync::{mpsc, watch};
use tonic::{Status, Streaming};

use super::greeting;
use super::incoming::{self, Incoming, LogEnd, LogPiece};
use super::outgoing::{Ended, Greeting, Own};
use crate::api::Edge;
use crate::auth::Principal;
use crate::logs::{Chunk, Source, Stream};

const HELLO_WITHIN: Duration = Duration::from_secs(10);
/// Frames taken together at most.
const READY_FRAMES: usize = 32;
/// Attempts of one stream whose output is known to be its own.
const MAX_WRITERS: usize = 16_384;

/// Why the session ends.
enum End {
    /// The stream broke, or its other half has ended.
    Gone,
    Goodbye,
    /// The worker is told why.
    Close {
        reason: String,
        again: bool,
    },
}

pub struct Session {
    edge: Edge,
    principal: Principal,
    out: mpsc::Sender<Own>,
    /// Attempts that may write output here.
    writers: BTreeSet<AttemptRef>,
}

/// The worker at the other end.
struct Peer {
    stream: StreamId,
    worker: WorkerName,
    process: ProcessId,
    /// Tells where owners are, to a worker that keeps a stream to each.
    owners: Option<watch::Receiver<Vec<String>>>,
}

impl Session {
    pub fn new(edge: Edge, principal: Principal, out: mpsc::Sender<Own>) -> Self {
        Self {
            edge,
            principal,
            out,
            writers: BTreeSet::new(),
        }
    }

    pub async fn run(mut self, mut frames: Streaming<WorkerFrame>, mut ended: Ended) {
        let (peer, rest) = match self.greet(&mut frames).await {
            Ok(opened) => opened,
            Err(end) => return self.close(end),
        };
        let (worker, stream) = (peer.worker.as_str().to_owned(), peer.stream.0);
        let namespace = self
            .principal
            .namespace
            .as_ref()
            .map_or("", |name| name.as_str());
        tracing::info!(worker, stream, namespace, actor = %self.principal.actor, "a worker joined");
        let end = self.serve(&peer, rest, frames, &mut ended).await;
        let why = match &end {
            End::Gone => "the connection ended",
            End::Goodbye => "it said goodbye",
            End::Close { reason, .. } => reason,
        };
        tracing::info!(worker, stream, why, "a worker left");
        // The engine has heard of a goodbye as of any other event.
        let goodbye = matches!(end, End::Goodbye);
        self.close(end);
        if !goodbye {
            let _ = self
                .edge
                .handle
                .worker(peer.stream, vec![WorkerEvent::Disconnected])
                .await;
        }
    }

    /// Tells the worker why, before the driver lets go of the stream: that alone would look like the server's end.
    fn close(&self, end: End) {
        let close = match end {
            End::Gone => return,
            End::Goodbye => Own::Close {
                reason: "goodbye".to_owned(),
                again: false,
            },
            End::Close { reason, again } => Own::Close { reason, again },
        };
        // A worker that reads nothing is not told; its stream ends all the same.
        let _ = self.out.try_send(close);
    }

    /// Waits for the hello and opens the stream. Also returns what else was in the first frame.
    async fn greet(&self, frames: &mut Streaming<WorkerFrame>) -> Result<(Peer, WorkerFrame), End> {
        let first = tokio::time::timeout(HELLO_WITHIN, frames.message());
        let mut frame = match first.await {
            Ok(Ok(Some(frame))) => frame,
            Ok(_) => return Err(End::Gone),
            Err(_) => return Err(close("no hello within 10 s", true)),
        };
        if frame.messages.is_empty() {
            return Err(close(
                "the first frame is empty: it must begin with a hello",
                false,
            ));
        }
        let Ok(Incoming::Hello(hello)) = incoming::read(frame.messages.remove(0)) else {
            return Err(close("the first message must be a hello", false));
        };
        let (hello, protocol) =
            greeting::read(hello, self.principal.namespace.clone()).map_err(|reason| {
                End::Close {
                    reason,
                    again: false,
                }
            })?;
        let peer = self
            .open(hello, protocol)
            .await
            .map_err(|error| close(&error.to_string(), true))?;
        Ok((peer, frame))
    }

    async fn open(&self, hello: Hello, protocol: u32) -> Result<Peer, crate::driver::Unavailable> {
        let (stream, messages) = self.edge.handle.open_stream().await?;
        let mut owners = self.edge.cluster.owners_watch();
        let server = self.edge.server.to_string();
        let _ = self.out.try_send(Own::Opened {
            messages,
            greeting: Greeting {
                protocol,
                server,
                wall_ms: wall_ms(),
                servers: self.edge.cluster.addresses(),
                address: self.edge.cluster.own_address().unwrap_or("").to_owned(),
                owners: owners
                    .as_mut()
                    .map_or_else(Vec::new, |owners| owners.borrow_and_update().clone()),
            },
        });
        let owners = owners.filter(|_| hello.links);
        let (worker, process) = (hello.worker.clone(), hello.process);
        self.edge
            .handle
            .worker(stream, vec![WorkerEvent::Connected(hello)])
            .await?;
        Ok(Peer {
            stream,
            worker,
            process,
            owners,
        })
    }

    async fn serve(
        &mut self,
        peer: &Peer,
        rest: WorkerFrame,
        frames: Streaming<WorkerFrame>,
        ended: &mut Ended,
    ) -> End {
        let mut owners = peer.owners.clone();
        let mut tokens = self.edge.authority.changes();
        let mut frames = frames.ready_chunks(READY_FRAMES);
        let mut arrived = vec![Ok(rest)];
        loop {
            if let Err(end) = self.take(peer, arrived).await {
                return end;
            }
            arrived = loop {
                tokio::select! {
                    next = frames.next() => match next {
                        Some(arrived) => break arrived,
                        None => return End::Gone,
                    },
                    _ = &mut *ended => return End::Gone,
                    servers = next_of(&mut owners) => {
                        let _ = self.out.send(Own::Owners(servers)).await;
                    }
                    changed = tokens.changed() => {
                        if changed.is_err() || !self.edge.authority.still_knows(&self.principal) {
                            return close("the token was revoked", false);
                        }
                    }
                }
            };
        }
    }

    /// Takes frames that arrived together.
    async fn take(
        &mut self,
        peer: &Peer,
        arrived: Vec<Result<WorkerFrame, Status>>,
    ) -> Result<(), End> {
        let mut batch = Batch::default();
        let mut last = Ok(());
        for frame in arrived {
            let Ok(frame) = frame else {
                last = Err(End::Gone);
                break;
            };
            if let Err(end) = batch.add(frame) {
                last = Err(end);
                break;
            }
        }
        let goodbye = batch.goodbye;
        if goodbye {
            self.close(End::Goodbye);
        }
        self.deliver(peer, batch).await?;
        if goodbye { Err(End::Goodbye) } else { last }
    }

    async fn deliver(&mut self, peer: &Peer, mut batch: Batch) -> Result<(), End> {
        if !batch.logs.is_empty() {
            // Leases do not wait for a disk: what came before the first end goes ahead of the output.
            let ends = batch
                .events
                .split_off(batch.first_end.unwrap_or(batch.events.len()));
            self.send(peer, std::mem::replace(&mut batch.events, ends))
                .await?;
            self.write_logs(peer, batch.logs).await;
        }
        for event in &mut batch.events {
            if let WorkerEvent::Finished(finished) = event {
                let output = batch.outputs.remove(&finished.attempt);
                let output = output.unwrap_or_default();
                finished.log = self.locator(peer, finished.attempt, output).await;
                self.writers.remove(&finished.attempt);
            }
        }
        self.send(peer, batch.events).await
    }

    async fn send(&self, peer: &Peer, events: Vec<WorkerEvent>) -> Result<(), End> {
        if events.is_empty() {
            return Ok(());
        }
        self.edge
            .handle
            .worker(peer.stream, events)
            .await
            .map_err(|error| close(&error.to_string(), true))
    }

    /// Where the output of an attempt that has ended lies; nothing for a silent one, or one that is not this worker's.
    async fn locator(
        &mut self,
        peer: &Peer,
        attempt: AttemptRef,
        output: LogEnd,
    ) -> Option<LogLocator> {
        let source = Source {
            run: attempt.run,
            attempt: attempt.attempt,
        };
        let mut locator = self.edge.logs.locator(source)?;
        if !self.may_write(peer, attempt).await {
            return None;
        }
        locator.truncated |= output.truncated;
        // Some of it may lie with other servers.
        locator.bytes = locator.bytes.max(output.bytes);
        self.edge.logs.ended(source);
        Some(locator)
    }

    /// Writes chunks and acknowledges them. What is not this worker's to write is acknowledged too: it would come again.
    async fn write_logs(&mut self, peer: &Peer, pieces: Vec<LogPiece>) {
        let mut acks: BTreeMap<AttemptRef, u64> = BTreeMap::new();
        let mut chunks = Vec::with_capacity(pieces.len());
        for LogPiece {
            attempt,
            seq,
            stream,
            wall,
            data,
        } in pieces
        {
            let ack = acks.entry(attempt).or_default();
            *ack = seq.max(*ack);
            if let Some(stream) = Stream::from_number(stream)
                && self.may_write(peer, attempt).await
            {
                let source = Source {
                    run: attempt.run,
                    attempt: attempt.attempt,
                };
                chunks.push(Chunk {
                    source,
                    seq,
                    stream,
                    wall,
                    data: data.into(),
                });
            }
        }
        self.edge.logs.append(chunks).await;
        for (attempt, seq) in acks {
            let _ = self.out.send(Own::LogAck { attempt, seq }).await;
        }
    }

    async fn may_write(&mut self, peer: &Peer, attempt: AttemptRef) -> bool {
        if self.writers.contains(&attempt) {
            return true;
        }
        let reader = self.edge.reader.clone();
        let run = tokio::task::spawn_blocking(move || reader.run(attempt.run)).await;
        let Ok(Ok(Some(run))) = run else { return false };
        let own = self.principal.sees(&run.namespace) && is_held(&run, attempt, peer);
        if own && self.writers.len() < MAX_WRITERS {
            self.writers.insert(attempt);
        }
        own
    }
}

/// Whether the run's live attempt is this one, on this very process.
fn is_held(run: &Run, attempt: AttemptRef, peer: &Peer) -> bool {
    run.current_attempt().is_some_and(|current| {
        (current.number, current.fence) == (attempt.attempt, attempt.fence)
            && (&current.worker, current.process) == (&peer.worker, peer.process)
    })
}

/// What frames that arrived together hold. The order of events is kept.
#[derive(Default)]
struct Batch {
    events: Vec<WorkerEvent>,
    /// The place of the first end of an attempt among the events.
    first_end: Option<usize>,
    /// What the worker says of the output of attempts that have ended.
    outputs: BTreeMap<AttemptRef, LogEnd>,
    logs: Vec<LogPiece>,
    goodbye: bool,
}

impl Batch {
    fn add(&mut self, frame: WorkerFrame) -> Result<(), End> {
        for message in frame.messages {
            if self.goodbye {
                return Ok(());
            }
            match incoming::read(message)
                .map_err(|violation| close(&violation.to_string(), false))?
            {
                Incoming::Hello(_) => return Err(close("a second hello on one stream", false)),
                Incoming::Event(event) => {
                    self.goodbye = matches!(event, WorkerEvent::Goodbye);
                    self.events.push(event);
                }
                Incoming::Finished(finished, output) => {
                    self.outputs.insert(finished.attempt, output);
                    self.first_end.get_or_insert(self.events.len());
                    self.events.push(WorkerEvent::Finished(finished));
                }
                Incoming::Log(piece) => self.logs.push(piece),
                Incoming::Unknown => {}
            }
        }
        Ok(())
    }
}

/// The next list of owners; never for a worker that is told none.
async fn next_of(owners: &mut Option<watch::Receiver<Vec<String>>>) -> Vec<String> {
    if let Some(owners) = owners
        && owners.changed().await.is_ok()
    {
        return owners.borrow_and_update().clone();
    }
    std::future::pending().await
}

fn close(reason: &str, again: bool) -> End {
    End::Close {
        reason: reason.to_owned(),
        again,
    }
}

fn wall_ms() -> i64 {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
