//! Every range by name, its edges, and all forms of an address as properties.

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn policy(allow: &[&str]) -> Policy {
    Policy {
        allow: allow
            .iter()
            .map(|text| text.parse().expect("a network"))
            .collect(),
        ..Policy::default()
    }
}

fn verdict(policy: &Policy, address: IpAddr) -> Option<Kind> {
    policy
        .check(SocketAddr::new(address, 80))
        .err()
        .map(|refusal| refusal.kind)
}

#[test]
fn every_special_range_is_refused_by_its_name() {
    let cases = [
        ("0.0.0.0", Kind::Unspecified),
        ("0.1.2.3", Kind::Unspecified),
        ("10.1.2.3", Kind::Private),
        ("100.64.0.1", Kind::Shared),
        ("100.127.255.255", Kind::Shared),
        ("127.0.0.1", Kind::Loopback),
        ("127.255.255.254", Kind::Loopback),
        ("169.254.0.1", Kind::LinkLocal),
        ("169.254.169.254", Kind::Metadata),
        ("169.254.170.2", Kind::Metadata),
        ("169.254.170.23", Kind::Metadata),
        ("::ffff:169.254.170.2", Kind::Metadata),
        ("168.63.129.16", Kind::Metadata),
        ("172.16.0.1", Kind::Private),
        ("172.31.255.255", Kind::Private),
        ("192.0.2.1", Kind::Documentation),
        ("192.168.1.1", Kind::Private),
        ("198.18.0.1", Kind::Reserved),
        ("203.0.113.9", Kind::Documentation),
        ("224.0.0.1", Kind::Multicast),
        ("239.255.255.255", Kind::Multicast),
        ("240.0.0.1", Kind::Reserved),
        ("255.255.255.255", Kind::Broadcast),
        ("::", Kind::Unspecified),
        ("::1", Kind::Loopback),
        ("::7f00:1", Kind::Translated),
        ("::ffff:127.0.0.1", Kind::Loopback),
        ("::ffff:169.254.169.254", Kind::Metadata),
        ("::ffff:0:127.0.0.1", Kind::Translated),
        ("64:ff9b::7f00:1", Kind::Translated),
        ("64:ff9b::808:808", Kind::Translated),
        ("64:ff9b:1::1", Kind::Translated),
        ("100::1", Kind::Reserved),
        ("2001::1", Kind::Translated),
        ("2001:2::1", Kind::Reserved),
        ("2001:db8::1", Kind::Documentation),
        ("2002:7f00:1::", Kind::Translated),
        ("3fff::1", Kind::Documentation),
        ("4000::1", Kind::Reserved),
        ("5f00::1", Kind::Reserved),
        ("fc00::1", Kind::UniqueLocal),
        ("fd12:3456::1", Kind::UniqueLocal),
        ("fd00:ec2::254", Kind::Metadata),
        ("fd00:ec2::23", Kind::Metadata),
        ("fe80::1", Kind::LinkLocal),
        ("fec0::1", Kind::Private),
        ("ff02::1", Kind::Multicast),
    ];
    for (text, kind) in cases {
        assert_eq!(verdict(&Policy::default(), ip(text)), Some(kind), "{text}");
    }
}

#[test]
fn public_addresses_pass_and_edges_of_ranges_are_exact() {
    for text in [
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.167.255.255",
        "192.169.0.0",
        "223.255.255.255",
        "::ffff:8.8.8.8",
        "2606:4700:4700::1111",
        "2001:4860:4860::8888",
        "2a00::1",
    ] {
        assert_eq!(verdict(&Policy::default(), ip(text)), None, "{text}");
    }
}

