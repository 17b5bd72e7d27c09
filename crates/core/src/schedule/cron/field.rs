//! What each of the seven fields accepts.

use super::super::civil::{FIRST_YEAR, LAST_YEAR};

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) min: u32,
    pub(super) max: u32,
    /// Where `*` and open steps end; Sunday is 0 and also 7, but only once in a week.
    pub(super) last: u32,
    /// Names of the values from `min` on.
    pub(super) names: &'static [&'static str],
    pub(super) kind: Kind,
}

/// Which special items a field takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    /// `?`, `L`, `W`
    Day,
    /// `?`, `L`, `#`
    Weekday,
}

const fn number(name: &'static str, min: u32, max: u32) -> Field {
    Field {
        name,
        min,
        max,
        last: max,
        names: &[],
        kind: Kind::Plain,
    }
}

pub(super) const SECOND: Field = number("second", 0, 59);
pub(super) const MINUTE: Field = number("minute", 0, 59);
pub(super) const HOUR: Field = number("hour", 0, 23);
pub(super) const DAY: Field = Field {
    kind: Kind::Day,
    ..number("day of month", 1, 31)
};
pub(super) const MONTH: Field = Field {
    names: &[
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ],
    ..number("month", 1, 12)
};
pub(super) const WEEKDAY: Field = Field {
    last: 6,
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
    kind: Kind::Weekday,
    ..number("day of week", 0, 7)
};
pub(super) const YEAR: Field = number("year", FIRST_YEAR as u32, LAST_YEAR as u32);

impl Field {
    /// The value that a name stands for, in any case of letters.
    pub(super) fn named(&self, text: &str) -> Option<u32> {
        let same = |name: &&str| name.eq_ignore_ascii_case(text);
        let index = self.names.iter().position(same)?;
        Some(self.min + index as u32)
    }

    /// Calls a value that has two numbers, Sunday, by its first.
    pub(super) fn once(&self, value: u32) -> u32 {
        if value > self.last { self.min } else { value }
    }

    /// What may stand for a value.
    pub(super) fn allowed(&self) -> String {
        let numbers = format!("{}-{}", self.min, self.max);
        match (self.names.first(), self.names.last()) {
            (Some(first), Some(last)) => format!("{numbers} or {first}-{last}"),
            _ => numbers,
        }
    }
}
