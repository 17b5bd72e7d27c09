//! The database that servers share: whether it answers, how fast, and by which clock.

use drumtower_store::Address;

use super::Findings;

/// A server whose clock is further off fires that much early or late.
#[cfg(feature = "postgres")]
const FAR_OFF_MS: i64 = 1_000;
/// Each commit waits for a few round trips.
#[cfg(feature = "postgres")]
const SLOW_MS: u128 = 20;

#[cfg(feature = "postgres")]
pub fn check(address: &Address, findings: &mut Findings) {
    let Address::Postgres(target) = address else {
        return;
    };
    let look = match drumtower_store::postgres::look(target) {
        Ok(look) => look,
        Err(error) => {
            return findings.fail(
                "database",
                error.to_string(),
                "see that the server of `store` runs, and that this machine and its role may connect",
            );
        }
    };
    let schema = match look.schema_version {
        Some(version) => format!("schema version {version}"),
        None => "no tables yet".to_owned(),
    };
    let trip = format!("{:.1} ms", look.round_trip.as_secs_f64() * 1e3);
    let encrypted = match look.encrypted {
        true => "encrypted",
        false => "not encrypted",
    };
    let words = format!(
        "{target}: PostgreSQL {}, {schema}, answers in {trip}, {encrypted}",
        look.version
    );
    if look.round_trip.as_millis() > SLOW_MS {
        findings.warn(
            "database",
            words,
            "every commit waits for it a few times: put servers and database close together",
        );
    } else {
        findings.ok("database", words);
    }
    let ahead = look.ahead_ms;
    if ahead.abs() > FAR_OFF_MS {
        findings.warn(
            "clock",
            format!("the database's clock is {ahead} ms ahead of this machine's"),
            "keep the clocks of all machines together, with chrony or another client of NTP",
        );
    } else {
        findings.ok("clock", format!("{ahead} ms from the database's clock"));
    }
}

#[cfg(not(feature = "postgres"))]
pub fn check(_: &Address, _: &mut Findings) {}