#[test]
fn what_is_listed_is_reached_and_nothing_beside_it() {
    let some = policy(&["127.0.0.1", "10.1.0.0/16", "fd12::/16", "169.254.0.0/16"]);
    assert_eq!(verdict(&some, ip("127.0.0.1")), None);
    assert_eq!(verdict(&some, ip("::ffff:127.0.0.1")), None);
    assert_eq!(verdict(&some, ip("127.0.0.2")), Some(Kind::Loopback));
    assert_eq!(verdict(&some, ip("::1")), Some(Kind::Loopback));
    assert_eq!(verdict(&some, ip("10.1.255.1")), None);
    assert_eq!(verdict(&some, ip("10.2.0.1")), Some(Kind::Private));
    assert_eq!(verdict(&some, ip("fd12::1")), None);
    assert_eq!(verdict(&some, ip("fd13::1")), Some(Kind::UniqueLocal));
    assert_eq!(verdict(&some, ip("169.254.1.1")), None);
    for metadata in ["169.254.169.254", "169.254.170.2", "169.254.170.23"] {
        assert_eq!(verdict(&some, ip(metadata)), Some(Kind::Metadata));
    }
    let exact = policy(&["169.254.169.254/32"]);
    assert_eq!(verdict(&exact, ip("169.254.169.254")), None);
    let all = policy(&["0.0.0.0/0", "::/0"]);
    assert_eq!(verdict(&all, ip("169.254.169.254")), Some(Kind::Metadata));
    assert_eq!(verdict(&all, ip("10.0.0.1")), None);
}

#[test]
fn a_denied_network_is_denied_though_public_or_allowed() {
    let mut policy = policy(&["10.0.0.0/8"]);
    policy.deny = vec!["10.9.0.0/16".parse().unwrap(), "8.8.8.8".parse().unwrap()];
    assert_eq!(verdict(&policy, ip("8.8.8.8")), Some(Kind::Denied));
    assert_eq!(verdict(&policy, ip("10.9.0.1")), Some(Kind::Denied));
    assert_eq!(verdict(&policy, ip("::ffff:10.9.0.1")), Some(Kind::Denied));
    assert_eq!(verdict(&policy, ip("10.8.0.1")), None);
}

proptest! {
    /// What the standard library holds to be special is refused, in every form that carries a version 4 address.
    #[test]
    fn no_form_of_a_special_version_4_address_passes(bits: u32) {
        let v4 = Ipv4Addr::from_bits(bits);
        let special = v4.is_loopback()
            || v4.is_private()
            || v4.is_link_local()
            || v4.is_unspecified()
            || v4.is_multicast()
            || v4.is_broadcast()
            || v4.is_documentation();
        let plain = verdict(&Policy::default(), v4.into());
        prop_assert!(!special || plain.is_some(), "{v4}");
        // A mapped address is judged as the address that it maps, and dialled as it.
        prop_assert_eq!(verdict(&Policy::default(), v4.to_ipv6_mapped().into()), plain);
        if plain.is_none() {
            let dialled = Policy::default().check(SocketAddr::new(v4.to_ipv6_mapped().into(), 1)).unwrap();
            prop_assert_eq!(dialled, SocketAddr::new(v4.into(), 1));
        }
        // Other forms are never dialled, whatever they carry.
        let [a, b] = [(bits >> 16) as u16, bits as u16];
        for form in [
            Ipv6Addr::new(0, 0, 0, 0, 0, 0, a, b),
            Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, a, b),
            Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, a, b),
            Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, a, b),
            Ipv6Addr::new(0x2002, a, b, 0, 0, 0, 0, 1),
            Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, !a, !b),
        ] {
            prop_assert!(verdict(&Policy::default(), form.into()).is_some(), "{form}");
        }
    }

    #[test]
    fn of_version_6_only_what_is_given_out_passes(bits: u128) {
        let v6 = Ipv6Addr::from_bits(bits);
        if verdict(&Policy::default(), v6.into()).is_none() && v6.to_ipv4_mapped().is_none() {
            prop_assert_eq!(v6.segments()[0] & 0xe000, 0x2000);
        }
        prop_assert!(!v6.is_multicast() || verdict(&Policy::default(), v6.into()).is_some());
    }

    /// A list of one address opens that address and no other.
    #[test]
    fn one_listed_address_opens_nothing_else(listed: u32, other: u32) {
        let policy = Policy {
            allow: vec![Ipv4Addr::from_bits(listed).to_string().parse().unwrap()],
            ..Policy::default()
        };
        prop_assert_eq!(verdict(&policy, Ipv4Addr::from_bits(listed).into()), None);
        if listed != other {
            let other = IpAddr::from(Ipv4Addr::from_bits(other));
            prop_assert_eq!(verdict(&policy, other), verdict(&Policy::default(), other));
        }
    }
}
