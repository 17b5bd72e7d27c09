//! SIGTERM and SIGINT as wishes to leave: the first drains, the second kills.

use std::io;

use drumtower_sdk::Leave;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Listens from here on. Must be called within a tokio runtime.
pub fn leave_on_signals() -> io::Result<watch::Receiver<Leave>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (leave, receiver) = watch::channel(Leave::No);
    tokio::spawn(async move {
        for wish in [Leave::Drained, Leave::AtOnce] {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            leave.send_replace(wish);
        }
        // A sender that is gone would look like a wish withdrawn.
        leave.closed().await;
    });
    Ok(receiver)
}
