//! A server of a few lines behind a real socket: a test plays its part message by message.

// Each test plays another part of it.
#![allow(dead_code)]

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use drumtower_proto::worker::v1 as wire;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};
use wire::server_message::Body;
use wire::worker_message::Body as FromWorker;
use wire::worker_service_server::{WorkerService, WorkerServiceServer};

pub const TOKEN: &str = "dt_secret";

pub struct TinyServer {
    pub url: String,
    streams: mpsc::UnboundedReceiver<Stream>,
    /// What workers fetch, with its number.
    pub checkpoint: Kept,
    /// Other servers that it tells workers of.
    pub others: Vec<String>,
    /// Who it says that it is; nobody when it is alone.
    pub address: String,
    /// Which servers it says have work to give.
    pub owners: Vec<String>,
}

pub type Kept = Arc<Mutex<Option<(u64, Vec<u8>)>>>;

/// One stream of a worker. Dropping it ends the stream.
pub struct Stream {
    received: mpsc::UnboundedReceiver<FromWorker>,
    to_worker: mpsc::UnboundedSender<Result<wire::ServerFrame, Status>>,
    position: u64,
    beat: u64,
    /// Whether heartbeats are echoed.
    pub renews: bool,
    pub hello: wire::Hello,
    /// The server that the worker meant.
    pub meant: Option<String>,
}

struct Service {
    opened: mpsc::UnboundedSender<Stream>,
    checkpoint: Kept,
}

impl TinyServer {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (opened, streams) = mpsc::unbounded_channel();
        let checkpoint = Kept::default();
        let service = Service {
            opened,
            checkpoint: Arc::clone(&checkpoint),
        };
        let service = WorkerServiceServer::new(service);
        tokio::spawn(
            Server::builder()
                .add_service(service)
                .serve_with_incoming(TcpIncoming::from(listener)),
        );
        Self {
            url,
            streams,
            checkpoint,
            others: Vec::new(),
            address: String::new(),
            owners: Vec::new(),
        }
    }

    /// The next stream that a worker opened, with the hello read and a welcome sent.
    pub async fn welcome(&mut self) -> Stream {
        self.welcome_with(15_000).await
    }

    /// Like [`TinyServer::welcome`], with a lease of this length and five heartbeats to it.
    pub async fn welcome_with(&mut self, lease_ms: u64) -> Stream {
        let mut stream = self.streams.recv().await.expect("the server lives");
        let FromWorker::Hello(hello) = stream.next().await else {
            panic!("a stream begins with a hello")
        };
        stream.hello = hello;
        stream.send(Body::Welcome(wire::Welcome {
            protocol: 1,
            lease_ms,
            heartbeat_ms: lease_ms / 5,
            features: vec![drumtower_proto::CHECKPOINTS.to_owned()],
            servers: self.others.clone(),
            address: self.address.clone(),
            owners: self.owners.clone(),
            ..wire::Welcome::default()
        }));
        let first = stream.next().await;
        assert!(
            matches!(first, FromWorker::Heartbeat(_)),
            "a heartbeat follows the welcome: {first:?}"
        );
        stream
    }
}

impl Stream {
    /// The next message. A heartbeat is echoed at once, as if a commit had followed it.
    pub async fn next(&mut self) -> FromWorker {
        let body = self.received.recv().await.expect("the worker lives");
        if let FromWorker::Heartbeat(beat) = &body {
            self.beat = beat.number;
            if self.renews {
                self.send(Body::Renew(wire::Renew {
                    beat: beat.number,
                    ..wire::Renew::default()
                }));
            }
        }
        body
    }

    /// The next message that is neither a heartbeat, a grant nor a start.
    pub async fn next_telling(&mut self) -> FromWorker {
        loop {
            match self.next().await {
                FromWorker::Heartbeat(_) | FromWorker::Grant(_) | FromWorker::Started(_) => {}
                body => return body,
            }
        }
    }

    pub async fn next_end(&mut self) -> wire::Finished {
        match self.next_telling().await {
            FromWorker::Finished(end) => end,
            other => panic!("expected an end, got {other:?}"),
        }
    }

    /// Waits until the worker says that it is gone.
    pub async fn goodbye(&mut self) {
        let body = self.next_telling().await;
        assert!(matches!(body, FromWorker::Goodbye(_)), "{body:?}");
    }

    pub fn send(&self, body: Body) {
        let frame = wire::ServerFrame {
            messages: vec![wire::ServerMessage { body: Some(body) }],
        };
        // A worker that is gone hears nothing.
        let _ = self.to_worker.send(Ok(frame));
    }

    pub fn acknowledge(&self, end: &wire::Finished) {
        self.send(Body::FinishAck(wire::FinishAck {
            attempt: end.attempt,
        }));
    }

