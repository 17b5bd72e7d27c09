//! The supervisor's end of the socket to its agent.
//!
//! Reading never blocks. Writing never blocks either: a life has at most two small frames, which the socket's buffer
//! takes even while the agent is frozen. A failed write is ignored, because the next read says that the agent is gone.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use super::wire::{self, Command, Status};

pub struct Link {
    socket: UnixStream,
    decoder: wire::Decoder,
}

/// The agent closed its end, or sent something that is no command: nobody vouches for the lease.
#[derive(Debug)]
pub struct AgentGone;

impl Link {
    pub fn new(socket: UnixStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            decoder: wire::Decoder::default(),
        })
    }

    /// The next command, or `None` once all that has arrived is consumed.
    pub fn next(&mut self) -> Result<Option<Command>, AgentGone> {
        loop {
            if let Some(command) = self.decoder.take().map_err(|_| AgentGone)? {
                return Ok(Some(command));
            }
            let mut bytes = [0; 4096];
            match self.socket.read(&mut bytes) {
                Ok(0) => return Err(AgentGone),
                Ok(len) => self.decoder.push(&bytes[..len]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(AgentGone),
            }
        }
    }

    pub fn send(&mut self, status: &Status) {
        if let Ok(frame) = wire::encode(status) {
            let _ = self.socket.write_all(&frame);
        }
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
