//! Addresses as users write them, in their parts.

use std::fmt;
use std::net::IpAddr;

use http::Uri;
use http::uri::Scheme;

use crate::error::Error;

/// A parsed address with a scheme that is spoken here and a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub uri: Uri,
    pub https: bool,
    /// Without the brackets of a version 6 address.
    pub host: String,
    pub port: u16,
}

impl Target {
    pub fn parse(url: &str) -> Result<Self, Error> {
        let odd = |why: &str| Error::Address {
            url: url.to_owned(),
            why: why.to_owned(),
        };
        let uri: Uri = url.parse().map_err(|error| odd(&format!("{error}")))?;
        let https = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => false,
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            _ => return Err(odd("begin it with http:// or https://")),
        };
        let authority = uri.authority().ok_or_else(|| odd("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(odd("put credentials in an Authorization header"));
        }
        let host = authority.host();
        let host = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host)
            .to_ascii_lowercase();
        if host.is_empty() {
            return Err(odd("it names no host"));
        }
        let port = match authority.port() {
            None => [80, 443][usize::from(https)],
            Some(port) if port.as_u16() > 0 => port.as_u16(),
            Some(_) => return Err(odd("port 0 cannot be dialled")),
        };
        Ok(Self {
            uri,
            https,
            host,
            port,
        })
    }

    pub fn ip(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// Whether the two are one place as far as trust goes.
    pub fn same_origin(&self, other: &Self) -> bool {
        (self.https, &self.host, self.port) == (other.https, &other.host, other.port)
    }

    /// What goes into the request line.
    pub fn path(&self) -> &str {
        match self.uri.path_and_query() {
            Some(path) if !path.as_str().is_empty() => path.as_str(),
            _ => "/",
        }
    }

    /// The `Host` header.
    pub fn host_header(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        match (self.https, self.port) {
            (false, 80) | (true, 443) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }

    /// Where a `Location` of an answer from here leads.
    pub fn join(&self, location: &str) -> Result<Self, Error> {
        let location = location.split('#').next().unwrap_or_default();
        let scheme = ["http", "https"][usize::from(self.https)];
        let origin = format!("{scheme}://{}", self.host_header());
        let absolute = if has_scheme(location) {
            location.to_owned()
        } else if let Some(rest) = location.strip_prefix("//") {
            format!("{scheme}://{rest}")
        } else if location.starts_with('/') {
            format!("{origin}{location}")
        } else if location.is_empty() || location.starts_with('?') {
            let path = self.path().split('?').next().unwrap_or("/");
            format!("{origin}{path}{location}")
        } else {
            let path = self.path().split('?').next().unwrap_or("/");
            let directory = path.rfind('/').map_or("/", |slash| &path[..=slash]);
            format!(
                "{origin}{}",
                without_dots(&format!("{directory}{location}"))
            )
        };
        Self::parse(&absolute)
    }
}

/// Whether it begins with `name:` before any slash.
fn has_scheme(location: &str) -> bool {
    let name = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    };
    location
        .split_once(':')
        .is_some_and(|(scheme, _)| name(scheme))
}

/// Resolves `.` and `..` of a path that begins with a slash.
fn without_dots(path: &str) -> String {
    let (path, query) = match path.split_once('?') {
        Some((path, query)) => (path, format!("?{query}")),
        None => (path, String::new()),
    };
    let mut kept: Vec<&str> = Vec::new();
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    for (index, segment) in segments.iter().enumerate() {
        let last = index + 1 == segments.len();
        match *segment {
            "." | ".." => {
                if *segment == ".." {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            segment => kept.push(segment),
        }
    }
    format!("/{}{query}", kept.join("/"))
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.uri)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_read_from_where_it_was_sent() {
        let base = Target::parse("http://host:8080/a/b?c=d").unwrap();
        let cases = [
            ("/x", "http://host:8080/x"),
            ("x?y", "http://host:8080/a/x?y"),
            ("../x", "http://host:8080/x"),
            ("./", "http://host:8080/a/"),
            ("../../../x", "http://host:8080/x"),
            ("?q", "http://host:8080/a/b?q"),
            ("//other/x", "http://other/x"),
            ("https://other/x#part", "https://other/x"),
            ("a:b", ""),
            ("ftp://other/", ""),
            ("http://u@other/", ""),
            ("http:///x", ""),
        ];
        for (location, expected) in cases {
            let joined = base.join(location).map(|it| it.to_string());
            match expected {
                "" => assert!(joined.is_err(), "{location}: {joined:?}"),
                expected => assert_eq!(joined.unwrap(), expected, "{location}"),
            }
        }
    }

    #[test]
    fn origins_differ_by_scheme_host_and_port() {
        let at = |url: &str| Target::parse(url).unwrap();
        assert!(at("http://HOST/a").same_origin(&at("http://host:80/b")));
        assert!(!at("http://host").same_origin(&at("https://host")));
        assert!(!at("http://host").same_origin(&at("http://host:81")));
        assert!(!at("http://host").same_origin(&at("http://host.")));
        assert_eq!(at("http://[::1]:80/").host, "::1");
        assert_eq!(at("http://[::1]/").host_header(), "[::1]");
    }
}
