//! What the server says, and what can be said of the way to it.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use drumtower_server::tls::not_after;
use jiff::Timestamp;
use rustls::ClientConnection;
use rustls::pki_types::ServerName;
use serde_json::Value;
use ureq::http::Uri;

use super::{Findings, cluster};
use crate::client::{Call, Client};
use crate::connect::{Connect, Target};
use crate::failure::Exit;
use crate::output::{duration, text};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Clocks further apart than this are worth a word, and than that a problem.
const SKEW_MS: i64 = 1000;
const WRONG_MS: i64 = 60_000;
const CERTIFICATE_DAYS: i64 = 14;
const BACKUP_DAYS: i64 = 7;
const CONNECT: Duration = Duration::from_secs(5);
const DAY_MS: i64 = 86_400_000;

pub fn check(connect: &Connect, findings: &mut Findings) {
    let target = match connect.target() {
        Ok(target) => target,
        Err(failure) => {
            return findings.fail(
                "server",
                failure.message(),
                "start one with `drumtower serve`, name one with --url, or look without one: --offline",
            );
        }
    };
    let client = Client::to(target.clone());
    if let Err(failure) = client.value(Call::get("/healthz")) {
        return findings.fail(
            "server",
            failure.message(),
            "start it with `drumtower serve`; name another with --url; --ca FILE for its certificate",
        );
    }
    findings.ok("server", format!("{} answers", target.url));
    transport(&target, findings);
    match client.value(Call::get("/readyz")) {
        Ok(_) => findings.ok("ready", "changes can be committed"),
        Err(failure) => findings.fail(
            "ready",
            failure.message(),
            "see the server's log; often the disk is full",
        ),
    }
    let before = Timestamp::now();
    let overview = match client.value(Call::get("/api/v1/overview")) {
        Ok(overview) => overview,
        Err(failure) if failure.exit == Exit::Refused => {
            return findings.fail(
                "token",
                failure.message(),
                "give a token with a role that may look: --token, DRUMTOWER_TOKEN, `drumtower token create`",
            );
        }
        Err(failure) => {
            return findings.fail("token", failure.message(), "is the server of this version?");
        }
    };
    let after = Timestamp::now();
    who(&overview, findings);
    versions(&overview, findings);
    clocks(&overview, before, after, findings);
    // A server of before there were several has no such route, and nothing to tell of others.
    let others = client.value(Call::get("/api/v1/cluster")).ok();
    if let Some(others) = &others {
        cluster::check(others, findings);
    }
    workers(&overview, findings);
    match others.as_ref().is_some_and(cluster::is_shared) {
        true => findings.ok(
            "backup",
            "the state lies in PostgreSQL: back it up with pg_dump or its other means",
        ),
        false => backups(&client, &overview, findings),
    }
}

/// Whether what is sent can be read by others, and how long that stays so.
fn transport(target: &Target, findings: &mut Findings) {
    let Ok(uri) = target.url.parse::<Uri>() else {
        return;
    };
    let host = uri.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if uri.scheme_str() != Some("https") {
        let loopback = host == "localhost"
            || host
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback());
        return if loopback {
            findings.ok("tls", "not used, and nothing leaves this machine");
        } else {
            findings.warn(
                "tls",
                "tokens and output travel unencrypted",
                "`drumtower serve --tls-dev`, or --tls-cert and --tls-key",
            );
        };
    }
    match end_of_certificate(target, host, uri.port_u16().unwrap_or(443)) {
        Ok(Some(end)) => {
            let days = (end - Timestamp::now().as_second()) / 86_400;
            let date = Timestamp::from_second(end).unwrap_or_default();
            let words = format!("trusted; the certificate ends in {days} days, {date}");
            if days < CERTIFICATE_DAYS {
                findings.warn(
                    "tls",
                    words,
                    "put a new certificate in place; the server reads it by itself",
                );
            } else {
                findings.ok("tls", words);
            }
        }
        Ok(None) => findings.ok("tls", "trusted"),
        Err(error) => findings.fail(
            "tls",
            error.to_string(),
            "--ca FILE with the authority of the server",
        ),
    }
}

