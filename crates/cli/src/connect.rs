//! Where the server is and how to prove who asks.
//!
//! Flags win over `DRUMTOWER_URL` and `DRUMTOWER_TOKEN`, and those over what a server on this machine leaves in its data
//! directory: `server.url` and `local.token`.

use std::path::{Path, PathBuf};

use clap::Args;
use drumtower_sdk::tls::{Trust, in_the_open};
use drumtower_server::tls::SERVER_CERTIFICATE;

use ureq::http::Uri;

use crate::config;
use crate::failure::{Exit, Failure, Result};

/// The address that a server listens on unless told otherwise.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:7070";

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Connection")]
pub struct Connect {
    /// Where the server listens, such as http://127.0.0.1:7070 or https://scheduler:7070
    #[arg(long, env = "DRUMTOWER_URL", value_name = "URL")]
    pub url: Option<String>,
    /// The token to show to the server
    #[arg(
        long,
        env = "DRUMTOWER_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true
    )]
    pub token: Option<String>,
    /// The data directory of a server on this machine, where its address and a token are found
    #[arg(long, env = "DRUMTOWER_DATA", value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Certificates of the authorities that vouch for an https server, in place of the system's
    #[arg(long, env = "DRUMTOWER_CA", value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Show the token to another machine over http://, where it can be read on the way
    #[arg(long, env = "DRUMTOWER_INSECURE", value_parser = clap::builder::FalseyValueParser::new())]
    pub insecure: bool,
}

/// A server and a token for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub url: String,
    pub token: Option<String>,
    /// Which certificates are believed over https.
    pub trust: Trust,
}

impl Connect {
    pub fn target(&self) -> Result<Target> {
        let dir = match (&self.url, &self.token) {
            // Whoever says everything needs no configuration, and none that is broken stands in the way.
            (Some(_), Some(_)) => data_dir(self.data.as_deref()).unwrap_or_default(),
            _ => data_dir(self.data.as_deref())?,
        };
        let local_url = dir
            .as_ref()
            .and_then(|dir| first_line(&dir.join("server.url")));
        let local_token = dir
            .as_ref()
            .and_then(|dir| first_line(&dir.join("local.token")));
        if let (None, Some(data), None) = (&self.url, &self.data, &local_url) {
            let message = format!("no server runs from {}", data.display());
            let remedy = format!(
                "start one with `drumtower serve --data {}`, or give its address with --url",
                data.display()
            );
            return Err(Failure::new(Exit::Unavailable, message).remedy(remedy));
        }
        let pinned = dir.map(|dir| dir.join(SERVER_CERTIFICATE));
        self.choose(local_url, local_token, pinned)
    }

    /// A local token is only ever shown to the local server it came with, which is known by its certificate.
    fn choose(
        &self,
        local_url: Option<String>,
        local_token: Option<String>,
        pinned: Option<PathBuf>,
    ) -> Result<Target> {
        let given = self
            .url
            .as_deref()
            .map(|url| url.trim_end_matches('/').to_owned());
        let is_local = match (&given, &local_url) {
            (Some(given), Some(local)) => given == local,
            (None, Some(_)) => true,
            (_, None) => false,
        };
        let url = given
            .or(local_url)
            .unwrap_or_else(|| format!("http://{DEFAULT_LISTEN}"));
        check_url(&url)?;
        let token = self.token.clone().or(local_token.filter(|_| is_local));
        if token.is_some() && !self.insecure && in_the_open(&url) {
            let message = format!("the token would go to {url} unencrypted");
            return Err(Failure::usage(message)
                .remedy("use https://, or accept it with --insecure (DRUMTOWER_INSECURE=1)"));
        }
        let trust = Trust {
            only: pinned.filter(|_| is_local && self.ca.is_none()),
            ca: self.ca.clone(),
            identity: None,
            in_the_open: self.insecure,
        };
        Ok(Target { url, token, trust })
    }
}

