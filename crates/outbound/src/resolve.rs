//! From names to socket addresses. What comes out is not trusted: every address is checked before it is dialled.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;

/// Addresses of one name that are looked at.
pub(crate) const MOST: usize = 16;

pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'a>>;

/// Where the addresses of a name come from.
pub trait Resolve: Send + Sync + 'static {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> Resolving<'a>;
}

/// The resolver of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

impl Resolve for System {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> Resolving<'a> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, port)).await?;
            Ok(found.take(MOST).collect())
        })
    }
}
