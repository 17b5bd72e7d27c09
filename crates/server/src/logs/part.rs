//! What one server has of an attempt's output, on its way to another: records as they lie in files, one after another.

use super::record::{HEADER_BYTES, Header, Record};
use super::{Chain, Expired, Place, Source};

/// A record with the number that its worker gave it: the order of an attempt's output, on whichever servers it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbered {
    pub seq: u64,
    pub record: Record,
}

/// Part of an attempt's output.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// In the order of their numbers.
    pub records: Vec<Numbered>,
    /// Whether there was more, which is gone with its file.
    pub expired: bool,
}

impl Part {
    /// Everything up to `end`. Blocks on files.
    pub fn read(chain: &mut Chain, end: Place) -> std::io::Result<Self> {
        let found = match chain.advance(end)? {
            Ok(found) => found,
            Err(Expired) => {
                return Ok(Self {
                    records: Vec::new(),
                    expired: true,
                });
            }
        };
        let mut part = Self {
            records: Vec::with_capacity(found.places.len()),
            expired: found.beginning_expired,
        };
        for (seq, place) in found.places {
            match chain.load(place)? {
                Some(record) => part.records.push(Numbered { seq, record }),
                None => part.expired = true,
            }
        }
        Ok(part)
    }

    pub fn encode(&self, source: Source) -> Vec<u8> {
        let mut out = vec![u8::from(self.expired)];
        for Numbered { seq, record } in &self.records {
            let header = Header::new(source, record.stream, *seq, record.wall, None, 0);
            header.encode(&record.data, &mut out);
        }
        out
    }

    /// `None` when it is damaged, or of another attempt.
    pub fn decode(source: Source, bytes: &[u8]) -> Option<Self> {
        let (expired, mut rest) = bytes.split_first()?;
        let mut part = Self {
            records: Vec::new(),
            expired: *expired != 0,
        };
        while let Some((head, tail)) = rest.split_first_chunk::<HEADER_BYTES>() {
            let header = Header::decode(head).filter(|it| it.source == source)?;
            let (data, tail) = tail.split_at_checked(header.length as usize)?;
            if !header.holds(data) {
                return None;
            }
            part.records.push(Numbered {
                seq: header.seq,
                record: Record {
                    stream: header.stream,
                    wall: header.wall,
                    data: data.to_vec(),
                },
            });
            rest = tail;
        }
        rest.is_empty().then_some(part)
    }
}
