//! TLS for the REST client: rustls below ureq, with our own ideas of whom to believe and what to say when we do not.
//!
//! The files of a [`Trust`] are read at the first connection, so that commands over plain HTTP never look for them.

use std::fmt;
use std::io::{self, Read, Write};
use std::sync::{Arc, OnceLock};

use drumtower_sdk::tls::{Trust, said};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use ureq::Error;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, Transport,
    TransportAdapter,
};

const PROTOCOLS: &[&[u8]] = &[b"http/1.1"];

/// What TLS had to say. Wrapped, so that it can be told from a server that is not there.
#[derive(Debug)]
pub struct Distrust(String);

impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Distrust {}

/// The words of TLS, if it was TLS that failed.
pub fn distrust(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let io = match error.downcast_ref::<Error>() {
        Some(Error::Io(io)) => io,
        Some(_) => return None,
        None => error.downcast_ref::<io::Error>()?,
    };
    let inner = io.get_ref()?;
    inner.downcast_ref::<Distrust>().map(ToString::to_string)
}

#[derive(Debug)]
pub struct Secure {
    trust: Trust,
    config: OnceLock<Arc<ClientConfig>>,
}

impl Secure {
    pub fn new(trust: Trust) -> Self {
        Self {
            trust,
            config: OnceLock::new(),
        }
    }

    fn config(&self) -> Result<Arc<ClientConfig>, Error> {
        if let Some(config) = self.config.get() {
            return Ok(Arc::clone(config));
        }
        let config = self.trust.config(PROTOCOLS).map_err(plain)?;
        Ok(Arc::clone(self.config.get_or_init(|| config)))
    }
}

impl<In: Transport> Connector<In> for Secure {
    type Out = Either<In, Secured>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, Error> {
        let Some(transport) = chained else {
            return Ok(None);
        };
        if !details.needs_tls() {
            return Ok(Some(Either::A(transport)));
        }
        let host = details.uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| plain(format!("`{host}` is no name that a certificate can hold")))?;
        let mut connection = ClientConnection::new(self.config()?, name)
            .map_err(|error| plain(drumtower_sdk::tls::words(&error)))?;
        let mut socket = TransportAdapter::new(transport.boxed(), details.current_time.clone());
        socket.set_timeout(details.timeout);
        connection.complete_io(&mut socket).map_err(told)?;
        let buffers = LazyBuffers::new(
            details.config.input_buffer_size(),
            details.config.output_buffer_size(),
        );
        let stream = StreamOwned::new(connection, socket);
        Ok(Some(Either::B(Secured { buffers, stream })))
    }
}

fn plain(words: String) -> Error {
    Error::Io(io::Error::other(Distrust(words)))
}

fn told(error: io::Error) -> Error {
    match said(&error) {
        Some(words) => plain(words),
        None => Error::Io(error),
    }
}

pub struct Secured {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl Transport for Secured {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.stream.get_mut().set_timeout(timeout);
        let output = &self.buffers.output()[..amount];
        self.stream.write_all(output).map_err(told)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.stream.get_mut().set_timeout(timeout);
        let input = self.buffers.input_append_buf();
        let amount = match self.stream.read(input) {
            Ok(amount) => amount,
            // A server that dies says no goodbye; what is missing shows in the answer itself.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => 0,
            Err(error) => return Err(told(error)),
        };
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.get_mut().get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}

impl fmt::Debug for Secured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secured")
    }
}
