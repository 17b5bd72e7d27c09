//! The one connection to a server: waiting, dialling, or open.
//!
//! ```text
//! Waiting ──time──► Dialling ──connected──► Open (frames go out at once, the answer may follow later)
//!    ▲                  │                     │
//!    └──────────────────┴──failed, lost───────┘
//! ```
//!
//! Servers are tried in turn, until it is halted. It carries frames and knows nothing of what they say.

use std::pin::Pin;
use std::time::Duration;

use drumtower_core::model::Limits;
use drumtower_proto::worker::v1 as wire;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};
use wire::worker_service_client::WorkerServiceClient;

use super::backoff::Backoff;
use super::dial::{Complaint, Server};
use super::fetch::Source;
use crate::Error;
use crate::tls::{Trust, in_the_open};

/// Frames that were handed to the transport and not yet taken by it. Small: what waits in the session batches better.
const FRAMES_WAITING: usize = 2;
/// Servers that are dialled in turn.
const SERVERS: usize = 64;
/// A server that does not say anything for this long is not there.
const ANSWER_WAIT: Duration = Duration::from_secs(10);

type Answer = Pin<Box<dyn Future<Output = Result<Streaming<wire::ServerFrame>, Status>> + Send>>;
type Dial = Pin<Box<dyn Future<Output = Result<Channel, tonic::transport::Error>> + Send>>;

pub(super) struct Link {
    servers: Vec<Server>,
    next_server: usize,
    token: Option<MetadataValue<Ascii>>,
    /// How servers are believed that others tell of.
    trust: Trust,
    /// Of the server that was dialled last.
    complaint: Complaint,
    /// Where that is.
    dialled: String,
    backoff: Backoff,
    /// The connection that is open, or was last.
    channel: watch::Sender<Option<Channel>>,
    state: State,
}

enum State {
    Waiting(Instant),
    Dialling(Dial),
    Open(Open),
    /// Nobody wants it open.
    Halted,
}

struct Open {
    frames: mpsc::Sender<wire::WorkerFrame>,
    inbound: Inbound,
    /// When it counts as dead if the server has said nothing; `None` once it has.
    silent_until: Option<Instant>,
}

enum Inbound {
    Awaited(Answer),
    Here(Box<Streaming<wire::ServerFrame>>),
}

/// What happened on the link.
pub(super) enum Happened {
    Opened,
    Frame(wire::ServerFrame),
    /// There is room for another frame.
    Room,
    Lost(String),
    /// Dialling again is of no use.
    Refused(Error),
}

impl Link {
    pub(super) fn new(
        servers: Vec<Server>,
        token: Option<MetadataValue<Ascii>>,
        trust: Trust,
        seed: u64,
    ) -> Self {
        let state = State::Waiting(Instant::now());
        Self {
            servers,
            next_server: 0,
            token,
            trust,
            complaint: Complaint::default(),
            dialled: String::new(),
            backoff: Backoff::new(seed),
            channel: watch::channel(None).0,
            state,
        }
    }

    /// Waits for the next thing to happen; `blocked` says that a frame waits for room. Cancel-safe.
    pub(super) async fn next(&mut self, blocked: bool) -> Happened {
        loop {
            match &mut self.state {
                State::Waiting(until) => {
                    sleep_until(*until).await;
                    self.state = State::Dialling(self.dial());
                }
                State::Dialling(dial) => match dial.await {
                    Ok(channel) => {
                        self.state = State::Open(self.open(channel));
                        return Happened::Opened;
                    }
                    Err(error) => return Happened::Lost(with_causes(&error)),
                },
                State::Open(open) => {
                    return match open.next(blocked).await {
                        Happened::Lost(reason) => {
                            Happened::Lost(self.complaint.take().unwrap_or(reason))
                        }
                        happened => happened,
                    };
                }
                State::Halted => std::future::pending().await,
            }
        }
    }

    /// Host and port of the server that was dialled last.
    pub(super) fn server(&self) -> &str {
        &self.dialled
    }

    /// Dials these too from now on. An address that the token may not go to is left out.
    pub(super) fn learn(&mut self, urls: &[String]) {
        for url in urls {
            let fits = self.token.is_none() || self.trust.in_the_open || !in_the_open(url);
            if fits
                && self.servers.len() < SERVERS
                && let Ok(server) = Server::new(url, &self.trust)
                && !self.servers.iter().any(|it| it.place() == server.place())
            {
                tracing::info!(server = %server.place(), "learned of another server");
                self.servers.push(server);
            }
        }
    }

    fn dial(&mut self) -> Dial {
        let server = self.servers[self.next_server % self.servers.len()].clone();
        self.next_server += 1;
        self.dialled = server.place();
        self.complaint = server.complaint();
        Box::pin(server.connect())
    }

