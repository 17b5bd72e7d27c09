//! Instants on the command line: `now`, a duration before or after it, or RFC 3339.

use std::str::FromStr;

use drumtower_core::schedule::parse_duration;
use jiff::{SignedDuration, Timestamp};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Relative to now.
    Offset(SignedDuration),
    At(Timestamp),
}

impl Moment {
    /// In whole milliseconds, as the server reads it.
    pub fn instant(self) -> Timestamp {
        let at = match self {
            Self::Offset(offset) => Timestamp::now()
                .checked_add(offset)
                .unwrap_or(Timestamp::UNIX_EPOCH),
            Self::At(at) => at,
        };
        Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at)
    }
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let offset = |digits: &str| {
            let ms = parse_duration(digits).map_err(|error| error.to_string())?;
            let ms = i64::try_from(ms).map_err(|_| format!("`{text}` is too long"))?;
            Ok::<_, String>(SignedDuration::from_millis(ms))
        };
        match text.split_at_checked(1) {
            _ if text == "now" => Ok(Self::Offset(SignedDuration::ZERO)),
            Some(("-", digits)) => offset(digits).map(|offset| Self::Offset(-offset)),
            Some(("+", digits)) => offset(digits).map(Self::Offset),
            _ => text.parse().map(Self::At).map_err(|_| {
                format!(
                    "`{text}` is not an instant: write `now`, a duration before it such as `-2h` or after it such as `+1d`, \
                     or RFC 3339 such as `2026-01-31T08:00:00Z`"
                )
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read_in_each_form() {
        let read = |text: &str| text.parse::<Moment>();
        assert_eq!(read("now"), Ok(Moment::Offset(SignedDuration::ZERO)));
        assert_eq!(
            read("-2h"),
            Ok(Moment::Offset(SignedDuration::from_hours(-2)))
        );
        assert_eq!(
            read("+1h30m"),
            Ok(Moment::Offset(SignedDuration::from_mins(90)))
        );
        assert_eq!(
            read("1970-01-01T01:00:00+01:00"),
            Ok(Moment::At(Timestamp::UNIX_EPOCH))
        );
        for text in ["", "-", "2h", "yesterday", "2026-01-31", "-2 parsecs", "é"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
