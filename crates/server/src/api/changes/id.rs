//! Ids of messages: places in the tap, sealed.
//!
//! ```text
//! life (4 bytes) - nonce (8) place, masked (8) seal (8)      all in hex
//! ```
//!
//! Facts are numbered over all namespaces, so a bare number would tell a caller how much its neighbours do. Each id is
//! masked with a nonce of its own: two ids of one place do not look alike, and one that was changed is no id.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};

const NONCE: u8 = 0;
const MASK: u8 = 1;
const SEAL: u8 = 2;

#[derive(Clone)]
pub struct Ids(Arc<Secret>);

struct Secret {
    /// Drawn anew for each life of the server.
    life: String,
    key: [u8; 32],
    given: AtomicU64,
}

/// What an id that a client came with says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    Place(u64),
    /// It may be an id of another life of the server.
    OtherLife,
}

impl Ids {
    pub fn new() -> std::io::Result<Self> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(std::io::Error::other)?;
        let life = getrandom::u32().map_err(std::io::Error::other)?;
        Ok(Self(Arc::new(Secret {
            life: format!("{life:08x}"),
            key,
            given: AtomicU64::new(0),
        })))
    }

    pub fn seal(&self, place: u64) -> String {
        let count = self.0.given.fetch_add(1, Ordering::Relaxed);
        let nonce = self.word(NONCE, count, 0);
        let masked = place ^ self.word(MASK, nonce, 0);
        let seal = self.word(SEAL, nonce, masked);
        format!("{}-{nonce:016x}{masked:016x}{seal:016x}", self.0.life)
    }

    /// `None` for what is no id.
    pub fn open(&self, text: &str) -> Option<Known> {
        let (life, rest) = text.split_once('-')?;
        let hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if life.len() != 8 || rest.len() != 48 || !hex(life) || !hex(rest) {
            return None;
        }
        if life != self.0.life {
            return Some(Known::OtherLife);
        }
        let word = |from: usize| u64::from_str_radix(rest.get(from..from + 16)?, 16).ok();
        let (nonce, masked, seal) = (word(0)?, word(16)?, word(32)?);
        let place = masked ^ self.word(MASK, nonce, 0);
        (self.word(SEAL, nonce, masked) == seal).then_some(Known::Place(place))
    }

    /// What nobody without the key can tell from chance. All inputs are of one length, so none continues another.
    fn word(&self, purpose: u8, first: u64, second: u64) -> u64 {
        let mut hasher = Sha256::new();
        hasher.update(self.0.key);
        hasher.update([purpose]);
        hasher.update(first.to_le_bytes());
        hasher.update(second.to_le_bytes());
        let digest: [u8; 32] = hasher.finalize().into();
        let [a, b, c, d, e, f, g, h, ..] = digest;
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_place_for_its_server_and_nothing_for_anyone_else() {
        let ids = Ids::new().unwrap();
        let (one, again) = (ids.seal(7), ids.seal(7));
        for id in [&one, &again] {
            assert_eq!(ids.open(id), Some(Known::Place(7)));
        }
        let differing = one.bytes().zip(again.bytes()).filter(|(a, b)| a != b);
        assert!(
            differing.count() > 24,
            "{one} and {again} tell of one place"
        );
        let other = Ids::new().unwrap();
        let known = other.open(&one);
        assert_eq!(known, Some(Known::OtherLife));
    }

    #[test]
    fn an_id_that_was_changed_is_none() {
        let ids = Ids::new().unwrap();
        let id = ids.seal(7);
        for at in 9..id.len() {
            let mut changed = id.clone().into_bytes();
            changed[at] = if changed[at] == b'0' { b'1' } else { b'0' };
            assert_eq!(ids.open(&String::from_utf8(changed).unwrap()), None);
        }
        for text in ["", "7", "0123abcd-", "0123abcd-7", &id[..id.len() - 1]] {
            assert_eq!(ids.open(text), None, "{text}");
        }
    }
}