/// When the certificate that the server shows ends, in seconds since 1970.
fn end_of_certificate(target: &Target, host: &str, port: u16) -> io::Result<Option<i64>> {
    let config = target
        .trust
        .config(&[b"http/1.1"])
        .map_err(io::Error::other)?;
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let mut connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
    let address = (host, port)
        .to_socket_addrs()?
        .next()
        .ok_or_else(|| io::Error::other(format!("`{host}` has no address")))?;
    let mut socket = TcpStream::connect_timeout(&address, CONNECT)?;
    socket.set_read_timeout(Some(CONNECT))?;
    socket.set_write_timeout(Some(CONNECT))?;
    while connection.is_handshaking() {
        connection.complete_io(&mut socket)?;
    }
    let shown = connection.peer_certificates();
    Ok(shown.and_then(|chain| not_after(chain.first()?)))
}

fn who(overview: &Value, findings: &mut Findings) {
    let namespace = match text(overview, "caller.namespace") {
        name if name.is_empty() => "all namespaces".to_owned(),
        name => format!("namespace {name}"),
    };
    let (name, role) = (text(overview, "caller.name"), text(overview, "caller.role"));
    findings.ok("token", format!("`{name}`, {role} of {namespace}"));
}

pub(super) fn items<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value
        .get(field)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn versions(overview: &Value, findings: &mut Findings) {
    let server = text(overview, "version");
    if server != VERSION {
        return findings.warn(
            "version",
            format!("the server is {server}, this program is {VERSION}"),
            "upgrade the server first, then workers and command lines",
        );
    }
    let other: Vec<String> = items(overview, "workers")
        .filter(|worker| text(worker, "version") != server)
        .map(|worker| format!("{} is {}", text(worker, "name"), text(worker, "version")))
        .take(5)
        .collect();
    if other.is_empty() {
        findings.ok("version", format!("{VERSION} everywhere"));
    } else {
        findings.warn(
            "version",
            format!("the server is {server}; workers: {}", other.join(", ")),
            "upgrade them, one after another; their runs go on",
        );
    }
}

fn clocks(overview: &Value, before: Timestamp, after: Timestamp, findings: &mut Findings) {
    let Ok(server) = text(overview, "now").parse::<Timestamp>() else {
        return;
    };
    let here = before.as_millisecond().midpoint(after.as_millisecond());
    let own = server.as_millisecond() - here;
    let worst = items(overview, "workers")
        .filter_map(|worker| Some((worker.get("skew_ms")?.as_i64()?, text(worker, "name"))))
        .max_by_key(|(skew, _)| skew.unsigned_abs());
    let mut far = vec![(own, "this machine".to_owned())];
    far.extend(worst);
    let (skew, whose) = far
        .into_iter()
        .max_by_key(|(skew, _)| skew.unsigned_abs())
        .unwrap_or_default();
    let words = format!(
        "{} between the server and {whose}",
        duration(skew.unsigned_abs())
    );
    let remedy = "set the clocks by NTP (chrony, systemd-timesyncd) on all machines";
    match i64::try_from(skew.unsigned_abs()).unwrap_or(i64::MAX) {
        0..SKEW_MS => findings.ok("clock", words),
        SKEW_MS..WRONG_MS => findings.warn("clock", words, remedy),
        _ => findings.fail("clock", words, remedy),
    }
}

