//! Which addresses may be dialled.
//!
//! Version 4 addresses are public unless a table says otherwise. Of version 6 only 2000::/3 is given out to the public, so all
//! else is refused, and a table names what is special inside it. Mapped addresses (`::ffff:a.b.c.d`) are judged, and
//! dialled, as the version 4 address that they are.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use http::Uri;

use crate::cidr::Cidr;

/// What may be reached, as configured. The default reaches public addresses only, directly.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Networks that are reachable though they are not public: exactly these.
    pub allow: Vec<Cidr>,
    /// Networks that are never reachable; wins over everything.
    pub deny: Vec<Cidr>,
    /// An HTTP proxy that is asked to connect to the checked address. It is itself dialled unchecked.
    pub proxy: Option<Uri>,
    /// Certificates in PEM form that are trusted beside those of the system.
    pub authorities: Vec<u8>,
}

/// Why an address is not dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Unspecified,
    Loopback,
    Private,
    LinkLocal,
    Shared,
    Metadata,
    Multicast,
    Broadcast,
    Documentation,
    UniqueLocal,
    Translated,
    Reserved,
    /// The configuration says so.
    Denied,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{address} is {kind}")]
pub struct Refusal {
    pub address: IpAddr,
    pub kind: Kind,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unspecified => "an unspecified address",
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::LinkLocal => "a link-local address",
            Self::Shared => "a shared address of a provider (carrier-grade NAT)",
            Self::Metadata => "the address of a metadata service",
            Self::Multicast => "a multicast address",
            Self::Broadcast => "a broadcast address",
            Self::Documentation => "an address for documentation",
            Self::UniqueLocal => "a unique local address",
            Self::Translated => "an address that stands for another one (NAT64, 6to4, Teredo)",
            Self::Reserved => "a reserved address",
            Self::Denied => "denied by configuration",
        })
    }
}

impl Policy {
    /// The address to dial for `address`, or why none.
    pub fn check(&self, address: SocketAddr) -> Result<SocketAddr, Refusal> {
        let ip = address.ip().to_canonical();
        let refused = |kind| Refusal { address: ip, kind };
        if self.deny.iter().any(|network| network.contains(ip)) {
            return Err(refused(Kind::Denied));
        }
        let listed = |network: &&Cidr| network.contains(ip);
        match special(ip) {
            None => {}
            // A wide network is rarely meant to hand out the machine's own credentials.
            Some(Kind::Metadata) if !self.allow.iter().filter(listed).any(Cidr::is_single) => {
                return Err(refused(Kind::Metadata));
            }
            Some(kind) if !self.allow.iter().any(|network| listed(&network)) => {
                return Err(refused(kind));
            }
            Some(_) => {}
        }
        Ok(match (address, ip) {
            // The scope of a link-local address is kept.
            (SocketAddr::V6(v6), IpAddr::V6(_)) => SocketAddr::V6(v6),
            (_, ip) => SocketAddr::new(ip, address.port()),
        })
    }
}

/// What is special about an address; `None` when the public may have it.
fn special(ip: IpAddr) -> Option<Kind> {
    let table = |table: &[(Cidr, Kind)]| {
        let found = table.iter().find(|(network, _)| network.contains(ip));
        found.map(|(_, kind)| *kind)
    };
    match ip {
        IpAddr::V4(_) => table(VERSION_4),
        IpAddr::V6(_) => {
            table(VERSION_6).or_else(|| (!GIVEN_OUT.contains(ip)).then_some(Kind::Reserved))
        }
    }
}

/// The first row that fits counts.
const VERSION_4: &[(Cidr, Kind)] = &[
    (Cidr::v4(169, 254, 169, 254, 32), Kind::Metadata),
    // Credentials of containers.
    (Cidr::v4(169, 254, 170, 2, 32), Kind::Metadata),
    (Cidr::v4(169, 254, 170, 23, 32), Kind::Metadata),
    (Cidr::v4(100, 100, 100, 200, 32), Kind::Metadata),
    (Cidr::v4(168, 63, 129, 16, 32), Kind::Metadata),
    (Cidr::v4(192, 0, 0, 192, 32), Kind::Metadata),
    (Cidr::v4(0, 0, 0, 0, 8), Kind::Unspecified),
    (Cidr::v4(10, 0, 0, 0, 8), Kind::Private),
    (Cidr::v4(100, 64, 0, 0, 10), Kind::Shared),
    (Cidr::v4(127, 0, 0, 0, 8), Kind::Loopback),
    (Cidr::v4(169, 254, 0, 0, 16), Kind::LinkLocal),
    (Cidr::v4(172, 16, 0, 0, 12), Kind::Private),
    (Cidr::v4(192, 0, 0, 0, 24), Kind::Reserved),
    (Cidr::v4(192, 0, 2, 0, 24), Kind::Documentation),
    (Cidr::v4(192, 31, 196, 0, 24), Kind::Reserved),
    (Cidr::v4(192, 52, 193, 0, 24), Kind::Reserved),
    (Cidr::v4(192, 88, 99, 0, 24), Kind::Translated),
    (Cidr::v4(192, 168, 0, 0, 16), Kind::Private),
    (Cidr::v4(192, 175, 48, 0, 24), Kind::Reserved),
    (Cidr::v4(198, 18, 0, 0, 15), Kind::Reserved),
    (Cidr::v4(198, 51, 100, 0, 24), Kind::Documentation),
    (Cidr::v4(203, 0, 113, 0, 24), Kind::Documentation),
    (Cidr::v4(224, 0, 0, 0, 4), Kind::Multicast),
    (Cidr::v4(255, 255, 255, 255, 32), Kind::Broadcast),
    (Cidr::v4(240, 0, 0, 0, 4), Kind::Reserved),
];

const GIVEN_OUT: Cidr = Cidr::v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

const VERSION_6: &[(Cidr, Kind)] = &[
    (
        Cidr::v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128),
        Kind::Metadata,
    ),
    (
        Cidr::v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23], 128),
        Kind::Metadata,
    ),
    (
        Cidr::v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128),
        Kind::Metadata,
    ),
    (Cidr::v6([0; 8], 128), Kind::Unspecified),
    (Cidr::v6([0, 0, 0, 0, 0, 0, 0, 1], 128), Kind::Loopback),
    // Compatible and translated forms of version 4.
    (Cidr::v6([0; 8], 64), Kind::Translated),
    (
        Cidr::v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96),
        Kind::Translated,
    ),
    (
        Cidr::v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48),
        Kind::Translated,
    ),
    (
        Cidr::v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32),
        Kind::Translated,
    ),
    (Cidr::v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), Kind::Reserved),
    (
        Cidr::v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
        Kind::Documentation,
    ),
    (
        Cidr::v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16),
        Kind::Translated,
    ),
    (
        Cidr::v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
        Kind::Documentation,
    ),
    (
        Cidr::v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7),
        Kind::UniqueLocal,
    ),
    (Cidr::v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), Kind::LinkLocal),
    (Cidr::v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), Kind::Private),
    (Cidr::v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), Kind::Multicast),
];

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
