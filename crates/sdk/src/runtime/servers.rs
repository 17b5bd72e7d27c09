//! The servers that are known: those of the settings, and those that servers tell of.

use tonic::metadata::{Ascii, MetadataValue};

use super::dial::Server;
use crate::tls::{Trust, in_the_open};

/// Servers that are dialled in turn.
const SERVERS: usize = 64;

pub(super) struct Servers {
    /// There is at least one.
    known: Vec<Server>,
    token: Option<MetadataValue<Ascii>>,
    /// How servers are believed that others tell of.
    trust: Trust,
}

impl Servers {
    pub(super) fn new(
        known: Vec<Server>,
        token: Option<MetadataValue<Ascii>>,
        trust: Trust,
    ) -> Self {
        Self {
            known,
            token,
            trust,
        }
    }

    /// These are servers too.
    pub(super) fn learn(&mut self, urls: &[String]) {
        for url in urls {
            if self.known.len() < SERVERS
                && let Some(server) = self.at(url)
                && !self.known.iter().any(|it| it.place() == server.place())
            {
                tracing::info!(server = %server.place(), "learned of another server");
                self.known.push(server);
            }
        }
    }

    /// The server at an address; none if the token may not go there.
    pub(super) fn at(&self, url: &str) -> Option<Server> {
        let fits = self.token.is_none() || self.trust.in_the_open || !in_the_open(url);
        fits.then(|| Server::new(url, &self.trust).ok())?
    }

    pub(super) fn known(&self) -> &[Server] {
        &self.known
    }

    pub(super) fn token(&self) -> Option<&MetadataValue<Ascii>> {
        self.token.as_ref()
    }
}