fn workers(overview: &Value, findings: &mut Findings) {
    let all: Vec<&Value> = items(overview, "workers").collect();
    let up = |worker: &&&Value| matches!(text(worker, "state").as_str(), "ONLINE" | "BUSY");
    let count = all.iter().filter(up).count();
    if count == 0 {
        findings.warn(
            "workers",
            "none is connected: nothing runs",
            "`drumtower work` on this machine, or with --url and --token-file on another",
        );
    } else if count < all.len() {
        findings.warn(
            "workers",
            format!(
                "{count} of {} take work; {}",
                all.len(),
                out_of_service(&all)
            ),
            "`drumtower worker list` says why; `drumtower worker resume` ends a drain, `drumtower worker reset` trusts a faulty one",
        );
    } else {
        findings.ok("workers", format!("{count} connected"));
    }
    let stuck: Vec<String> = items(overview, "lines")
        .filter(|line| !all.iter().filter(up).any(|worker| offers(worker, line)))
        .map(|line| {
            let (waiting, need) = (text(line, "waiting"), text(line, "need"));
            format!("{waiting} of {} for `{need}`", text(line, "namespace"))
        })
        .take(5)
        .collect();
    if stuck.is_empty() {
        findings.ok(
            "waiting",
            format!(
                "{} runs, each has its workers",
                text(overview, "runs.waiting")
            ),
        );
    } else {
        findings.fail(
            "waiting",
            format!("no worker offers what runs wait for: {}", stuck.join("; ")),
            "start a worker with that handler, or one that may run commands, for that namespace",
        );
    }
}

/// The first few workers that take no work, with their states.
fn out_of_service(workers: &[&Value]) -> String {
    let out = workers.iter().filter_map(|worker| {
        let state = text(worker, "state");
        let out = !matches!(state.as_str(), "ONLINE" | "BUSY");
        out.then(|| format!("`{}` is {state}", text(worker, "name")))
    });
    out.take(5).collect::<Vec<_>>().join(", ")
}

/// Whether a worker could ever take a run of the line.
fn offers(worker: &Value, line: &Value) -> bool {
    let bound = text(worker, "namespace");
    if !bound.is_empty() && bound != text(line, "namespace") {
        return false;
    }
    let weight = |value: &Value, field: &str| value.get(field).and_then(Value::as_u64);
    if weight(worker, "capacity") < weight(line, "weight") {
        return false;
    }
    let need = text(line, "need");
    match need.strip_prefix("handler:") {
        Some(handler) => items(worker, "handlers").any(|it| it.as_str() == Some(handler)),
        None => worker.get(need.as_str()) == Some(&Value::Bool(true)),
    }
}

/// Only those who may make backups may see them.
fn backups(client: &Client, overview: &Value, findings: &mut Findings) {
    if text(overview, "caller.role") != "admin" {
        return;
    }
    let Ok(backups) = client.value(Call::get("/api/v1/backups")) else {
        return;
    };
    let newest = items(&backups, "items")
        .filter_map(|backup| text(backup, "created").parse::<Timestamp>().ok())
        .max();
    let remedy = "`drumtower backup`, or `backup.every` in the configuration";
    match newest {
        None => findings.warn("backup", "there is none", remedy),
        Some(newest) => {
            let age = Timestamp::now().as_millisecond() - newest.as_millisecond();
            let words = format!(
                "the newest is {} old",
                duration(u64::try_from(age).unwrap_or(0))
            );
            if age > BACKUP_DAYS * DAY_MS {
                findings.warn("backup", words, remedy);
            } else {
                findings.ok("backup", words);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_worker_offers_what_its_line_needs_or_not() {
        let worker = json!({"exec": true, "http": false, "handlers": ["mail"], "capacity": 4, "namespace": "a"});
        let line = |namespace: &str, need: &str, weight: u32| json!({"namespace": namespace, "need": need, "weight": weight});
        assert!(offers(&worker, &line("a", "exec", 4)));
        assert!(offers(&worker, &line("a", "handler:mail", 1)));
        assert!(!offers(&worker, &line("a", "exec", 5)), "too heavy");
        assert!(!offers(&worker, &line("b", "exec", 1)), "another namespace");
        assert!(!offers(&worker, &line("a", "http", 1)));
        assert!(!offers(&worker, &line("a", "handler:sms", 1)));
    }
}
