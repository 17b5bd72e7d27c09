//! SIGTERM and SIGINT as wishes to leave: the first drains, the second stops what runs, the third ends the process.

use std::io;

use drumtower_sdk::Leave;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// What a shell says of a process that was interrupted.
const KILLED: i32 = 130;

/// Listens from here on. Must be called within a tokio runtime.
pub fn leave_on_signals() -> io::Result<watch::Receiver<Leave>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (leave, receiver) = watch::channel(Leave::No);
    tokio::spawn(async move {
        for wish in [Some(Leave::Drained), Some(Leave::AtOnce), None] {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            match wish {
                Some(wish) => drop(leave.send_replace(wish)),
                // Supervisors kill what they watch when the process is gone.
                None => std::process::exit(KILLED),
            }
        }
    });
    Ok(receiver)
}
