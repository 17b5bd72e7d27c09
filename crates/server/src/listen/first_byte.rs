//! A stream whose other side must say something soon.
//!
//! Until the first byte nobody knows which HTTP is spoken, so no timeout of HTTP runs yet. Whoever says nothing is let go.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

pub struct FirstByte<S> {
    stream: S,
    /// `None` once something was said.
    patience: Option<Pin<Box<Sleep>>>,
}

impl<S> FirstByte<S> {
    pub fn new(stream: S, within: Duration) -> Self {
        Self {
            stream,
            patience: Some(Box::pin(sleep(within))),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FirstByte<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        if read.is_ready() {
            this.patience = None;
        } else if let Some(patience) = &mut this.patience
            && patience.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FirstByte<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    const WITHIN: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_silent_peer_is_let_go() {
        let (near, _far) = duplex(64);
        let error = FirstByte::new(near, WITHIN).read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_spoke_may_be_silent_later() {
        let (near, mut far) = duplex(64);
        let mut near = FirstByte::new(near, WITHIN);
        far.write_u8(7).await.unwrap();
        assert_eq!(near.read_u8().await.unwrap(), 7);
        let later = tokio::spawn(async move {
            sleep(10 * WITHIN).await;
            far.write_u8(8).await.unwrap();
        });
        assert_eq!(near.read_u8().await.unwrap(), 8);
        later.await.unwrap();
    }
}
