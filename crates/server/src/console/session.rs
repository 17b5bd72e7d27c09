//! Sessions of the console: a cookie that stands for a token.
//!
//! The cookie names the token, an end and a number of its own, under a seal over all of it, the token's digest and a key of the
//! data directory. Nothing is stored while it holds: a session outlives a restart of the server, and ends with its token or
//! with its time. One that is signed out is remembered until then ([`Ended`]). The secret itself is in no cookie.
//!
//! A browser sends the cookie by itself, so what changes something needs besides a header that no other site can send: pages
//! of other origins would have to ask first, and this server says no ([`HEADER`]).

use std::io;
use std::path::Path;

use axum::http::{HeaderMap, Method, header};
use drumtower_core::model::{TokenId, WallMs};
use ring::hmac;

use super::ended::Ended;
use crate::auth::{Authority, Denied, Principal};

/// Shows that a request comes from the console and not from a page of another site.
pub const HEADER: &str = "x-drumtower-console";
/// What a proxy says that the browser spoke to it.
const FORWARDED: &str = "x-forwarded-proto";
const COOKIE: &str = "drumtower_session";
/// How long a session lasts without being renewed.
pub const LASTS_MS: i64 = 7 * 24 * 3_600_000;
/// What stands for the token of the machine's own admin, which has no id.
const LOCAL: &str = "local";

/// Seals and opens the cookies of one data directory.
#[derive(Clone)]
pub struct Sessions {
    key: hmac::Key,
    /// Whether this server speaks TLS itself.
    tls: bool,
    ended: Ended,
}

/// What a cookie says.
struct Opened {
    until: WallMs,
    principal: Principal,
}

impl Sessions {
    pub fn open(secret: &[u8], tls: bool, data: &Path, now: WallMs) -> io::Result<Self> {
        Ok(Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, secret),
            tls,
            ended: Ended::open(data, now)?,
        })
    }

    /// The value of `Set-Cookie` that signs a caller in; `None` when its token is gone meanwhile.
    pub fn seal(
        &self,
        authority: &Authority,
        principal: &Principal,
        until: WallMs,
        asked: &HeaderMap,
    ) -> io::Result<Option<String>> {
        let Some(digest) = authority.digest_of(principal.token) else {
            return Ok(None);
        };
        let token = principal
            .token
            .map_or_else(|| LOCAL.to_owned(), |id| id.to_string());
        let mut number = [0; 8];
        getrandom::fill(&mut number).map_err(io::Error::other)?;
        let number = hex(&number);
        let seal = hmac::sign(&self.key, &message(&token, until, &number, &digest));
        let value = format!("{token}.{}.{number}.{}", until.0, hex(seal.as_ref()));
        Ok(Some(self.cookie(&value, LASTS_MS / 1000, asked)))
    }

    /// Ends the session of a request, if it has one, and gives the value of `Set-Cookie` that makes the browser forget it.
    pub fn end(&self, authority: &Authority, asked: &HeaderMap, now: WallMs) -> io::Result<String> {
        if let Some(value) = value(asked)
            && let Some(opened) = self.opened(authority, value, now)
        {
            self.ended.end(value, opened.until)?;
        }
        Ok(self.cookie("", 0, asked))
    }

    /// A browser that speaks TLS, to this server or to a proxy before it, may send the cookie over TLS only. Anybody can say
    /// that it does; whoever says so wrongly gets a cookie that its own browser does not take.
    fn cookie(&self, value: &str, seconds: i64, asked: &HeaderMap) -> String {
        let forwarded = asked.get(FORWARDED).and_then(|value| value.to_str().ok());
        let first = forwarded.and_then(|list| list.split(',').next());
        let by_proxy = first.is_some_and(|scheme| scheme.trim().eq_ignore_ascii_case("https"));
        let secure = match self.tls || by_proxy {
            true => "; Secure",
            false => "",
        };
        format!("{COOKIE}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
    }

    /// The caller behind a cookie, if the request has one.
    pub fn caller(
        &self,
        authority: &Authority,
        method: &Method,
        headers: &HeaderMap,
        now: WallMs,
    ) -> Option<Result<Principal, Denied>> {
        let value = value(headers)?;
        Some(match self.opened(authority, value, now) {
            Some(_) if !method.is_safe() && !headers.contains_key(HEADER) => Err(Denied::OtherSite),
            Some(opened) => Ok(opened.principal),
            None => Err(Denied::SessionEnded),
        })
    }

    fn opened(&self, authority: &Authority, value: &str, now: WallMs) -> Option<Opened> {
        let mut parts = value.splitn(4, '.');
        let (token, until) = (parts.next()?, parts.next()?);
        let (number, seal) = (parts.next()?, parts.next()?);
        let until = WallMs(until.parse().ok()?);
        if until <= now {
            return None;
        }
        let id: Option<TokenId> = match token {
            LOCAL => None,
            text => Some(text.parse().ok()?),
        };
        let digest = authority.digest_of(id)?;
        let seal = bytes(seal)?;
        hmac::verify(&self.key, &message(token, until, number, &digest), &seal).ok()?;
        if self.ended.has(value, until) {
            return None;
        }
        let principal = authority.known_by(&digest)?;
        Some(Opened { until, principal })
    }
}

fn message(token: &str, until: WallMs, number: &str, digest: &[u8; 32]) -> Vec<u8> {
    let mut message = format!("session {token} {} {number} ", until.0).into_bytes();
    message.extend_from_slice(digest);
    message
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn value(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(header::COOKIE).iter();
    cookies
        .filter_map(|value| value.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(name, value)| *name == COOKIE && !value.is_empty())
        .map(|(_, value)| value)
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    if !hex.len().is_multiple_of(2) || !hex.is_ascii() {
        return None;
    }
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).ok())
        .collect()
}
