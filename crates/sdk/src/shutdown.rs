//! How a worker is told to leave.

use std::pin::Pin;

use tokio::sync::watch;

/// Wishes to stop. The first one drains: no more work is taken, what runs may end. The second one stops at once.
///
/// Any future is a shutdown with one wish; a [`watch::Receiver<Leave>`](Leave) makes both.
pub trait Shutdown: Send {
    /// Resolves with the next wish. Must be cancel-safe.
    fn next(&mut self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// What a worker should do, for a [`watch`] channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leave {
    #[default]
    No,
    /// When what runs has ended.
    Drained,
    /// At once: what runs is killed.
    AtOnce,
}

/// One wish: the completion of a future.
pub(crate) struct Once<F> {
    future: Option<Pin<Box<F>>>,
}

impl<F> Once<F> {
    pub(crate) fn new(future: F) -> Self {
        Self {
            future: Some(Box::pin(future)),
        }
    }
}

impl<F: Future<Output = ()> + Send> Shutdown for Once<F> {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            match &mut self.future {
                Some(future) => future.await,
                None => std::future::pending().await,
            }
            self.future = None;
        })
    }
}

/// Both wishes, in order; a sender that is gone wishes nothing more.
pub(crate) struct Watched {
    pub(crate) leave: watch::Receiver<Leave>,
    pub(crate) heard: Leave,
}

impl Shutdown for Watched {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            let heard = self.heard;
            if self.leave.wait_for(|leave| *leave > heard).await.is_err() {
                std::future::pending::<()>().await;
            }
            self.heard = if heard == Leave::No {
                Leave::Drained
            } else {
                Leave::AtOnce
            };
        })
    }
}
