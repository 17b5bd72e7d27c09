//! Reads a body up to a bound.

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;

/// What of a body was kept.
pub struct Read {
    pub bytes: Vec<u8>,
    /// There was more.
    pub truncated: bool,
}

/// Reads until the end or the bound, whichever comes first.
pub async fn read(mut body: Incoming, most: usize) -> Result<Read, hyper::Error> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data): Result<Bytes, _> = frame?.into_data() else {
            continue;
        };
        let room = most - bytes.len();
        if data.len() > room {
            bytes.extend_from_slice(&data[..room]);
            return Ok(Read {
                bytes,
                truncated: true,
            });
        }
        bytes.extend_from_slice(&data);
    }
    Ok(Read {
        bytes,
        truncated: false,
    })
}
