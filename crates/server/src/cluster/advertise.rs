//! Whether others can reach a server by the address that it tells them.

use std::net::{IpAddr, SocketAddr};

/// Why servers on other machines would not reach this one, or would reach themselves, by what it advertises: it is made of
/// `listen` unless given.
pub fn fault(listen: SocketAddr, advertise: Option<&str>) -> Option<String> {
    if listen.ip().is_loopback() {
        return None;
    }
    match advertise {
        None if listen.ip().is_unspecified() => Some(format!(
            "advertise: it is not given, and `listen` ({listen}) is no address by which others reach this server, so each would take itself for all"
        )),
        Some(url) if is_own_machine(url) => Some(format!(
            "advertise: `{url}` is an address of the machine itself on every machine, so servers on others would ask themselves"
        )),
        _ => None,
    }
}

fn is_own_machine(url: &str) -> bool {
    let url: Option<http::Uri> = url.parse().ok();
    let Some(host) = url.as_ref().and_then(http::Uri::host) else {
        return false;
    };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(ip) => ip.is_loopback() || ip.is_unspecified(),
        Err(_) => {
            let name = bare.trim_end_matches('.').to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(listen: &str, advertise: Option<&str>) -> bool {
        fault(listen.parse().expect("an address"), advertise).is_some()
    }

    #[test]
    fn an_address_that_means_oneself_everywhere_is_no_address_for_others() {
        for listen in ["0.0.0.0:7070", "[::]:7070"] {
            assert!(is_refused(listen, None), "{listen}");
            assert!(!is_refused(
                listen,
                Some("https://drumtower-1.example:7070")
            ));
        }
        for url in [
            "https://127.0.0.1:7070",
            "http://localhost:7070",
            "https://[::1]:7070",
            "http://0.0.0.0:7070",
            "https://LOCALHOST./",
        ] {
            assert!(is_refused("0.0.0.0:7070", Some(url)), "{url}");
            assert!(is_refused("10.0.0.5:7070", Some(url)), "{url}");
        }
    }

    #[test]
    fn what_names_one_machine_is_enough() {
        assert!(!is_refused("10.0.0.5:7070", None));
        // All servers are on this machine.
        assert!(!is_refused("127.0.0.1:7070", None));
        assert!(!is_refused("127.0.0.1:7070", Some("http://127.0.0.1:7071")));
    }
}
