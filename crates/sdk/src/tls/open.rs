//! Addresses to which a token would travel for everyone to read.

/// Whether what is sent there can be read on the way to another machine.
pub fn in_the_open(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else {
        return false;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let loopback = host
        .parse::<std::net::IpAddr>()
        .is_ok_and(|address| address.to_canonical().is_loopback());
    !loopback && !host.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_does_not_leave_the_machine_in_the_open() {
        for url in [
            "http://127.0.0.1:7070",
            "http://[::1]:7070",
            "http://localhost",
            "http://[::ffff:127.0.0.1]:1/",
            "https://scheduler:7070",
        ] {
            assert!(!in_the_open(url), "{url}");
        }
        for url in [
            "http://scheduler:7070",
            "http://10.0.0.1:7070/x",
            "http://localhost.example.com",
            "http://127.0.0.1@elsewhere:7070",
            "http://[2001:db8::1]:7070",
        ] {
            assert!(in_the_open(url), "{url}");
        }
    }
}
