//! What a server that sends a request on says of its caller, and proves with the key that lies in the shared store.
//!
//! Without the proof anyone could write the header and pretend to come from elsewhere. It says nothing about what the
//! caller may do: the request carries the caller's own token.

use std::net::IpAddr;

use http::{HeaderName, HeaderValue};
use ring::hmac;

pub const HEADER: HeaderName = HeaderName::from_static("drumtower-forwarded");

/// By which a server shows that it is one of the same store.
pub const OWN_HEADER: HeaderName = HeaderName::from_static("drumtower-peer");
/// What it seals: no caller is called so.
const OWN: &[u8] = b"a server of this store";

/// Who asked the server that sent the request on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    pub address: IpAddr,
    /// Whether it showed a certificate that the servers' `client_ca` vouches for.
    pub certified: bool,
    /// Whether it showed the token of that machine's own admin.
    pub local: bool,
}

#[derive(Clone)]
pub struct Key(hmac::Key);

impl Key {
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    pub fn seal(&self, caller: Caller) -> HeaderValue {
        let (certified, local) = (u8::from(caller.certified), u8::from(caller.local));
        let said = format!("{} {certified} {local}", caller.address);
        let tag = hex(hmac::sign(&self.0, said.as_bytes()).as_ref());
        HeaderValue::try_from(format!("{said} {tag}"))
            .unwrap_or_else(|_| HeaderValue::from_static(""))
    }

    /// Shows that a server of the same store asks for itself, in nobody's name.
    pub fn seal_own(&self) -> HeaderValue {
        let tag = hex(hmac::sign(&self.0, OWN).as_ref());
        HeaderValue::try_from(tag).unwrap_or_else(|_| HeaderValue::from_static(""))
    }

    pub fn is_own(&self, header: &HeaderValue) -> bool {
        let tag = header.to_str().ok().and_then(unhex);
        tag.is_some_and(|tag| hmac::verify(&self.0, OWN, &tag).is_ok())
    }

    /// What the header says; `None` when it was not sealed with this key.
    pub fn open(&self, header: &HeaderValue) -> Option<Caller> {
        let text = header.to_str().ok()?;
        let (said, tag) = text.rsplit_once(' ')?;
        let tag = unhex(tag)?;
        hmac::verify(&self.0, said.as_bytes(), &tag).ok()?;
        let mut words = said.split(' ');
        Some(Caller {
            address: words.next()?.parse().ok()?,
            certified: words.next()? == "1",
            local: words.next()? == "1",
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_key_opens_it() {
        let caller = Caller {
            address: IpAddr::from([10, 1, 2, 3]),
            certified: true,
            local: false,
        };
        let key = Key::new(&[7; 32]);
        let sealed = key.seal(caller);
        assert_eq!(key.open(&sealed), Some(caller));
        assert_eq!(Key::new(&[8; 32]).open(&sealed), None);
        // What shows a server is no caller, and the other way round.
        assert!(key.is_own(&key.seal_own()) && !key.is_own(&sealed));
        assert!(!Key::new(&[8; 32]).is_own(&key.seal_own()));
        assert_eq!(key.open(&key.seal_own()), None);
        let text = sealed.to_str().expect("it is text");
        let forged = [
            text.replacen("10.1.2.3", "10.1.2.4", 1),
            text.replacen(" 1 0 ", " 1 1 ", 1),
            text.replacen(" 1 0 ", " 0 0 ", 1),
            text[..text.len() - 1].to_owned(),
            "10.1.2.3 1 ".to_owned(),
            "10.1.2.3".to_owned(),
            String::new(),
        ];
        for text in forged {
            let header = HeaderValue::try_from(&text).expect("it is a header");
            assert_eq!(key.open(&header), None, "{text}");
        }
    }
}
