//! The time zone of this machine, by its IANA name.

use std::path::Path;

/// What `TZ`, `/etc/timezone` or the link `/etc/localtime` says; `None` when none of them names a zone.
pub fn local() -> Option<String> {
    let variable = std::env::var("TZ").ok();
    let variable = variable.map(|zone| zone.trim_start_matches(':').to_owned());
    let file = || std::fs::read_to_string("/etc/timezone").ok();
    let link = || {
        let target = std::fs::read_link(Path::new("/etc/localtime")).ok()?;
        let (_, zone) = target.to_str()?.split_once("zoneinfo/")?;
        Some(zone.to_owned())
    };
    let known = |zone: String| {
        let zone = zone.trim().to_owned();
        (!zone.is_empty() && is_known(&zone)).then_some(zone)
    };
    variable
        .and_then(known)
        .or_else(|| link().and_then(known))
        .or_else(|| file().and_then(known))
}

pub fn is_known(zone: &str) -> bool {
    jiff::tz::TimeZone::get(zone).is_ok()
}

/// Names of the zone that manifests need not mention.
pub fn is_utc(zone: &str) -> bool {
    matches!(
        zone,
        "UTC"
            | "Etc/UTC"
            | "Etc/UCT"
            | "UCT"
            | "Universal"
            | "Etc/Universal"
            | "Zulu"
            | "Etc/Zulu"
            | "GMT"
            | "Etc/GMT"
    )
}
