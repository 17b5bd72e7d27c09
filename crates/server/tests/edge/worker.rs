//! A worker that speaks the protocol by hand, so that a test decides every message.

use std::time::{Duration, SystemTime};

use drumtower_proto::worker::v1 as wire;
use drumtower_proto::worker::v1::server_message::Body as FromServer;
use drumtower_proto::worker::v1::worker_message::Body as ToServer;
use drumtower_proto::worker::v1::worker_service_client::WorkerServiceClient;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Request, Status, Streaming};

use crate::server::PATIENCE;

pub struct Worker {
    out: mpsc::UnboundedSender<wire::WorkerFrame>,
    frames: Streaming<wire::ServerFrame>,
    queued: std::collections::VecDeque<FromServer>,
    beat: u64,
    granted: u64,
    held: Vec<wire::AttemptRef>,
    position: u64,
}

pub fn hello(name: &str) -> wire::Hello {
    wire::Hello {
        protocol_min: drumtower_proto::PROTOCOL_MIN,
        protocol_max: drumtower_proto::PROTOCOL_MAX,
        worker: name.to_owned(),
        process: name.bytes().fold(7, |sum, byte| sum * 31 + u64::from(byte)),
        stream: 1,
        host: "here".to_owned(),
        exec: true,
        http: true,
        capacity: 8,
        ..wire::Hello::default()
    }
}

impl Worker {
    /// Opens a stream without saying anything.
    pub async fn dial(url: &str, token: Option<&str>) -> Result<Self, Status> {
        Self::dial_for(url, token, None).await
    }

    /// Opens a stream at `url` that is meant for the server at another address.
    pub async fn dial_for(
        url: &str,
        token: Option<&str>,
        meant: Option<&str>,
    ) -> Result<Self, Status> {
        let channel = tonic::transport::Channel::from_shared(url.to_owned())
            .unwrap()
            .connect()
            .await
            .unwrap();
        let mut client = WorkerServiceClient::new(channel);
        let (out, frames) = mpsc::unbounded_channel();
        let mut request = Request::new(UnboundedReceiverStream::new(frames));
        if let Some(token) = token {
            request
                .metadata_mut()
                .insert("authorization", format!("Bearer {token}").parse().unwrap());
        }
        if let Some(meant) = meant {
            let name = drumtower_proto::SERVER_HEADER;
            request.metadata_mut().insert(name, meant.parse().unwrap());
        }
        let frames = client.session(request).await?.into_inner();
        Ok(Self {
            out,
            frames,
            queued: Default::default(),
            beat: 0,
            granted: 0,
            held: Vec::new(),
            position: 0,
        })
    }

    /// Says hello, waits for the welcome, beats once and grants its capacity.
    pub async fn join(url: &str, token: &str, hello: wire::Hello) -> Self {
        let mut worker = Self::dial(url, Some(token)).await.unwrap();
        worker.greet(hello).await;
        worker
    }

    /// As [`join`](Self::join), with the very server at `url`, whether it owns anything yet or not.
    pub async fn join_at(url: &str, token: &str, hello: wire::Hello) -> Self {
        let mut worker = Self::dial_for(url, Some(token), Some(url)).await.unwrap();
        worker.greet(hello).await;
        worker
    }

    /// As [`join`](Self::join), on a stream that is open.
    pub async fn greet(&mut self, hello: wire::Hello) -> wire::Welcome {
        let worker = self;
        worker.send(vec![ToServer::Hello(hello)]);
        let FromServer::Welcome(welcome) = worker.next().await.unwrap() else {
            panic!("no welcome")
        };
        assert!(welcome.lease_ms > welcome.heartbeat_ms);
        assert_eq!(welcome.protocol, drumtower_proto::PROTOCOL_MAX);
        worker.beat();
        worker.grant(8);
        welcome
    }

    pub fn send(&self, bodies: Vec<ToServer>) {
        let messages = bodies
            .into_iter()
            .map(|body| wire::WorkerMessage { body: Some(body) })
            .collect();
        let _ = self.out.send(wire::WorkerFrame { messages });
    }

    pub fn beat(&mut self) {
        self.beat += 1;
        self.send(vec![ToServer::Heartbeat(wire::Heartbeat {
            number: self.beat,
            wall_ms: wall_ms(),
            acked_position: self.position,
            held: self.held.clone(),
            load: Some(wire::Load {
                cpu_permille: 5,
                ..wire::Load::default()
            }),
        })]);
    }

    pub fn grant(&mut self, more: u64) {
        self.granted += more;
        self.send(vec![ToServer::Grant(wire::Grant {
            total: self.granted,
        })]);
    }

