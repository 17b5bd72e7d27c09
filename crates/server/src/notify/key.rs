//! The key that signs webhooks: drawn at the first start, kept in a file that only its owner can read.
//!
//! Its text is `whsec_` and the key in base 64, as libraries for Standard Webhooks take it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

use crate::auth::first_start::write_private;

pub const FILE: &str = "webhook.key";
const PREFIX: &str = "whsec_";
const BYTES: usize = 32;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}: {1}")]
    File(PathBuf, #[source] io::Error),
    #[error(
        "{0} holds no key: expected `whsec_` and at least 24 bytes in base 64; remove the file to have a new key drawn"
    )]
    Malformed(PathBuf),
    #[error(transparent)]
    Write(#[from] crate::auth::first_start::Error),
    #[error("no key can be drawn: {0}")]
    Random(getrandom::Error),
}

#[derive(Clone)]
pub struct Key(hmac::Key);

impl Key {
    /// Reads the key, or draws one. A file that was named and is not there is not made.
    pub fn load(named: Option<&Path>, data: &Path) -> Result<Self, Error> {
        let path = named.map_or_else(|| data.join(FILE), Path::to_owned);
        match fs::read_to_string(&path) {
            Ok(text) => Self::parse(text.trim()).ok_or(Error::Malformed(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound && named.is_none() => {
                let mut bytes = [0; BYTES];
                getrandom::fill(&mut bytes).map_err(Error::Random)?;
                write_private(&path, &format!("{PREFIX}{}", STANDARD.encode(bytes)))?;
                Ok(Self::of(&bytes))
            }
            Err(error) => Err(Error::File(path, error)),
        }
    }

    fn of(bytes: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    fn parse(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text.strip_prefix(PREFIX)?).ok()?;
        (24..=64).contains(&bytes.len()).then(|| Self::of(&bytes))
    }

    /// The value of `webhook-signature`.
    pub fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(format!("{id}.{timestamp}.").as_bytes());
        context.update(body);
        format!("v1,{}", STANDARD.encode(context.sign()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the Standard Webhooks documentation, so that other libraries agree.
    #[test]
    fn signatures_are_those_of_the_standard() {
        let key = Key::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signed = key.sign(
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_key_is_drawn_once_and_kept_private() {
        let data = tempfile::tempdir().unwrap();
        let first = Key::load(None, data.path()).unwrap().sign("a", 1, b"x");
        let second = Key::load(None, data.path()).unwrap().sign("a", 1, b"x");
        assert_eq!(first, second);
        let path = data.path().join(FILE);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(
                fs::metadata(&path).unwrap().permissions().mode() & 0o777,
                0o600
            );
        }
        fs::write(&path, "whsec_AAAA\n").unwrap();
        assert!(matches!(
            Key::load(None, data.path()),
            Err(Error::Malformed(_))
        ));
        let elsewhere = data.path().join("elsewhere");
        assert!(matches!(
            Key::load(Some(&elsewhere), data.path()),
            Err(Error::File(..))
        ));
    }
}
