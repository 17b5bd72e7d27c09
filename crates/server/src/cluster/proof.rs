//! What a server that sends a request on says of its caller, and proves with the key that lies in the shared store.
//!
//! Without the proof anyone could write the header and pretend to come from elsewhere. It says nothing about what the
//! caller may do, but for one who is the admin of the machine that was asked: the request carries the caller's own token.
//!
//! A seal is over what it says, the minute it was made in, and the method, path and query of the one request that it goes
//! with. Whoever gets hold of one can show it again for the same request only, as long as the minute is near. The body is not
//! under it: those of streams have no end, and who can read between servers that do not use TLS has the tokens anyway.

use std::net::IpAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use http::{HeaderName, HeaderValue, Method, Uri};
use ring::hmac;

pub const HEADER: HeaderName = HeaderName::from_static("drumtower-forwarded");

/// By which a server shows that it is one of the same store.
pub const OWN_HEADER: HeaderName = HeaderName::from_static("drumtower-peer");

/// What the two are for: a seal of one is none of the other.
const OF_A_CALLER: &str = "caller";
const OF_A_SERVER: &str = "server";

/// How far the clocks of two servers may lie apart, with the time that a request takes.
const MINUTES_APART: u64 = 2;

/// Who asked the server that sent the request on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    pub address: IpAddr,
    /// Whether it showed a certificate that the servers' `client_ca` vouches for.
    pub certified: bool,
    /// Whether it showed the token of that machine's own admin.
    pub local: bool,
}

/// The request that a seal goes with, and when.
#[derive(Clone, Copy, Debug)]
pub struct Occasion<'a> {
    pub method: &'a Method,
    pub path: &'a Uri,
    /// Since 1970, by the clock of whoever seals or looks.
    pub minute: u64,
}

impl<'a> Occasion<'a> {
    pub fn now(method: &'a Method, path: &'a Uri) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            method,
            path,
            minute: since.map_or(0, |since| since.as_secs() / 60),
        }
    }
}

/// Why a seal proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unproven {
    /// It is no seal of this key for this request.
    Forged,
    /// It is one of another time: shown again, or the clocks of the servers differ.
    Untimely,
}

#[derive(Clone)]
pub struct Key(hmac::Key);

impl Key {
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    pub fn seal(&self, caller: Caller, at: Occasion<'_>) -> HeaderValue {
        let (certified, local) = (u8::from(caller.certified), u8::from(caller.local));
        let said = format!("{} {} {certified} {local}", at.minute, caller.address);
        self.sealed(OF_A_CALLER, &said, at)
    }

    /// Shows that a server of the same store asks for itself, in nobody's name.
    pub fn seal_own(&self, at: Occasion<'_>) -> HeaderValue {
        self.sealed(OF_A_SERVER, &at.minute.to_string(), at)
    }

    pub fn open_own(&self, header: &HeaderValue, at: Occasion<'_>) -> Result<(), Unproven> {
        self.opened(OF_A_SERVER, header, at).map(|_| ())
    }

    /// What the header says, if it was sealed with this key for this request, lately.
    pub fn open(&self, header: &HeaderValue, at: Occasion<'_>) -> Result<Caller, Unproven> {
        let said = self.opened(OF_A_CALLER, header, at)?;
        let mut words = said.split(' ').skip(1);
        let mut word = || words.next().ok_or(Unproven::Forged);
        Ok(Caller {
            address: word()?.parse().map_err(|_| Unproven::Forged)?,
            certified: word()? == "1",
            local: word()? == "1",
        })
    }

    fn sealed(&self, what_for: &str, said: &str, at: Occasion<'_>) -> HeaderValue {
        let tag = hmac::sign(&self.0, &under_seal(what_for, said, at));
        HeaderValue::try_from(format!("{said} {}", hex(tag.as_ref())))
            .unwrap_or_else(|_| HeaderValue::from_static(""))
    }

