//! The servers that share a database, as the one that is asked sees them and as they tell of themselves.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Findings;
use super::server::items;
use crate::output::{duration, text};

/// A server whose clock is further off fires that much early or late.
const SKEW_MS: u64 = 1000;

pub fn is_shared(cluster: &Value) -> bool {
    text(cluster, "store") == "postgresql"
}

/// One finding for each kind of trouble; one for all when there is none.
pub fn check(cluster: &Value, findings: &mut Findings) {
    if !is_shared(cluster) {
        return;
    }
    let servers: Vec<&Value> = items(cluster, "servers").collect();
    let state = |server: &Value| text(server, "state");
    let (gone, live): (Vec<&Value>, Vec<&Value>) = servers
        .into_iter()
        .partition(|server| state(server) == "gone");
    let before = findings.count_all();
    doubles(&live, findings);
    let unowned = cluster["segments"]["unowned"].as_u64().unwrap_or(0);
    if unowned > 0 {
        findings.fail(
            "cluster",
            format!("{unowned} segments have no owner: their jobs do not fire"),
            "look again in ten seconds, a take-over takes less; if it stays so, start a server that is missing and see the logs of the others",
        );
    }
    if !gone.is_empty() {
        findings.warn(
            "cluster",
            format!("gone without a word: {}", named(&gone)),
            "see why it ended, then start it again; the others have its work",
        );
    }
    let silent = live.iter().filter(|it| it["answered"] == false);
    let silent: Vec<&Value> = silent.copied().collect();
    if !silent.is_empty() {
        findings.warn(
            "cluster",
            format!("not reached by the server that was asked: {}", named(&silent)),
            "check that servers reach each other at the addresses that `advertise` names, and trust each other's certificates (`peer_ca`)",
        );
    }
    versions(&live, findings);
    skews(&live, findings);
    if findings.count_all() == before {
        findings.ok(
            "cluster",
            format!("{} servers, each segment has its owner", live.len()),
        );
    }
}

/// Two that others reach at one address: requests that are sent on come to either of them.
fn doubles(live: &[&Value], findings: &mut Findings) {
    let mut at: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for server in live {
        let address = text(server, "address");
        if !address.is_empty() {
            at.entry(address).or_default().push(server);
        }
    }
    for (address, servers) in at.into_iter().filter(|(_, servers)| servers.len() > 1) {
        findings.fail(
            "cluster",
            format!(
                "{} servers say that they are reached at {address}",
                servers.len()
            ),
            "give each server an `advertise` of its own in its configuration",
        );
    }
}

fn versions(live: &[&Value], findings: &mut Findings) {
    let mut versions: Vec<String> = live.iter().map(|it| text(it, "version")).collect();
    versions.sort_unstable();
    versions.dedup();
    if versions.len() > 1 {
        findings.warn(
            "cluster",
            format!("servers of several versions: {}", versions.join(", ")),
            "upgrade the others too, one after another",
        );
    }
}

fn skews(live: &[&Value], findings: &mut Findings) {
    let far = live.iter().filter_map(|server| {
        let skew = server["skew_ms"].as_i64()?.unsigned_abs();
        (skew > SKEW_MS).then(|| format!("{} by {}", text(server, "name"), duration(skew)))
    });
    let far: Vec<String> = far.take(5).collect();
    if !far.is_empty() {
        findings.warn(
            "cluster",
            format!("clocks off the database's: {}", far.join(", ")),
            "set the clocks by NTP (chrony, systemd-timesyncd) on all machines",
        );
    }
}

/// The first few of them, with their addresses.
fn named(servers: &[&Value]) -> String {
    let name = |server: &&Value| match text(server, "address") {
        address if address.is_empty() => text(server, "name"),
        address => format!("{} ({address})", text(server, "name")),
    };
    servers
        .iter()
        .take(5)
        .map(name)
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn server(name: &str) -> Value {
        json!({"name": name, "address": format!("http://{name}"), "state": "active",
            "version": "1.0.0", "answered": true, "skew_ms": 3})
    }

    fn found(servers: &[Value], unowned: u64) -> Vec<(bool, String)> {
        let cluster =
            json!({"store": "postgresql", "servers": servers, "segments": {"unowned": unowned}});
        let mut findings = Findings::default();
        check(&cluster, &mut findings);
        findings.told()
    }

    #[test]
    fn each_trouble_is_told_and_nothing_else() {
        let with = |key: &str, value: Value| {
            let mut other = server("b");
            other[key] = value;
            found(&[server("a"), other], 0)
        };
        let told = |found: Vec<(bool, String)>, words: &str| {
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(!found[0].0 && found[0].1.contains(words), "{found:?}");
        };
        let well = found(&[server("a"), server("b")], 0);
        assert_eq!(
            well,
            [(true, "2 servers, each segment has its owner".to_owned())]
        );
        told(with("version", json!("1.1.0")), "1.0.0, 1.1.0");
        told(with("state", json!("gone")), "b (http://b)");
        told(with("address", json!("http://a")), "reached at http://a");
        told(with("skew_ms", json!(-1_500)), "b by 1.5s");
        told(with("answered", json!(false)), "not reached");
        told(found(&[server("a")], 12), "12 segments have no owner");
    }

    #[test]
    fn a_server_with_a_store_of_its_own_has_no_cluster() {
        let mut findings = Findings::default();
        check(&json!({"store": "sqlite", "servers": []}), &mut findings);
        assert_eq!(findings.count_all(), 0);
    }
}
