//! The server that a link is for, and the ways to it.
//!
//! It is dialled at its own address first. Then the other servers are in turn: each of them can pass the stream on, for
//! the call names the server that is meant.

use drumtower_proto::SERVER_HEADER;
use tonic::metadata::{Ascii, MetadataMap, MetadataValue};

use super::dial::Server;
use super::servers::Servers;

pub(super) struct Peer {
    address: String,
    header: Option<MetadataValue<Ascii>>,
    /// The server itself; none if the token may not go there.
    server: Option<Server>,
}

impl Peer {
    pub(super) fn new(address: &str, servers: &Servers) -> Self {
        Self {
            address: address.to_owned(),
            header: MetadataValue::try_from(address).ok(),
            server: servers.at(address),
        }
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Names the server in a call.
    pub(super) fn name_in(&self, metadata: &mut MetadataMap) {
        if let Some(header) = &self.header {
            metadata.insert(SERVER_HEADER, header.clone());
        }
    }

    /// All ways to it, the straight one first.
    pub(super) fn ways<'a>(&'a self, servers: &'a Servers) -> Vec<&'a Server> {
        let own = self.server.as_ref();
        let place = own.map(Server::place);
        let others = servers.known().iter();
        let others = others.filter(|it| place.as_ref() != Some(&it.place()));
        own.into_iter().chain(others).collect()
    }

    /// Whether this is the server itself and not one that passes on.
    pub(super) fn is(&self, server: &Server) -> bool {
        let own = self.server.as_ref();
        own.is_some_and(|own| own.place() == server.place())
    }
}
