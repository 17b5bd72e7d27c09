//! The agent's end of one supervisor: passes orders on, takes the report, and clears up if none comes.

use std::future;
use std::path::PathBuf;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::Child;
use tokio::sync::{oneshot, watch};

use super::{Orders, Outcome, lost, whole_ms};
use crate::supervisor::resume_files;
use crate::supervisor::wire::{self, Command, Exited, Reason, Started, Status};

pub struct Tended {
    pub supervisor: Child,
    pub socket: UnixStream,
    pub scratch: PathBuf,
    pub orders: watch::Receiver<Orders>,
    /// What the supervisor knows of the orders; with the start frame, the first deadline.
    pub told: Orders,
    pub started: watch::Sender<Option<Started>>,
}

impl Tended {
    /// Sends the start frame and stays until no process of the attempt is left. Then `tree_gone` is dropped, which
    /// tells the output's reader that no byte will follow those in the pipes.
    pub async fn run(
        mut self,
        start: Vec<u8>,
        tree_gone: oneshot::Sender<()>,
        mut outcome: oneshot::Sender<Outcome>,
    ) {
        let (reader, mut writer) = self.socket.into_split();
        let mut statuses = Statuses {
            reader,
            decoder: wire::Decoder::default(),
        };
        let reported = async {
            writer.write_all(&start).await.ok()?;
            loop {
                tokio::select! {
                    status = statuses.next() => match status? {
                        Status::Started(started) => drop(self.started.send(Some(started))),
                        Status::NotStarted { reason, error } => return Some(not_started(reason, error)),
                        Status::Exited(exited) => return Some(ended(self.started.borrow().as_ref(), exited)),
                    },
                    changed = self.orders.changed() => {
                        if changed.is_err() {
                            // The other end is being dropped; the select below is about to see that.
                            future::pending::<()>().await;
                        }
                        let orders = *self.orders.borrow_and_update();
                        pass_on(&mut writer, self.told, orders).await?;
                        self.told = orders;
                    }
                }
            }
        };
        let report = tokio::select! {
            report = reported => report,
            // Nobody waits: closing the socket makes the supervisor kill the tree and go.
            () = outcome.closed() => None,
        };
        let abandoned = outcome.is_closed();
        drop((statuses, writer));
        let report = match report {
            Some(report) => report,
            None => {
                let started = self.started.borrow().clone();
                if !abandoned {
                    lost::clear_up(&mut self.supervisor, started.as_ref(), &self.scratch).await;
                }
                let why = "the supervisor died before it could report";
                Outcome {
                    checkpoint: resume_files::left(&self.scratch).exists(),
                    ..Outcome::lost(started.as_ref(), why)
                }
            }
        };
        // A zombie is all that waiting can fail to remove here.
        let _ = self.supervisor.wait().await;
        drop(tree_gone);
        let _ = outcome.send(report);
    }
}

struct Statuses {
    reader: OwnedReadHalf,
    decoder: wire::Decoder,
}

impl Statuses {
    /// `None` once the supervisor closed its end, or sent what is no status. Safe to cancel.
    async fn next(&mut self) -> Option<Status> {
        let mut bytes = [0; 1024];
        loop {
            if let Some(status) = self.decoder.take().ok()? {
                return Some(status);
            }
            match self.reader.read(&mut bytes).await {
                Ok(0) | Err(_) => return None,
                Ok(len) => self.decoder.push(&bytes[..len]),
            }
        }
    }
}

/// Sends what differs from what the supervisor was told.
async fn pass_on(writer: &mut OwnedWriteHalf, told: Orders, orders: Orders) -> Option<()> {
    let mut frames = Vec::new();
    if told.deadline != orders.deadline {
        frames.extend(
            wire::encode(&Command::Extend {
                deadline: orders.deadline,
            })
            .ok()?,
        );
    }
    if let Some((grace, reason)) = orders.kill
        && told.kill != orders.kill
    {
        let kill = Command::Kill {
            grace_ms: whole_ms(grace),
            reason,
        };
        frames.extend(wire::encode(&kill).ok()?);
    }
    // A failed write means that the supervisor has gone; its report, if it left one, is still to be read.
    let _ = writer.write_all(&frames).await;
    Some(())
}

fn not_started(reason: Reason, error: String) -> Outcome {
    Outcome {
        exit_code: None,
        signal: None,
        reason,
        started_wall_ms: None,
        duration_ms: 0,
        cpu_ms: 0,
        peak_rss_bytes: 0,
        excess: None,
        grouped: false,
        left: None,
        progress: None,
        checkpoint: false,
        error: Some(error),
    }
}

fn ended(started: Option<&Started>, exited: Exited) -> Outcome {
    Outcome {
        exit_code: exited.exit_code,
        signal: exited.signal,
        reason: exited.reason,
        started_wall_ms: started.map(|started| started.wall_ms),
        duration_ms: exited.duration_ms,
        cpu_ms: exited.cpu_ms,
        peak_rss_bytes: exited.peak_rss_bytes,
        excess: exited.excess,
        grouped: exited.grouped,
        left: exited.left,
        progress: exited.progress,
        checkpoint: exited.checkpoint,
        error: exited.scratch_error,
    }
}
