//! One piece of output as it lies in a file: 64 bytes of header, then the data.
//!
//! ```text
//! 0 magic(4) │ 4 length(4) │ 8 checksum(8) │ 16 run(8) │ 24 attempt(4) │ 28 stream(1) 0(3) │ 32 seq(8)
//! 40 wall ms(8) │ 48 previous file(4) │ 52 previous offset(8) │ 60 bytes of the attempt so far(4) │ 64 data
//! ```
//!
//! Numbers are little-endian. The checksum covers everything else. Files are numbered from 1: a previous file of 0
//! means that this is the attempt's first record.

use drumtower_core::model::{Limits, RunId, WallMs};
use xxhash_rust::xxh3::Xxh3;

use super::{Source, Stream};

pub(super) const HEADER_BYTES: usize = 64;
const MAGIC: [u8; 4] = *b"DTL1";

/// Where a record begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub file: u32,
    pub offset: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub source: Source,
    pub stream: Stream,
    pub seq: u64,
    pub wall: WallMs,
    pub previous: Option<Place>,
    /// Output of the attempt up to and including this record.
    pub total: u32,
    pub length: u32,
    checksum: u64,
}

/// A record with its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub stream: Stream,
    pub wall: WallMs,
    pub data: Vec<u8>,
}

impl Header {
    pub fn new(
        source: Source,
        stream: Stream,
        seq: u64,
        wall: WallMs,
        previous: Option<Place>,
        total: u32,
    ) -> Self {
        Self {
            source,
            stream,
            seq,
            wall,
            previous,
            total,
            length: 0,
            checksum: 0,
        }
    }

    /// Appends the record to `out`. The data must not exceed the bound of a line.
    pub fn encode(mut self, data: &[u8], out: &mut Vec<u8>) {
        self.length = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let mut bytes = self.bytes();
        let checksum = checksum(&bytes, data);
        bytes[8..16].copy_from_slice(&checksum.to_le_bytes());
        out.extend_from_slice(&bytes);
        out.extend_from_slice(data);
    }

    fn bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let previous = self.previous.unwrap_or(Place { file: 0, offset: 0 });
        bytes[0..4].copy_from_slice(&MAGIC);
        bytes[4..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.source.run.0.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.source.attempt.to_le_bytes());
        bytes[28] = self.stream.number();
        bytes[32..40].copy_from_slice(&self.seq.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.wall.0.to_le_bytes());
        bytes[48..52].copy_from_slice(&previous.file.to_le_bytes());
        bytes[52..60].copy_from_slice(&previous.offset.to_le_bytes());
        bytes[60..64].copy_from_slice(&self.total.to_le_bytes());
        bytes
    }

    /// `None` when these bytes are no header.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let long = |at: usize| u64::from(word(at)) | (u64::from(word(at + 4)) << 32);
        let length = word(4);
        if bytes[0..4] != MAGIC || length as usize > Limits::LOG_LINE_BYTES {
            return None;
        }
        let stream = Stream::from_number(u32::from(bytes[28]))?;
        let previous = (word(48) != 0).then(|| Place {
            file: word(48),
            offset: long(52),
        });
        Some(Self {
            source: Source {
                run: RunId(long(16)),
                attempt: word(24),
            },
            stream,
            seq: long(32),
            wall: WallMs(long(40).cast_signed()),
            previous,
            total: word(60),
            length,
            checksum: long(8),
        })
    }

    /// Whether header and data are as they were written.
    pub fn holds(&self, data: &[u8]) -> bool {
        data.len() == self.length as usize && checksum(&self.bytes(), data) == self.checksum
    }

    pub fn record_bytes(&self) -> u64 {
        HEADER_BYTES as u64 + u64::from(self.length)
    }
}

fn checksum(header: &[u8; HEADER_BYTES], data: &[u8]) -> u64 {
    let mut hasher = Xxh3::new();
    hasher.update(&header[..8]);
    hasher.update(&header[16..]);
    hasher.update(data);
    hasher.digest()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        let source = Source {
            run: RunId(77),
            attempt: 3,
        };
        Header::new(
            source,
            Stream::Stderr,
            9,
            WallMs(-5),
            Some(Place {
                file: 2,
                offset: 1 << 40,
            }),
            1234,
        )
    }

    #[test]
    fn a_record_comes_back_as_it_was() {
        let mut bytes = Vec::new();
        header().encode(b"hello", &mut bytes);
        let decoded = Header::decode(bytes[..64].try_into().unwrap()).unwrap();
        assert!(decoded.holds(&bytes[64..]));
        assert_eq!(
            (decoded.source, decoded.stream, decoded.seq),
            (header().source, Stream::Stderr, 9)
        );
        assert_eq!(
            (decoded.wall, decoded.previous, decoded.total),
            (WallMs(-5), header().previous, 1234)
        );
    }

    #[test]
    fn a_change_of_any_byte_is_noticed() {
        let mut bytes = Vec::new();
        header().encode(b"hello", &mut bytes);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            let decoded = Header::decode(damaged[..64].try_into().unwrap());
            // The padding after the stream is not kept, so only its effect on the bytes that are can be noticed.
            if !(29..32).contains(&at) {
                assert!(
                    decoded.is_none_or(|it| !it.holds(&damaged[64..])),
                    "byte {at}"
                );
            }
        }
    }
}
