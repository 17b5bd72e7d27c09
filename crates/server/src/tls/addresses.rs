//! How this machine is called and where it can be reached, for a certificate that is made for it.

use std::net::IpAddr;

/// Addresses of interfaces that are up, without those of the link alone.
#[cfg(unix)]
pub(super) fn of_this_machine() -> Vec<IpAddr> {
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: `list` is a place for one pointer, which the call fills or leaves null.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut at = list;
    while !at.is_null() {
        // SAFETY: `at` is an entry of the list, which is freed only below.
        let entry = unsafe { &*at };
        // SAFETY: the address is null or valid for its family, as the call promises.
        found.extend(unsafe { address(entry.ifa_addr) });
        at = entry.ifa_next;
    }
    // SAFETY: the list came from getifaddrs and nothing borrows from it any more.
    unsafe { libc::freeifaddrs(list) };
    found.retain(|ip| match ip {
        IpAddr::V4(v4) => !v4.is_link_local(),
        IpAddr::V6(v6) => !v6.is_unicast_link_local(),
    });
    found
}

/// # Safety
/// The pointer is null, or points to an address that is whole for the family it names.
#[cfg(unix)]
unsafe fn address(pointer: *const libc::sockaddr) -> Option<IpAddr> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: not null, and every address begins with its family.
    let family = i32::from(unsafe { (*pointer).sa_family });
    match family {
        libc::AF_INET => {
            // SAFETY: the family says what it is; no alignment is assumed.
            let v4 = unsafe { pointer.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(IpAddr::from(v4.sin_addr.s_addr.to_ne_bytes()))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let v6 = unsafe { pointer.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(IpAddr::from(v6.sin6_addr.s6_addr))
        }
        _ => None,
    }
}

#[cfg(not(unix))]
pub(super) fn of_this_machine() -> Vec<IpAddr> {
    Vec::new()
}

/// The machine's name, if a certificate can hold it.
pub(super) fn host_name() -> Option<String> {
    let name = read_name()?;
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    (!name.is_empty() && name.len() <= 253 && name.chars().all(fits)).then_some(name)
}

#[cfg(unix)]
fn read_name() -> Option<String> {
    let mut bytes = [0_u8; 256];
    // SAFETY: the buffer is ours and its length is given less one, so that it ends with a zero.
    let done = unsafe { libc::gethostname(bytes.as_mut_ptr().cast(), bytes.len() - 1) };
    if done != 0 {
        return None;
    }
    let end = bytes.iter().position(|byte| *byte == 0)?;
    String::from_utf8(bytes[..end].to_vec()).ok()
}

#[cfg(not(unix))]
fn read_name() -> Option<String> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_among_the_addresses() {
        assert!(of_this_machine().iter().any(IpAddr::is_loopback));
    }
}
