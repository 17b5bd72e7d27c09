//! One link: the connection to a server, waiting, dialling, or open.
//!
//! ```text
//! Waiting ──time──► Dialling ──connected──► Open (frames go out at once, the answer may follow later)
//!    ▲                  │                     │
//!    └──────────────────┴──failed, lost───────┘
//! ```
//!
//! A link that knows whose it is looks for that [`Peer`]; one that does not tries the known servers in turn. It carries
//! frames and knows nothing of what they say. Which links there are is decided by [`Links`](super::links::Links).

use std::pin::Pin;
use std::time::Duration;

use drumtower_core::model::Limits;
use drumtower_proto::worker::v1 as wire;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};
use wire::worker_service_client::WorkerServiceClient;

use super::backoff::Backoff;
use super::dial::{Complaint, Server};
use super::frame::Framer;
use super::peer::Peer;
use super::servers::Servers;
use crate::session::{LinkId, Session};
use crate::{Error, clock};

/// Frames that were handed to the transport and not yet taken by it. Small: what waits in the session batches better.
const FRAMES_WAITING: usize = 2;
/// A server that does not say anything for this long is not there.
const ANSWER_WAIT: Duration = Duration::from_secs(10);
/// The same for one that was there, when there are other ways: its leases run.
const ANSWER_WAIT_AGAIN: Duration = Duration::from_secs(2);
/// A server that sent the worker away is not dialled for this long.
const SENT_AWAY: Duration = Duration::from_secs(60);

type Answer = Pin<Box<dyn Future<Output = Result<Streaming<wire::ServerFrame>, Status>> + Send>>;
type Dial = Pin<Box<dyn Future<Output = Result<Channel, String>> + Send>>;

pub(super) struct Link {
    /// Whose link it is, once it knows.
    peer: Option<Peer>,
    /// How often it dialled; with a peer, since that was last reached.
    dials: usize,
    /// How long the server that is dialled may take to answer.
    patience: Duration,
    /// Of the server that was dialled last.
    complaint: Complaint,
    /// Where that is.
    dialled: String,
    backoff: Backoff,
    state: State,
    /// The number of the present stream, or the last one.
    stream: u64,
    framer: Framer,
    /// A frame could not be sent for want of room.
    blocked: bool,
    /// The server has welcomed the present stream.
    welcomed: bool,
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
    /// It is time to dial.
    Due,
    Connected(Channel),
    Frame(wire::ServerFrame),
    /// There is room for another frame.
    Room,
    Lost(String),
    /// Dialling again is of no use.
    Refused(Error),
}

impl Link {
    /// To the server of a peer, or to any.
    pub(super) fn new(peer: Option<Peer>, seed: u64) -> Self {
        Self {
            peer,
            dials: 0,
            patience: ANSWER_WAIT,
            complaint: Complaint::default(),
            dialled: String::new(),
            backoff: Backoff::new(seed),
            state: State::Waiting(Instant::now()),
            stream: 0,
            framer: Framer::default(),
            blocked: false,
            welcomed: false,
        }
    }

    /// Waits for the next thing to happen. Cancel-safe.
    pub(super) async fn next(&mut self) -> Happened {
        match &mut self.state {
            State::Waiting(until) => {
                sleep_until(*until).await;
                Happened::Due
            }
            State::Dialling(dial) => match dial.await {
                Ok(channel) => Happened::Connected(channel),
                Err(reason) => Happened::Lost(reason),
            },
            State::Open(open) => match open.next(self.blocked).await {
                Happened::Lost(reason) => Happened::Lost(self.complaint.take().unwrap_or(reason)),
                happened => happened,
            },
            State::Halted => std::future::pending().await,
        }
    }

    /// Where it leads: the address of its server, or host and port of the one that was dialled last.
    pub(super) fn server(&self) -> &str {
        self.address().unwrap_or(&self.dialled)
    }

    /// Host and port of the server that was dialled last.
    pub(super) fn dialled(&self) -> &str {
        &self.dialled
    }

    /// Of the server whose link it is.
    pub(super) fn address(&self) -> Option<&str> {
        self.peer.as_ref().map(Peer::address)
    }

