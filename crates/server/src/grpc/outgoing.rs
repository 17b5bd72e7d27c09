//! From the engine's words to the protocol's: the response side of a stream.
//!
//! Takes whatever is queued and puts it into one frame, so that messages batch by themselves. Two sources feed it: the
//! driver, once the stream is open, and the session itself (acknowledged logs, a close). `Close` is always the last
//! message. When the stream is dropped or has ended, the session is told.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use drumtower_core::engine::{Assign, AttemptRef, ToWorker};
use drumtower_core::model::Limits;
use drumtower_proto::worker::v1 as wire;
use tokio::sync::{mpsc, oneshot};

use super::{Sent, task};
use crate::driver::StreamMessage;
use wire::server_message::Body;

/// Messages in one frame at most.
const FRAME_MESSAGES: usize = 512;
/// A frame is sent when it is expected to be this large; the rest of its bound is room for the last message.
const FRAME_FULL_BYTES: usize = Limits::FRAME_BYTES / 2;

/// What the session itself sends.
#[derive(Debug)]
pub enum Own {
    /// The driver knows the stream: its messages follow.
    Opened {
        messages: mpsc::Receiver<StreamMessage>,
        greeting: Greeting,
    },
    LogAck {
        attempt: AttemptRef,
        seq: u64,
    },
    /// Where the servers that have work to give are reached, once that has changed.
    Owners(Vec<String>),
    Close {
        reason: String,
        again: bool,
    },
}

/// The parts of a welcome that the engine does not know.
#[derive(Clone, Debug)]
pub struct Greeting {
    pub protocol: u32,
    pub server: String,
    pub wall_ms: i64,
    /// Where the servers of the cluster are reached.
    pub servers: Vec<String>,
    /// The one of them that this server is; empty for one that is alone.
    pub address: String,
    /// Those of them that have work to give.
    pub owners: Vec<String>,
}

/// Dropped when there is nothing more to send; the session waits for that.
pub type Ended = oneshot::Receiver<()>;

pub struct Outgoing {
    own: mpsc::Receiver<Own>,
    driver: Option<mpsc::Receiver<StreamMessage>>,
    greeting: Option<Greeting>,
    welcomed: bool,
    queued: VecDeque<wire::ServerMessage>,
    taken: Vec<StreamMessage>,
    over: bool,
    alive: Option<oneshot::Sender<()>>,
}

impl Outgoing {
    pub fn new(own: mpsc::Receiver<Own>) -> (Self, Ended) {
        let (alive, ended) = oneshot::channel();
        let outgoing = Self {
            own,
            driver: None,
            greeting: None,
            welcomed: false,
            queued: VecDeque::new(),
            taken: Vec::new(),
            over: false,
            alive: Some(alive),
        };
        (outgoing, ended)
    }

    fn close(&mut self, reason: String, again: bool) {
        self.push(Body::Close(wire::Close { reason, again }));
        self.over = true;
    }

    fn push(&mut self, body: Body) {
        self.queued
            .push_back(wire::ServerMessage { body: Some(body) });
    }

    /// Takes what both sources have, and asks to be woken for more.
    fn gather(&mut self, context: &mut Context<'_>) {
        while !self.over && self.queued.len() < FRAME_MESSAGES {
            match self.own.poll_recv(context) {
                Poll::Ready(Some(own)) => self.take_own(own),
                Poll::Ready(None) => self.close("the session has ended".to_owned(), true),
                Poll::Pending => break,
            }
        }
        while !self.over && self.queued.len() < FRAME_MESSAGES {
            let Some(driver) = self.driver.as_mut() else {
                return;
            };
            let mut taken = std::mem::take(&mut self.taken);
            match driver.poll_recv_many(context, &mut taken, FRAME_MESSAGES) {
                Poll::Ready(0) => self.close("the server is stopping".to_owned(), true),
                Poll::Ready(_) => taken
                    .drain(..)
                    .for_each(|message| self.take_driver(message)),
                Poll::Pending => {
                    self.taken = taken;
                    return;
                }
            }
            self.taken = taken;
        }
    }

    fn take_own(&mut self, own: Own) {
        match own {
            Own::Opened { messages, greeting } => {
                self.driver = Some(messages);
                self.greeting = Some(greeting);
            }
            Own::LogAck { attempt, seq } => {
                self.push(Body::LogAck(wire::LogAck {
                    attempt: Some(attempt_ref(attempt)),
                    seq,
                }));
            }
            Own::Owners(servers) => match &mut self.greeting {
                // It is told by the welcome.
                Some(greeting) if !self.welcomed => greeting.owners = servers,
                _ => self.push(Body::Owners(wire::Owners { servers })),
            },
            Own::Close { reason, again } => self.close(reason, again),
        }
    }

