//! The rest of another server's answer. It ends with an error when that server goes silent before all of it has come: what is
//! followed may come for hours, and whoever follows it asks again then.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

type Silent = Pin<Box<dyn Future<Output = ()> + Send>>;

pub struct Rest<B> {
    body: B,
    /// Until the server goes silent; nothing once it has.
    silent: Option<Silent>,
}

impl<B> Rest<B> {
    /// `silent` comes when the server is given up. It is begun when something is waited for.
    pub fn new(body: B, silent: impl Future<Output = ()> + Send + 'static) -> Self {
        Self {
            body,
            silent: Some(Box::pin(silent)),
        }
    }
}

impl<B> Body for Rest<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            return Poll::Ready(frame.map(|frame| frame.map_err(io::Error::other)));
        }
        let Some(silent) = &mut self.silent else {
            return Poll::Ready(None);
        };
        ready!(silent.as_mut().poll(context));
        self.silent = None;
        let silent = "the server that was telling it is silent";
        Poll::Ready(Some(Err(io::Error::other(silent))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
