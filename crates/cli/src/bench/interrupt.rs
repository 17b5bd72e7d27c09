//! Ctrl-C: the first ends the bench in good order, so that no process and no directory is left behind; the second at once.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{SignalKind, signal};

use crate::failure::{Failure, Result};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Begins to listen.
pub fn listen() -> Result<()> {
    let failed =
        |error: std::io::Error| Failure::failed(format!("signals cannot be heard: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .map_err(failed)?;
    let context = runtime.enter();
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    drop(context);
    let wait = move || {
        runtime.block_on(async {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                if INTERRUPTED.swap(true, Ordering::Relaxed) {
                    std::process::exit(130);
                }
            }
        });
    };
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(wait)
        .map_err(failed)?;
    Ok(())
}

/// Fails once someone wants the bench to end.
pub fn check() -> Result<()> {
    match INTERRUPTED.load(Ordering::Relaxed) {
        true => Err(Failure::failed("interrupted")),
        false => Ok(()),
    }
}