    pub(super) fn is_welcomed(&self) -> bool {
        self.welcomed
    }

    pub(super) fn stream(&self) -> u64 {
        self.stream
    }

    pub(super) fn dial(&mut self, servers: &Servers) {
        let ways = match &self.peer {
            Some(peer) => peer.ways(servers),
            None => servers.known().iter().collect(),
        };
        let server: Server = ways[self.dials % ways.len()].clone();
        let direct = self.peer.as_ref().is_some_and(|peer| peer.is(&server));
        self.patience = match direct && ways.len() > 1 {
            true => ANSWER_WAIT_AGAIN,
            false => ANSWER_WAIT,
        };
        self.dials += 1;
        self.dialled = server.place();
        self.complaint = server.complaint();
        let connected = timeout(self.patience, server.connect());
        self.state = State::Dialling(Box::pin(async move {
            match connected.await {
                Ok(Ok(channel)) => Ok(channel),
                Ok(Err(error)) => Err(with_causes(&error)),
                Err(_) => Err("the server did not answer".to_owned()),
            }
        }));
    }

    /// Whether every way to its server was tried in vain.
    pub(super) fn has_tried_all(&self, servers: &Servers) -> bool {
        let ways = self.peer.as_ref().map(|peer| peer.ways(servers).len());
        ways.is_some_and(|ways| self.dials >= ways)
    }

    pub(super) fn open(
        &mut self,
        channel: Channel,
        servers: &Servers,
        id: LinkId,
        session: &mut Session,
    ) {
        let (frames, outbound) = mpsc::channel(FRAMES_WAITING);
        let mut request = Request::new(ReceiverStream::new(outbound));
        if let Some(token) = servers.token() {
            request
                .metadata_mut()
                .insert("authorization", token.clone());
        }
        if let Some(peer) = &self.peer {
            peer.name_in(request.metadata_mut());
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
        self.state = State::Open(Open {
            frames,
            inbound: Inbound::Awaited(Box::pin(answer)),
            silent_until: Some(Instant::now() + self.patience),
        });
        self.framer.reset();
        self.stream = session.stream_opened(id);
    }

    /// Sends what the session has to say, as far as there is room.
    pub(super) fn transmit(&mut self, id: LinkId, session: &mut Session) {
        self.blocked = false;
        let State::Open(open) = &self.state else {
            return;
        };
        loop {
            match open.frames.try_reserve() {
                Ok(permit) => match self.framer.next(session, id, clock::now()) {
                    Some(frame) => permit.send(frame),
                    None => return,
                },
                Err(mpsc::error::TrySendError::Full(())) => {
                    self.blocked = true;
                    return;
                }
                Err(mpsc::error::TrySendError::Closed(())) => return,
            }
        }
    }

    /// A server welcomed the stream; the next failure is a first one.
    pub(super) fn welcomed_by(&mut self, peer: Option<Peer>) {
        self.welcomed = true;
        self.peer = peer;
        self.backoff.reset();
        if self.peer.is_some() {
            self.dials = 0;
        }
    }

    /// Leads to any server again.
    pub(super) fn forget_peer(&mut self) {
        self.peer = None;
    }

    /// Takes over what another link looked for in vain, and how long that waits.
    pub(super) fn take_place_of(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.peer, &mut other.peer);
        std::mem::swap(&mut self.backoff, &mut other.backoff);
        std::mem::swap(&mut self.dials, &mut other.dials);
        self.drop_and_wait();
    }

    /// Lets go of the stream, and dials after a while.
    pub(super) fn drop_and_wait(&mut self) -> Duration {
        let wait = self.backoff.next();
        self.wait(wait);
        wait
    }

    /// Lets go of the stream, and dials much later.
    pub(super) fn rest(&mut self) {
        self.wait(SENT_AWAY);
    }

    fn wait(&mut self, wait: Duration) {
        self.state = State::Waiting(Instant::now() + wait);
        self.welcomed = false;
    }

    /// Lets go of the stream and never dials again.
    pub(super) fn halt(&mut self) {
        self.state = State::Halted;
        self.welcomed = false;
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
            let _ = timeout(patience, drained).await;
        }
    }
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