    pub fn assign_handler(&mut self, run: u64, handler: &str, params: &str) -> wire::AttemptRef {
        let task = wire::assign::Task::Handler(wire::HandlerTask {
            name: handler.to_owned(),
        });
        self.assign(run, task, params)
    }

    pub fn assign_exec(&mut self, run: u64, argv: &[&str], params: &str) -> wire::AttemptRef {
        let argv = argv.iter().map(|argument| (*argument).to_owned()).collect();
        self.assign(
            run,
            wire::assign::Task::Exec(wire::ExecTask {
                argv,
                ..Default::default()
            }),
            params,
        )
    }

    /// The run goes on from a checkpoint.
    pub fn resume_handler(&mut self, run: u64, handler: &str, number: u64) -> wire::AttemptRef {
        let task = wire::assign::Task::Handler(wire::HandlerTask {
            name: handler.to_owned(),
        });
        let mark = wire::CheckpointMark { number, bytes: 1 };
        self.assign_from(run, task, "", Some(mark))
    }

    /// The same for a line of the shell.
    pub fn resume_shell(&mut self, run: u64, shell: &str, number: u64) -> wire::AttemptRef {
        let task = wire::assign::Task::Exec(wire::ExecTask {
            shell: shell.to_owned(),
            ..Default::default()
        });
        let mark = wire::CheckpointMark { number, bytes: 1 };
        self.assign_from(run, task, "", Some(mark))
    }

    /// Keeps a checkpoint, or not.
    pub fn settle(&self, saved: &wire::Checkpoint, kept: bool) {
        self.send(Body::CheckpointAck(wire::CheckpointAck {
            attempt: saved.attempt,
            number: saved.number,
            kept,
        }));
    }

    fn assign(&mut self, run: u64, task: wire::assign::Task, params: &str) -> wire::AttemptRef {
        self.assign_from(run, task, params, None)
    }

    fn assign_from(
        &mut self,
        run: u64,
        task: wire::assign::Task,
        params: &str,
        checkpoint: Option<wire::CheckpointMark>,
    ) -> wire::AttemptRef {
        self.position += 1;
        let attempt = wire::AttemptRef {
            run,
            attempt: 1,
            fence: run + 100,
        };
        self.send(Body::Assign(wire::Assign {
            position: self.position,
            attempt: Some(attempt),
            beat: self.beat,
            namespace: "default".to_owned(),
            job: "demo".to_owned(),
            job_version: 1,
            task: Some(task),
            params: params.to_owned(),
            idempotency_key: format!("key-{run}"),
            nominal_wall_ms: Some(1_700_000_000_000),
            due_wall_ms: 1_700_000_000_000,
            timeout_ms: 60_000,
            weight: 1,
            checkpoint,
            progress_timeout_ms: 0,
        }));
        attempt
    }
}

#[tonic::async_trait]
impl WorkerService for Service {
    type SessionStream =
        Pin<Box<dyn tokio_stream::Stream<Item = Result<wire::ServerFrame, Status>> + Send>>;

    async fn fetch_checkpoint(
        &self,
        _: Request<wire::FetchCheckpointRequest>,
    ) -> Result<Response<wire::FetchedCheckpoint>, Status> {
        let kept = self.checkpoint.lock().expect("nobody panicked").clone();
        let (number, body) = kept.ok_or_else(|| Status::not_found("there is none"))?;
        Ok(Response::new(wire::FetchedCheckpoint { number, body }))
    }

    async fn session(
        &self,
        request: Request<Streaming<wire::WorkerFrame>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let given = request
            .metadata()
            .get("authorization")
            .and_then(|value| value.to_str().ok());
        if given != Some(format!("Bearer {TOKEN}").as_str()) {
            return Err(Status::unauthenticated("unknown token"));
        }
        let meant = request.metadata().get(drumtower_proto::SERVER_HEADER);
        let meant = meant.and_then(|value| value.to_str().ok());
        let meant = meant.map(str::to_owned);
        let (to_worker, frames) = mpsc::unbounded_channel();
        let (received_tx, received) = mpsc::unbounded_channel();
        let stream = Stream {
            received,
            to_worker,
            position: 0,
            beat: 0,
            renews: true,
            hello: wire::Hello::default(),
            meant,
        };
        let mut inbound = request.into_inner();
        tokio::spawn(async move {
            while let Ok(Some(frame)) = inbound.message().await {
                for body in frame
                    .messages
                    .into_iter()
                    .filter_map(|message| message.body)
                {
                    // The test may have let go of the stream.
                    let _ = received_tx.send(body);
                }
            }
        });
        self.opened
            .send(stream)
            .map_err(|_| Status::unavailable("the test is over"))?;
        Ok(Response::new(Box::pin(UnboundedReceiverStream::new(
            frames,
        ))))
    }
}
