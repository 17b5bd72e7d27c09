//! What waits to happen.

use std::sync::Arc;

use drumtower_core::change::ChangeSet;
use drumtower_core::engine::{Boot, Input, LoadRequest, Loaded};
use drumtower_core::model::SessionId;
use drumtower_proto::worker::v1 as wire;
use drumtower_sdk::session::Attempt;
use drumtower_server::driver::boot::Taken;
use drumtower_server::driver::shares::Look;

use super::net::ConnId;
use crate::client::{CallId, Deed, Said};

/// One life of a server's loop, of all lives of all servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Life(pub u64);

/// One process of a worker, of all processes of all workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process(pub u64);

/// What the store said to a commit, or what the writer makes of silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Done,
    Fenced,
    Busy,
    Unknown,
    Refused,
}

#[derive(Debug)]
pub enum Event {
    StartServer {
        server: usize,
    },
    Join {
        server: usize,
        life: Life,
    },
    /// What a server owns is read, when so much more time has passed.
    ReadBoot {
        server: usize,
        life: Life,
        taken: Taken,
        left_us: u64,
    },
    Booted {
        server: usize,
        life: Life,
        boot: Box<Boot>,
    },
    /// The store is asked who is there.
    Look {
        server: usize,
        life: Life,
        session: SessionId,
        engine: u64,
        known: Option<u64>,
    },
    Looked {
        server: usize,
        life: Life,
        engine: u64,
        look: Option<Box<Look>>,
    },
    Turn {
        server: usize,
        life: Life,
        token: u64,
    },
    /// A copy of a commit reaches the store.
    Reach {
        server: usize,
        life: Life,
        changes: Arc<ChangeSet>,
        /// Whether the store's answer finds its way back.
        answered: bool,
        /// Whether it arrives even if its sender is gone.
        outlives: bool,
    },
    Answered {
        server: usize,
        life: Life,
        seq: u64,
        answer: Answer,
    },
    Resubmit {
        server: usize,
        life: Life,
        seq: u64,
    },
    /// The store reads what was asked for.
    Read {
        server: usize,
        life: Life,
        engine: u64,
        request: LoadRequest,
        waiting: Option<Box<Input>>,
    },
    Loaded {
        server: usize,
        life: Life,
        engine: u64,
        loaded: Result<Box<Loaded>, &'static str>,
        waiting: Option<Box<Input>>,
    },
    Dial {
        worker: usize,
        process: Process,
        server: usize,
    },
    /// A call for a stream reaches the server.
    Dialled {
        conn: ConnId,
    },
    /// The answer to it reaches the worker.
    Opened {
        conn: ConnId,
        accepted: bool,
    },
    Up {
        conn: ConnId,
        messages: Vec<wire::WorkerMessage>,
    },
    Down {
        conn: ConnId,
        message: Box<wire::ServerMessage>,
    },
    /// The server notices that a stream is gone.
    GoneUp {
        conn: ConnId,
    },
    /// The worker notices it.
    GoneDown {
        conn: ConnId,
    },
    /// What is said on a stream is lost from here on.
    CutUp {
        conn: ConnId,
        noticed: [u64; 2],
    },
    /// A worker dies, so many more times.
    Flap {
        worker: usize,
        left: u64,
        down_us: u64,
        up_us: u64,
    },
    StartWorker {
        worker: usize,
    },
    Wake {
        worker: usize,
        process: Process,
        token: u64,
    },
    TaskStarts {
        worker: usize,
        process: Process,
        attempt: Attempt,
    },
    /// It has come a step further.
    TaskSays {
        worker: usize,
        process: Process,
        attempt: Attempt,
    },
    TaskEnds {
        worker: usize,
        process: Process,
        attempt: Attempt,
    },
    /// A supervisor looks at its deadline, whatever its worker does.
    Deadline {
        worker: usize,
        process: Process,
        attempt: Attempt,
    },
    Act {
        client: usize,
    },
    Request {
        call: CallId,
    },
    Reply {
        call: CallId,
        said: Said,
    },
    /// A copy of a request reaches a server when nobody waits for its answer.
    Copy {
        client: usize,
        deed: Box<Deed>,
    },
    Timeout {
        call: CallId,
    },
    /// A caller gives up for good.
    HangUp {
        call: CallId,
    },
    /// A server notices that a caller is gone; `owner` asked for a lock and does not ask again.
    HungUp {
        server: usize,
        call: CallId,
        owner: Option<String>,
    },
    Trouble {
        index: usize,
    },
    Calm,
    /// Is everything done?
    Poll,
}

/// Where something happens, if that place can be frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Server(usize),
    Worker(usize),
    Conn(ConnId, Side),
    Elsewhere,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Server,
    Worker,
}

impl Event {
    pub fn place(&self) -> Place {
        match self {
            Self::Join { server, .. }
            | Self::Looked { server, .. }
            | Self::ReadBoot { server, .. }
            | Self::Booted { server, .. }
            | Self::Turn { server, .. }
            | Self::Answered { server, .. }
            | Self::Resubmit { server, .. }
            | Self::Loaded { server, .. }
            | Self::HungUp { server, .. } => Place::Server(*server),
            Self::Dialled { conn } | Self::Up { conn, .. } | Self::GoneUp { conn } => {
                Place::Conn(*conn, Side::Server)
            }
            Self::Opened { conn, .. } | Self::Down { conn, .. } | Self::GoneDown { conn } => {
                Place::Conn(*conn, Side::Worker)
            }
            Self::Dial { worker, .. }
            | Self::Wake { worker, .. }
            | Self::TaskStarts { worker, .. }
            | Self::TaskSays { worker, .. }
            | Self::TaskEnds { worker, .. } => Place::Worker(*worker),
            // Commits and reads run in the store, supervisors beside their worker, clients elsewhere.
            Self::StartServer { .. }
            | Self::Reach { .. }
            | Self::Read { .. }
            | Self::Look { .. }
            | Self::StartWorker { .. }
            | Self::CutUp { .. }
            | Self::Flap { .. }
            | Self::Deadline { .. }
            | Self::Act { .. }
            | Self::Request { .. }
            | Self::Reply { .. }
            | Self::Copy { .. }
            | Self::Timeout { .. }
            | Self::HangUp { .. }
            | Self::Trouble { .. }
            | Self::Calm
            | Self::Poll => Place::Elsewhere,
        }
    }
}