    /// The next message; `None` when the server has ended the stream.
    pub async fn next(&mut self) -> Option<FromServer> {
        loop {
            if let Some(body) = self.queued.pop_front() {
                return Some(body);
            }
            let frame = tokio::time::timeout(PATIENCE, self.frames.message())
                .await
                .expect("no message");
            self.queued.extend(
                frame
                    .ok()??
                    .messages
                    .into_iter()
                    .filter_map(|message| message.body),
            );
        }
    }

    /// Waits for a message that `wanted` takes; beats meanwhile as a worker does.
    pub async fn wait_for<T>(&mut self, mut wanted: impl FnMut(&FromServer) -> Option<T>) -> T {
        loop {
            let body = tokio::select! {
                body = self.next() => body.expect("the server has ended the stream"),
                () = tokio::time::sleep(Duration::from_secs(1)) => {
                    self.beat();
                    continue;
                }
            };
            if let FromServer::Assign(assign) = &body {
                self.position = assign.position;
                self.held.extend(assign.attempt);
            }
            if let Some(found) = wanted(&body) {
                return found;
            }
        }
    }

    pub async fn assignment(&mut self) -> wire::Assign {
        self.wait_for(|body| match body {
            FromServer::Assign(assign) => Some(assign.clone()),
            _ => None,
        })
        .await
    }

    /// Waits for the end of the stream and returns what the server said last.
    pub async fn closed(&mut self) -> wire::Close {
        let close = self.wait_for(|body| match body {
            FromServer::Close(close) => Some(close.clone()),
            _ => None,
        });
        let close = close.await;
        assert_eq!(self.next().await, None, "a close is the last message");
        close
    }

    pub fn write(&self, attempt: wire::AttemptRef, seq: u64, stream: u32, text: &str) {
        let data = text.as_bytes().to_vec();
        self.send(vec![ToServer::Log(wire::LogChunk {
            attempt: Some(attempt),
            seq,
            stream,
            wall_ms: wall_ms(),
            data,
        })]);
    }

    pub async fn log_acked(&mut self, seq: u64) {
        self.wait_for(|body| {
            matches!(body, FromServer::LogAck(ack) if ack.seq == seq).then_some(())
        })
        .await;
    }

    /// Saves a checkpoint and returns whether it is kept.
    pub async fn save(&mut self, attempt: wire::AttemptRef, number: u64, body: &[u8]) -> bool {
        self.send(vec![ToServer::Checkpoint(wire::Checkpoint {
            attempt: Some(attempt),
            number,
            body: body.to_vec(),
        })]);
        self.wait_for(|body| match body {
            FromServer::CheckpointAck(ack) if ack.number == number => Some(ack.kept),
            _ => None,
        })
        .await
    }

    pub fn start(&self, attempt: wire::AttemptRef) {
        self.send(vec![ToServer::Started(wire::Started {
            attempt: Some(attempt),
            wall_ms: wall_ms(),
        })]);
    }

    /// Reports an end and waits until it is acknowledged.
    pub async fn finish(&mut self, attempt: wire::AttemptRef, outcome: wire::Outcome) {
        self.finish_with(attempt, |end| end.outcome = outcome.into())
            .await;
    }

    pub async fn finish_with(
        &mut self,
        attempt: wire::AttemptRef,
        change: impl FnOnce(&mut wire::Finished),
    ) {
        let started_wall_ms = wall_ms();
        let mut end = wire::Finished {
            attempt: Some(attempt),
            started_wall_ms,
            duration_ms: 1,
            ..Default::default()
        };
        change(&mut end);
        self.send(vec![ToServer::Finished(end)]);
        self.wait_for(|body| {
            matches!(body, FromServer::FinishAck(ack) if ack.attempt == Some(attempt)).then_some(())
        })
        .await;
        self.held.retain(|held| *held != attempt);
    }
}

/// Asks for the checkpoint of an attempt as one process would.
pub async fn fetch_checkpoint(
    url: &str,
    token: Option<&str>,
    (attempt, process): (wire::AttemptRef, u64),
) -> Result<wire::FetchedCheckpoint, Status> {
    let channel = tonic::transport::Channel::from_shared(url.to_owned())
        .unwrap()
        .connect()
        .await
        .unwrap();
    let mut request = Request::new(wire::FetchCheckpointRequest {
        attempt: Some(attempt),
        process,
    });
    if let Some(token) = token {
        request
            .metadata_mut()
            .insert("authorization", format!("Bearer {token}").parse().unwrap());
    }
    let mut client = WorkerServiceClient::new(channel);
    client
        .fetch_checkpoint(request)
        .await
        .map(tonic::Response::into_inner)
}

fn wall_ms() -> i64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
        .as_millis() as i64
}
