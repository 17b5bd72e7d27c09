//! The secret part of a token: drawn once, shown once, kept only as a digest.

use std::fmt;

use sha2::{Digest, Sha256};

const PREFIX: &str = "drt_";
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Text that grants access. Its `Debug` form hides it, so that no log can hold it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Draws 256 bits from the operating system.
    pub fn draw() -> std::io::Result<Self> {
        let mut bits = [0; 32];
        getrandom::fill(&mut bits).map_err(std::io::Error::other)?;
        Ok(Self(format!("{PREFIX}{}", base32(&bits))))
    }

    pub fn text(&self) -> &str {
        &self.0
    }

    pub fn digest(&self) -> [u8; 32] {
        digest(&self.0)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("drt_…")
    }
}

/// What is kept of a secret.
pub fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

fn base32(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 8 / 5 + 1);
    let (mut held, mut held_bits) = (0_u32, 0);
    for byte in bytes {
        held = (held << 8) | u32::from(*byte);
        held_bits += 8;
        while held_bits >= 5 {
            held_bits -= 5;
            text.push(char::from(ALPHABET[((held >> held_bits) & 31) as usize]));
        }
        held &= (1 << held_bits) - 1;
    }
    if held_bits > 0 {
        text.push(char::from(
            ALPHABET[((held << (5 - held_bits)) & 31) as usize],
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_long_distinct_and_hidden_from_logs() {
        let (one, other) = (Secret::draw().unwrap(), Secret::draw().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.text().len(), "drt_".len() + 52);
        assert_eq!(format!("{one:?}"), "drt_…");
    }

    #[test]
    fn base32_keeps_every_bit() {
        assert_eq!(base32(&[0xff; 5]), "zzzzzzzz");
        assert_eq!(base32(&[0, 0, 0, 0, 1]), "00000001");
        assert_eq!(base32(&[0x80]), "g0");
        assert_ne!(
            base32(&[0; 32]),
            base32(&{
                let mut bytes = [0; 32];
                bytes[31] = 1;
                bytes
            })
        );
    }
}
