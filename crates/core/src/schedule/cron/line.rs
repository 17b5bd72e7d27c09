//! A cron line as it was read: what each field lists, before it becomes sets of bits.

/// The seven fields. A line of five leaves the second at `0` and the year at `*`; a line of six the year.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::schedule) struct Line {
    pub(in crate::schedule) second: Vec<Item>,
    pub(in crate::schedule) minute: Vec<Item>,
    pub(in crate::schedule) hour: Vec<Item>,
    pub(in crate::schedule) day: Vec<Item>,
    pub(in crate::schedule) month: Vec<Item>,
    /// Sunday is 0; only the end of a range may call it 7.
    pub(in crate::schedule) weekday: Vec<Item>,
    pub(in crate::schedule) year: Vec<Item>,
}

/// One item of a field's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::schedule) enum Item {
    /// `*`
    Any,
    /// `?`, which means the same, in the day fields
    Blank,
    Value(u32),
    /// `first-last`, both included
    Range {
        first: u32,
        last: u32,
    },
    /// `first-last/step`. An open `first/step` ends where the field does; so does `*/step`, which has `star`.
    Step {
        first: u32,
        last: u32,
        step: u32,
        star: bool,
    },
    /// `L`, the last day of the month, or as many days before it: `L-3`
    Last {
        before: u32,
    },
    /// `15W`: the weekday, Monday to Friday, nearest to the day, in the same month
    NearestWeekday {
        day: u32,
    },
    /// `LW`: the weekday nearest to the last day of the month; `L-3W` likewise
    NearestWeekdayToLast {
        before: u32,
    },
    /// `fri#2`: the second Friday of the month
    Nth {
        weekday: u32,
        nth: u32,
    },
    /// `friL`: the last Friday of the month
    LastOf {
        weekday: u32,
    },
}

impl Item {
    pub(in crate::schedule) fn has_star(self) -> bool {
        matches!(self, Item::Any | Item::Step { star: true, .. })
    }
}

impl Line {
    /// Whether the times of day are listed, so that each is meant to happen once on its day.
    pub(in crate::schedule) fn is_fixed(&self) -> bool {
        let clock = [&self.second, &self.minute, &self.hour];
        !clock.into_iter().flatten().any(|item| item.has_star())
    }

    /// Whether both day fields are restricted, so that the day rule matters. A field that begins with `*` or `?` is not,
    /// as in Vixie cron; `*/2` counts as `*` here.
    pub(in crate::schedule) fn restricts_both_days(&self) -> bool {
        let restricted = |field: &[Item]| {
            let first = field.first();
            first.is_some_and(|item| *item != Item::Blank && !item.has_star())
        };
        restricted(&self.day) && restricted(&self.weekday)
    }
}