    fn take_driver(&mut self, message: StreamMessage) {
        if self.over {
            return;
        }
        match message {
            StreamMessage::Message(message) => {
                self.welcomed |= matches!(message, ToWorker::Welcome { .. });
                let body = write(message, self.greeting.as_ref());
                self.push(body);
            }
            StreamMessage::Close { reason, again } => self.close(reason, again),
        }
    }

    fn frame(&mut self) -> wire::ServerFrame {
        let (mut messages, mut bytes) =
            (Vec::with_capacity(self.queued.len().min(FRAME_MESSAGES)), 0);
        while messages.len() < FRAME_MESSAGES
            && bytes < FRAME_FULL_BYTES
            && let Some(message) = self.queued.pop_front()
        {
            bytes += expected_bytes(&message);
            messages.push(message);
        }
        wire::ServerFrame { messages }
    }
}

impl tokio_stream::Stream for Outgoing {
    type Item = Sent;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Sent>> {
        let this = self.get_mut();
        this.gather(context);
        if !this.queued.is_empty() {
            return Poll::Ready(Some(Ok(this.frame())));
        }
        if this.over {
            this.alive = None;
            return Poll::Ready(None);
        }
        Poll::Pending
    }
}

fn expected_bytes(message: &wire::ServerMessage) -> usize {
    const SMALL: usize = 64;
    match &message.body {
        Some(Body::Assign(assign)) => {
            let task = assign.task.as_ref().map_or(SMALL, task::expected_bytes);
            4 * SMALL + assign.params.len() + assign.idempotency_key.len() + task
        }
        Some(Body::Renew(renew)) => SMALL * (1 + renew.elsewhere.len()),
        _ => SMALL,
    }
}

/// One message in the protocol's words.
pub fn write(message: ToWorker, greeting: Option<&Greeting>) -> Body {
    match message {
        ToWorker::Welcome {
            lease_ms,
            heartbeat_ms,
        } => Body::Welcome(wire::Welcome {
            protocol: greeting.map_or(0, |greeting| greeting.protocol),
            features: vec![drumtower_proto::CHECKPOINTS.to_owned()],
            server: greeting
                .map(|greeting| greeting.server.clone())
                .unwrap_or_default(),
            lease_ms,
            heartbeat_ms,
            wall_ms: greeting.map_or(0, |greeting| greeting.wall_ms),
            servers: greeting.map_or_else(Vec::new, |greeting| greeting.servers.clone()),
            address: greeting.map_or_else(String::new, |greeting| greeting.address.clone()),
            owners: greeting.map_or_else(Vec::new, |greeting| greeting.owners.clone()),
        }),
        ToWorker::Renew { beat, elsewhere } => Body::Renew(wire::Renew {
            beat,
            elsewhere: elsewhere.into_iter().map(attempt_ref).collect(),
        }),
        ToWorker::Want { weight } => Body::Want(wire::Want { weight }),
        ToWorker::Assign(assign) => Body::Assign(assignment(*assign)),
        ToWorker::Cancel { attempt, reason } => Body::Cancel(wire::Cancel {
            attempt: Some(attempt_ref(attempt)),
            reason: reason.to_owned(),
        }),
        ToWorker::FinishAck { attempt } => Body::FinishAck(wire::FinishAck {
            attempt: Some(attempt_ref(attempt)),
        }),
        ToWorker::CheckpointAck {
            attempt,
            number,
            kept,
        } => Body::CheckpointAck(wire::CheckpointAck {
            attempt: Some(attempt_ref(attempt)),
            number,
            kept,
        }),
        ToWorker::RecallAnswer { id, consumed } => {
            Body::RecallAnswer(wire::RecallAnswer { id, consumed })
        }
    }
}

fn assignment(assign: Assign) -> wire::Assign {
    wire::Assign {
        position: assign.position,
        attempt: Some(attempt_ref(assign.attempt)),
        beat: assign.beat,
        namespace: assign.namespace.as_str().to_owned(),
        job: assign.job.as_str().to_owned(),
        job_version: assign.job_version,
        task: Some(task::write(assign.task)),
        params: assign
            .params
            .map(|params| params.as_str().to_owned())
            .unwrap_or_default(),
        idempotency_key: assign.idempotency_key,
        nominal_wall_ms: assign.nominal.map(|nominal| nominal.0),
        due_wall_ms: assign.due.0,
        timeout_ms: assign.timeout_ms,
        weight: assign.weight,
        checkpoint: assign.checkpoint.map(|mark| wire::CheckpointMark {
            number: mark.number,
            bytes: mark.bytes,
        }),
        progress_timeout_ms: assign.progress_timeout_ms.unwrap_or(0),
    }
}

fn attempt_ref(attempt: AttemptRef) -> wire::AttemptRef {
    wire::AttemptRef {
        run: attempt.run.0,
        attempt: attempt.attempt,
        fence: attempt.fence.0,
    }
}