/// Refuses what is no address of a server.
pub fn check_url(url: &str) -> Result<()> {
    let wrong = |why: String| {
        Err(
            Failure::usage(format!("the server's address `{url}` {why}"))
                .remedy(format!("--url http://{DEFAULT_LISTEN}")),
        )
    };
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return wrong("must begin with http:// or https://".to_owned());
    }
    match url.parse::<Uri>() {
        Ok(uri) if uri.host().is_some_and(|host| !host.is_empty()) => Ok(()),
        Ok(_) => wrong("names no host".to_owned()),
        Err(error) => wrong(format!("cannot be read as http://HOST:PORT: {error}")),
    }
}

/// The data directory: the one given, else the one that the configuration names, else the user's own: as a server finds it.
pub fn data_dir(given: Option<&Path>) -> Result<Option<PathBuf>> {
    match given {
        Some(given) => Ok(Some(given.to_owned())),
        None => Ok(config::data()?.or_else(|| own_dir(None))),
    }
}

/// Where the configuration file is looked for: the directory given, or the user's own.
pub fn own_dir(given: Option<&Path>) -> Option<PathBuf> {
    if let Some(given) = given {
        return Some(given.to_owned());
    }
    let variable = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let share = variable("XDG_DATA_HOME").or_else(|| Some(variable("HOME")?.join(".local/share")));
    share.map(|share| share.join("drumtower"))
}

/// As [`data_dir`], for commands that cannot do without.
pub fn require_data_dir(given: Option<&Path>) -> Result<PathBuf> {
    data_dir(given)?.ok_or_else(no_home)
}

pub fn no_home() -> Failure {
    Failure::usage("there is no home directory to keep data in")
        .remedy("give a directory with --data DIR")
}

fn first_line(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines()
        .next()
        .map(|line| line.trim().to_owned())
        .filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(url: Option<&str>, token: Option<&str>, local: Option<(&str, &str)>) -> Target {
        let connect = Connect {
            url: url.map(Into::into),
            token: token.map(Into::into),
            ..Connect::default()
        };
        connect
            .choose(local.map(|l| l.0.into()), local.map(|l| l.1.into()), None)
            .expect("a target")
    }

    #[test]
    fn a_local_server_needs_neither_flag() {
        let local = Some(("http://127.0.0.1:9", "drt_local"));
        let expected = Target {
            url: "http://127.0.0.1:9".into(),
            token: Some("drt_local".into()),
            trust: Trust::default(),
        };
        assert_eq!(choose(None, None, local), expected);
        assert_eq!(choose(Some("http://127.0.0.1:9/"), None, local), expected);
    }

    #[test]
    fn a_local_token_is_not_shown_to_another_server() {
        let local = Some(("http://127.0.0.1:9", "drt_local"));
        assert_eq!(
            choose(Some("http://10.0.0.1:7070"), None, local).token,
            None
        );
        assert_eq!(choose(None, None, None).url, "http://127.0.0.1:7070");
    }

    #[test]
    fn what_is_no_address_is_named() {
        for url in ["http://a b:1", "http://", "http://[::1", "ftp://a"] {
            let failure = check_url(url).expect_err("no address");
            assert!(failure.message().contains(&format!("`{url}`")), "{failure}");
        }
        check_url("https://scheduler:7070/drum").expect("an address");
    }

    #[test]
    fn flags_win() {
        let target = choose(
            Some("https://a:1"),
            Some("drt_mine"),
            Some(("https://b:2", "drt_local")),
        );
        assert_eq!(
            target,
            Target {
                url: "https://a:1".into(),
                token: Some("drt_mine".into()),
                trust: Trust::default(),
            }
        );
    }

    #[test]
    fn only_the_local_server_is_known_by_its_certificate_alone() {
        let target = |url: Option<&str>, ca: Option<&str>| {
            let connect = Connect {
                url: url.map(Into::into),
                ca: ca.map(Into::into),
                ..Connect::default()
            };
            let local = Some("https://127.0.0.1:9".to_owned());
            let pinned = Some(PathBuf::from("/d/server.pem"));
            connect.choose(local, None, pinned).expect("a target").trust
        };
        assert_eq!(target(None, None).only, Some("/d/server.pem".into()));
        assert_eq!(target(Some("https://a:9"), None), Trust::default());
        let given = target(None, Some("/ca.pem"));
        assert_eq!((given.only, given.ca), (None, Some("/ca.pem".into())));
    }
}
