//! Networks as people write them: an address with a prefix length, or an address alone.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A network, such as `10.0.0.0/8` or `fd00::/8`; an address alone is a network of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    network: IpAddr,
    prefix: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a network: write an address or a network, such as 10.0.0.0/8 or fd00::/8")]
pub struct CidrError(String);

impl Cidr {
    pub const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Self {
        Self {
            network: IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
            prefix,
        }
    }

    pub const fn v6(segments: [u16; 8], prefix: u8) -> Self {
        let [a, b, c, d, e, f, g, h] = segments;
        Self {
            network: IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)),
            prefix,
        }
    }

    /// Whether the address lies in it. The two families are apart: a mapped address is not one of version 4 here.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let mask = mask(self.prefix, 32) as u32;
                network.to_bits() & mask == address.to_bits() & mask
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let mask = mask(self.prefix, 128);
                network.to_bits() & mask == address.to_bits() & mask
            }
            _ => false,
        }
    }

    /// Whether it holds one address only.
    pub fn is_single(&self) -> bool {
        self.prefix == width(self.network)
    }
}

/// The leading `prefix` bits of a number of `width` bits.
fn mask(prefix: u8, width: u8) -> u128 {
    let all = u128::MAX >> (128 - u32::from(width));
    let rest = all.checked_shr(u32::from(prefix)).unwrap_or(0);
    all & !rest
}

fn width(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Self, CidrError> {
        let odd = || CidrError(text.to_owned());
        let trimmed = text.trim();
        let (address, prefix) = match trimmed.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (trimmed, None),
        };
        let network: IpAddr = address.parse().map_err(|_| odd())?;
        let most = width(network);
        let prefix = match prefix {
            None => most,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map_err(|_| odd())?
            }
            Some(_) => return Err(odd()),
        };
        if prefix > most {
            return Err(odd());
        }
        Ok(Self { network, prefix })
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cidr(text: &str) -> Cidr {
        text.parse().expect("a network")
    }

    #[test]
    fn a_network_holds_its_addresses_and_no_others() {
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        assert!(cidr("10.0.0.0/8").contains(ip("10.255.0.1")));
        assert!(!cidr("10.0.0.0/8").contains(ip("11.0.0.1")));
        assert!(!cidr("10.0.0.0/8").contains(ip("::ffff:10.0.0.1")));
        assert!(cidr("0.0.0.0/0").contains(ip("255.1.2.3")));
        assert!(cidr("::/0").contains(ip("fe80::1")));
        assert!(cidr("127.0.0.1").contains(ip("127.0.0.1")));
        assert!(!cidr("127.0.0.1").contains(ip("127.0.0.2")));
        assert!(cidr("fd00:ec2::254/128").is_single());
    }

    #[test]
    fn what_is_no_network_is_refused_with_what_to_write() {
        for text in [
            "",
            "10",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/+8",
            "10.0.0.0/",
            "host/8",
        ] {
            let error = text.parse::<Cidr>().expect_err(text);
            assert!(error.to_string().contains("10.0.0.0/8"), "{error}");
        }
    }
}