    /// What asks the server beside the stream.
    pub(super) fn source(&self, process: u64) -> Source {
        Source {
            channel: self.channel.subscribe(),
            token: self.token.clone(),
            process,
        }
    }

    fn open(&self, channel: Channel) -> Open {
        self.channel.send_replace(Some(channel.clone()));
        let (frames, outbound) = mpsc::channel(FRAMES_WAITING);
        let mut request = Request::new(ReceiverStream::new(outbound));
        if let Some(token) = &self.token {
            request
                .metadata_mut()
                .insert("authorization", token.clone());
        }
        let mut client = WorkerServiceClient::new(channel)
            .max_decoding_message_size(Limits::FRAME_BYTES)
            .max_encoding_message_size(Limits::CHECKPOINT_FRAME_BYTES);
        let answer = async move {
            client
                .session(request)
                .await
                .map(tonic::Response::into_inner)
        };
        Open {
            frames,
            inbound: Inbound::Awaited(Box::pin(answer)),
            silent_until: Some(Instant::now() + ANSWER_WAIT),
        }
    }

    /// Where the next frame goes, if the stream is open and has room.
    pub(super) fn room(&self) -> Room<'_> {
        match &self.state {
            State::Open(open) => match open.frames.try_reserve() {
                Ok(permit) => Room::Yes(permit),
                Err(mpsc::error::TrySendError::Full(())) => Room::Full,
                Err(mpsc::error::TrySendError::Closed(())) => Room::No,
            },
            _ => Room::No,
        }
    }

    /// The server answered as a server should.
    pub(super) fn is_good(&mut self) {
        self.backoff.reset();
    }

    /// Lets go of the stream, and dials after a while.
    pub(super) fn drop_and_wait(&mut self) -> Duration {
        let wait = self.backoff.next();
        self.state = State::Waiting(Instant::now() + wait);
        wait
    }

    /// Lets go of the stream and never dials again.
    pub(super) fn halt(&mut self) {
        self.state = State::Halted;
    }

    /// Ends the stream in good order: what was said arrives before it closes.
    pub(super) async fn close(self, patience: Duration) {
        if let State::Open(Open {
            frames,
            inbound: Inbound::Here(mut inbound),
            ..
        }) = self.state
        {
            drop(frames);
            let drained = async { while let Ok(Some(_)) = inbound.message().await {} };
            // The server need not end its half; the worker does not wait for ever.
            let _ = tokio::time::timeout(patience, drained).await;
        }
    }
}

pub(super) enum Room<'a> {
    Yes(mpsc::Permit<'a, wire::WorkerFrame>),
    Full,
    No,
}

impl Open {
    async fn next(&mut self, blocked: bool) -> Happened {
        let silence = self.silent_until;
        tokio::select! {
            happened = receive(&mut self.inbound) => {
                self.silent_until = None;
                happened
            }
            room = self.frames.reserve(), if blocked => {
                if room.is_ok() { Happened::Room } else { Happened::Lost("the stream was closed".to_owned()) }
            }
            () = sleep_until(silence.unwrap_or_else(Instant::now)), if silence.is_some() => {
                Happened::Lost("the server did not answer".to_owned())
            }
        }
    }
}

async fn receive(inbound: &mut Inbound) -> Happened {
    loop {
        match inbound {
            Inbound::Awaited(answer) => match answer.await {
                Ok(stream) => *inbound = Inbound::Here(Box::new(stream)),
                Err(status) => return failed(&status),
            },
            Inbound::Here(stream) => {
                return match stream.message().await {
                    Ok(Some(frame)) => Happened::Frame(frame),
                    Ok(None) => Happened::Lost("the server ended the stream".to_owned()),
                    Err(status) => failed(&status),
                };
            }
        }
    }
}

fn failed(status: &Status) -> Happened {
    // The code of a stream that the transport ended, not the answer of a service.
    if status.code() == Code::PermissionDenied && std::error::Error::source(status).is_some() {
        return Happened::Lost(
            "the server speaks TLS on this port: use https:// instead of http://".to_owned(),
        );
    }
    match status.code() {
        Code::Unauthenticated | Code::PermissionDenied => {
            Happened::Refused(Error::unauthorized(format!(
                "the server does not accept the token ({}): give one with the role worker",
                status.message()
            )))
        }
        Code::FailedPrecondition => Happened::Refused(Error::rejected(status.message())),
        _ => Happened::Lost(with_causes(status)),
    }
}

/// Transport errors say little themselves.
fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    if let Some(words) = crate::tls::said(error) {
        return words;
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        // Some wrap another error and say the same.
        if !text.ends_with(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}
