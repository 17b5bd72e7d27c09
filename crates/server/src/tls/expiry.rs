//! When a certificate ends, read from its DER.
//!
//! Only as much of X.509 as leads there: Certificate → tbsCertificate → [version], serial, algorithm, issuer, validity →
//! notAfter. Anything else than expected is `None`, never a panic.

use jiff::civil::DateTime;
use jiff::tz::Offset;

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Seconds since 1970.
pub fn not_after(certificate: &[u8]) -> Option<i64> {
    let (certificate, _) = element(certificate, SEQUENCE)?;
    let (mut rest, _) = element(certificate, SEQUENCE)?;
    if rest.first() == Some(&VERSION) {
        rest = any(rest)?.2;
    }
    // Serial number, algorithm, issuer.
    for _ in 0..3 {
        rest = any(rest)?.2;
    }
    let (validity, _) = element(rest, SEQUENCE)?;
    let after = any(validity)?.2;
    let (tag, text, _) = any(after)?;
    instant(tag, std::str::from_utf8(text).ok()?)
}

fn element(input: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = any(input)?;
    (found == tag).then_some((content, rest))
}

/// Tag, content, and what follows.
fn any(input: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = input.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let length = if first < 0x80 {
        usize::from(first)
    } else {
        let (bytes, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
        if bytes.len() > 4 {
            return None;
        }
        rest = after;
        bytes
            .iter()
            .fold(0, |length, byte| length << 8 | usize::from(*byte))
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ`.
fn instant(tag: u8, text: &str) -> Option<i64> {
    let digits = text.strip_suffix('Z')?;
    let number = |from: usize, to: usize| digits.get(from..to)?.parse::<i8>().ok();
    let (year, at) = match tag {
        // Years 50 to 99 are of the last century.
        UTC_TIME => match i16::from(number(0, 2)?) {
            year @ 50.. => (1900 + year, 2),
            year => (2000 + year, 2),
        },
        GENERALIZED_TIME => (digits.get(..4)?.parse().ok()?, 4),
        _ => return None,
    };
    let time = DateTime::new(
        year,
        number(at, at + 2)?,
        number(at + 2, at + 4)?,
        number(at + 4, at + 6)?,
        number(at + 6, at + 8)?,
        number(at + 8, at + 10)?,
        0,
    );
    let instant = Offset::UTC.to_timestamp(time.ok()?).ok()?;
    Some(instant.as_second())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    fn made(year: i32, month: u8, day: u8) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["a".to_owned()]).unwrap();
        params.not_before = date_time_ymd(1999, 1, 1);
        params.not_after = date_time_ymd(year, month, day);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn both_spellings_of_time_are_read() {
        assert_eq!(not_after(&made(2030, 1, 2)), Some(1_893_542_400));
        assert_eq!(not_after(&made(2070, 1, 1)), Some(3_155_760_000));
    }

    #[test]
    fn a_damaged_certificate_has_no_end() {
        let whole = made(2030, 1, 2);
        for length in 0..whole.len().min(200) {
            assert_eq!(not_after(&whole[..length]), None);
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            let _ = not_after(&damaged);
        }
    }
}