    /// What was sealed; its first word is the minute.
    fn opened<'a>(
        &self,
        what_for: &str,
        header: &'a HeaderValue,
        at: Occasion<'_>,
    ) -> Result<&'a str, Unproven> {
        let parted = header.to_str().ok().and_then(|text| text.rsplit_once(' '));
        let (said, tag) = parted.ok_or(Unproven::Forged)?;
        let tag = unhex(tag).ok_or(Unproven::Forged)?;
        let sealed = under_seal(what_for, said, at);
        hmac::verify(&self.0, &sealed, &tag).map_err(|_| Unproven::Forged)?;
        let minute = said.split(' ').next().and_then(|it| it.parse::<u64>().ok());
        let minute = minute.ok_or(Unproven::Forged)?;
        match minute.abs_diff(at.minute) <= MINUTES_APART {
            true => Ok(said),
            false => Err(Unproven::Untimely),
        }
    }
}

/// No part can hold the end of a line, so they cannot be shifted against each other.
fn under_seal(what_for: &str, said: &str, at: Occasion<'_>) -> Vec<u8> {
    let path = at.path.path_and_query().map_or("/", |path| path.as_str());
    format!("{what_for}\n{}\n{path}\n{said}", at.method).into_bytes()
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

    const CALLER: Caller = Caller {
        address: IpAddr::V4(std::net::Ipv4Addr::new(10, 1, 2, 3)),
        certified: true,
        local: false,
    };

    fn key() -> Key {
        Key::new(&[7; 32])
    }

    /// Says what is made of a seal on another occasion than `POST /a?b=1` in minute 100.
    fn opened(
        sealed: &HeaderValue,
        method: Method,
        path: &'static str,
        minute: u64,
    ) -> [Result<(), Unproven>; 2] {
        let path = Uri::from_static(path);
        let at = Occasion {
            method: &method,
            path: &path,
            minute,
        };
        let caller = key().open(sealed, at);
        [
            caller.map(|caller| assert_eq!(caller, CALLER)),
            key().open_own(sealed, at),
        ]
    }

    fn both() -> [HeaderValue; 2] {
        let (method, path) = (Method::POST, Uri::from_static("/a?b=1"));
        let at = Occasion {
            method: &method,
            path: &path,
            minute: 100,
        };
        [key().seal(CALLER, at), key().seal_own(at)]
    }

    #[test]
    fn a_seal_is_of_one_request_and_of_one_kind() {
        let forged = Err(Unproven::Forged);
        let [caller, own] = both();
        for (sealed, kind) in [(caller, 0), (own, 1)] {
            let result = opened(&sealed, Method::POST, "/a?b=1", 100);
            assert_eq!((result[kind], result[1 - kind]), (Ok(()), forged));
            for (method, path) in [
                (Method::DELETE, "/a?b=1"),
                (Method::POST, "/a?b=2"),
                (Method::POST, "/a"),
                (Method::POST, "/b?b=1"),
            ] {
                assert_eq!(opened(&sealed, method, path, 100), [forged; 2], "{path}");
            }
        }
    }

    #[test]
    fn a_seal_of_another_time_proves_nothing() {
        for (kind, sealed) in both().iter().enumerate() {
            for (minute, wanted) in [
                (97, Err(Unproven::Untimely)),
                (98, Ok(())),
                (102, Ok(())),
                (103, Err(Unproven::Untimely)),
            ] {
                let result = opened(sealed, Method::POST, "/a?b=1", minute);
                assert_eq!(result[kind], wanted, "{minute}");
            }
        }
    }

    #[test]
    fn only_the_same_key_opens_what_nobody_has_changed() {
        let (method, path) = (Method::POST, Uri::from_static("/a?b=1"));
        let at = Occasion {
            method: &method,
            path: &path,
            minute: 100,
        };
        let other = Key::new(&[8; 32]);
        let [sealed, own] = both();
        assert_eq!(other.open(&sealed, at), Err(Unproven::Forged));
        assert_eq!(other.open_own(&own, at), Err(Unproven::Forged));
        let text = sealed.to_str().expect("it is text");
        let forged = [
            text.replacen("10.1.2.3", "10.1.2.4", 1),
            text.replacen(" 1 0 ", " 1 1 ", 1),
            text.replacen(" 1 0 ", " 0 0 ", 1),
            text.replacen("100 ", "101 ", 1),
            text[..text.len() - 1].to_owned(),
            "100 10.1.2.3 1 0 ".to_owned(),
            "10.1.2.3 1 ".to_owned(),
            "10.1.2.3".to_owned(),
            String::new(),
        ];
        for text in forged {
            let header = HeaderValue::try_from(&text).expect("it is a header");
            assert_eq!(key().open(&header, at), Err(Unproven::Forged), "{text}");
        }
    }
}
