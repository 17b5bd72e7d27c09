//! Schedules in English.

use super::super::spec::{DstFold, DstGap, Roll};
use super::Tongue;
use super::shape::{
    Clock, Days, HOUR_S, MonthDay, MonthlyWeekday, Run, Shape, Unit, WeekDays, runs, stretch,
    times_text, units,
};

pub(super) struct English;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];
const NTH: [&str; 5] = ["first", "second", "third", "fourth", "fifth"];

impl Tongue for English {
    fn nothing(&self) -> String {
        "never by itself, only when triggered".to_owned()
    }

    fn cron(&self, shape: &Shape) -> String {
        let days = days(shape);
        let mut text = match &shape.clock {
            Clock::Times(times) => {
                let comma = if matches!(shape.days, Days::Both(..)) {
                    ","
                } else {
                    ""
                };
                let days = days.unwrap_or_else(|| every_day(shape));
                format!("{days}{comma} at {}", list(times_text(times), "and"))
            }
            other => {
                let months = || shape.months.as_ref().map(|months| in_months(months));
                match days.or_else(months) {
                    Some(days) => format!("{days}, {}", clock(other)),
                    None => clock(other),
                }
            }
        };
        if let Some(years) = &shape.years {
            let the = if matches!(years.as_slice(), [Run::One(_)]) {
                ""
            } else {
                "the years "
            };
            text += &format!(
                ", only in {the}{}",
                list(years.iter().map(run).collect(), "and")
            );
        }
        text
    }

    fn in_zone(&self, zone: &str) -> String {
        format!(", {zone}")
    }

    fn dates_in_zone(&self, zone: &str) -> String {
        format!(", dates in {zone}")
    }

    fn every(&self, ms: u64) -> String {
        every(ms)
    }

    fn anchor(&self, anchor: &str) -> String {
        format!(", counted from {anchor}")
    }

    fn at(&self, at: &str) -> String {
        format!("once at {at}")
    }

    fn after_end(&self, ms: u64) -> String {
        format!("{} after the end of the last run", length(ms))
    }

    fn gap(&self, gap: DstGap) -> Option<String> {
        match gap {
            DstGap::Shift => None,
            DstGap::Skip => Some(", left out when clocks skip it".to_owned()),
            DstGap::AtTransition => {
                Some(", at the moment of the change when clocks skip it".to_owned())
            }
        }
    }

    fn fold(&self, fold: DstFold) -> Option<String> {
        match fold {
            DstFold::First => None,
            DstFold::Last => Some(", at the second pass when clocks show it twice".to_owned()),
            DstFold::Both => Some(", at both passes when clocks show it twice".to_owned()),
        }
    }

    fn union(&self, entries: Vec<String>) -> String {
        entries.join("; also ")
    }

    fn only(&self, names: Vec<String>) -> String {
        let all = match names.len() {
            1 => "",
            2 => "both ",
            _ => "all of ",
        };
        format!("only on days in {all}{}", list(names, "and"))
    }

    fn minus(&self, names: Vec<String>) -> String {
        format!("not on days in {}", list(names, "or"))
    }

    fn roll(&self, roll: Roll) -> Option<String> {
        match roll {
            Roll::None => None,
            Roll::Next => Some("otherwise on the next such day".to_owned()),
            Roll::Previous => Some("otherwise on the previous such day".to_owned()),
            Roll::Nearest => Some("otherwise on the nearest such day, the later of two".to_owned()),
        }
    }

    fn jitter(&self, ms: u64) -> String {
        format!("each put off by less than {}", length(ms))
    }

    fn start(&self, start: &str) -> String {
        format!("from {start} on")
    }

    fn end(&self, end: &str) -> String {
        format!("only before {end}")
    }

    fn max_fires(&self, most: u64) -> String {
        let runs = if most == 1 { "run" } else { "runs" };
        format!("at most {most} {runs}")
    }

    fn sentence(&self, when: String, clauses: Vec<String>, union: bool) -> String {
        let all = if union { ". All of it " } else { "; " };
        match clauses.is_empty() {
            true => when,
            false => format!("{when}{all}{}", clauses.join("; ")),
        }
    }
}

fn clock(clock: &Clock) -> String {
    match clock {
        Clock::Times(times) => format!("at {}", list(times_text(times), "and")),
        Clock::Beat { step, windows } if windows.is_empty() && *step == HOUR_S => {
            "every hour on the hour".to_owned()
        }
        Clock::Beat { step, windows } => {
            let beat = every(u64::from(*step) * 1000);
            match windows.is_empty() {
                true => beat,
                false => format!("{beat} from {}", list(window_texts(windows), "and")),
            }
        }
        Clock::PastHour(minutes) => past("minute", minutes, "hour"),
        Clock::PastMinute(seconds) => past("second", seconds, "minute"),
        Clock::Fields {
            seconds,
            minutes,
            hours,
        } => {
            let fields = [
                ("second", seconds, 60),
                ("minute", minutes, 60),
                ("hour", hours, 24),
            ];
            let told = fields.into_iter().skip(usize::from(*seconds == [0]));
            let told: Vec<String> = told
                .map(|(name, values, all)| field(name, values, all))
                .collect();
            match told[0].starts_with("every") {
                true => told.join(" of "),
                false => format!("at {}", told.join(" of ")),
            }
        }
    }
}

fn past(unit: &str, values: &[u32], whole: &str) -> String {
    let single = |run: &Run| matches!(run, Run::One(_));
    if !runs(values).iter().all(single) {
        return format!("at {} of every {whole}", field(unit, values, 60));
    }
    let plural = if *values == [1] { "" } else { "s" };
    format!("at {} {unit}{plural} past every {whole}", numbers(values))
}

fn window_texts(windows: &[(u32, u32)]) -> Vec<String> {
    let ends: Vec<u32> = windows
        .iter()
        .flat_map(|(first, last)| [*first, *last])
        .collect();
    let texts = times_text(&ends);
    texts.chunks(2).map(|ends| ends.join(" to ")).collect()
}

fn field(name: &str, values: &[u32], all: usize) -> String {
    match values.len() {
        1 => format!("{name} {}", values[0]),
        len if len == all => format!("every {name}"),
        _ => format!("{name}s {}", numbers(values)),
    }
}

fn every_day(shape: &Shape) -> String {
    match &shape.months {
        Some(months) => format!("every day {}", in_months(months)),
        None => "every day".to_owned(),
    }
}

/// `None` when every day counts.
fn days(shape: &Shape) -> Option<String> {
    let months = shape.months.as_deref();
    match &shape.days {
        Days::Every => None,
        Days::Month(month) => Some(month_days(month, months)),
        Days::Week(week) => Some(week_days(week, months)),
        Days::Either(month, week) => Some(format!(
            "{} and also {}",
            month_days(month, months),
            week_days(week, months)
        )),
        Days::Both(month, week) => Some(format!(
            "{} if it is {}",
            month_days(month, months),
            condition(week)
        )),
    }
}

fn month_days(days: &[MonthDay], months: Option<&[u32]>) -> String {
    let days = list(days.iter().map(month_day).collect(), "and");
    format!("on {days} of {}", of_months(months))
}

fn month_day(day: &MonthDay) -> String {
    match *day {
        MonthDay::Plain(Run::One(day)) => format!("the {}", ordinal(day)),
        MonthDay::Plain(Run::Span { first, last }) => {
            format!("the {} to the {}", ordinal(first), ordinal(last))
        }
        MonthDay::Plain(Run::Steps { first, last, step }) => {
            format!(
                "every {} day from the {} to the {}",
                ordinal(step),
                ordinal(first),
                ordinal(last)
            )
        }
        MonthDay::Last { before: 0 } => "the last day".to_owned(),
        MonthDay::Last { before } => before_last(before),
        MonthDay::NearestWeekday { day } => format!("the weekday nearest to the {}", ordinal(day)),
        MonthDay::NearestWeekdayToLast { before: 0 } => "the last weekday".to_owned(),
        MonthDay::NearestWeekdayToLast { before } => {
            format!("the weekday nearest to {}", before_last(before))
        }
    }
}

fn before_last(before: u32) -> String {
    match before {
        1 => "the day before the last day".to_owned(),
        _ => format!("the day {before} days before the last day"),
    }
}

fn week_days(week: &WeekDays, months: Option<&[u32]>) -> String {
    let mut parts = Vec::new();
    if !week.weekly.is_empty() {
        let within = months.map(|months| format!(" {}", in_months(months)));
        parts.push(weekly(&week.weekly) + &within.unwrap_or_default());
    }
    if !week.monthly.is_empty() {
        let days = list(week.monthly.iter().map(monthly).collect(), "and");
        parts.push(format!("on {days} of {}", of_months(months)));
    }
    parts.join(" and also ")
}

fn weekly(days: &[u32]) -> String {
    match stretch(days) {
        Some((1, 5)) => "every weekday".to_owned(),
        Some((first, last)) => format!("every day from {} to {}", weekday(first), weekday(last)),
        None => format!(
            "every {}",
            list(days.iter().map(|day| weekday(*day)).collect(), "and")
        ),
    }
}

fn monthly(day: &MonthlyWeekday) -> String {
    match *day {
        MonthlyWeekday::Nth { weekday: day, nth } => {
            format!("the {} {}", NTH[(nth as usize - 1).min(4)], weekday(day))
        }
        MonthlyWeekday::Last { weekday: day } => format!("the last {}", weekday(day)),
    }
}

/// What a day must be, after "if it is".
fn condition(week: &WeekDays) -> String {
    let mut parts = Vec::new();
    match stretch(&week.weekly) {
        Some((1, 5)) => parts.push("a weekday".to_owned()),
        _ => parts.extend(week.weekly.iter().map(|day| format!("a {}", weekday(*day)))),
    }
    let monthly = week
        .monthly
        .iter()
        .map(|day| format!("{} of the month", monthly(day)));
    parts.extend(monthly);
    list(parts, "or")
}

fn weekday(day: u32) -> String {
    WEEKDAYS[(day as usize - 1).min(6)].to_owned()
}

fn month(month: &u32) -> String {
    MONTHS[(*month as usize - 1).min(11)].to_owned()
}

fn of_months(months: Option<&[u32]>) -> String {
    let Some(months) = months else {
        return "every month".to_owned();
    };
    match stretch(months) {
        Some((first, last)) => format!("every month from {} to {}", month(&first), month(&last)),
        None => list(months.iter().map(month).collect(), "and"),
    }
}

fn in_months(months: &[u32]) -> String {
    match stretch(months) {
        Some((first, last)) => format!("from {} to {}", month(&first), month(&last)),
        None => format!("in {}", list(months.iter().map(month).collect(), "and")),
    }
}

fn every(ms: u64) -> String {
    let text = length(ms);
    match text.strip_prefix("1 ") {
        Some(unit) if !unit.contains(' ') => format!("every {unit}"),
        _ => format!("every {text}"),
    }
}

fn length(ms: u64) -> String {
    let unit = |(number, unit): (u64, Unit)| {
        let name = match unit {
            Unit::Day => "day",
            Unit::Hour => "hour",
            Unit::Minute => "minute",
            Unit::Second => "second",
            Unit::Millisecond => "millisecond",
        };
        let plural = if number == 1 { "" } else { "s" };
        let of = if unit == Unit::Day {
            " of 24 hours"
        } else {
            ""
        };
        format!("{number} {name}{plural}{of}")
    };
    let units: Vec<String> = units(ms).into_iter().map(unit).collect();
    units.join(" ")
}

fn numbers(values: &[u32]) -> String {
    list(runs(values).iter().map(run).collect(), "and")
}

fn run(run: &Run) -> String {
    match *run {
        Run::One(value) => value.to_string(),
        Run::Span { first, last } => format!("{first} to {last}"),
        Run::Steps { first, last, step } => format!("{first} to {last} in steps of {step}"),
    }
}

fn ordinal(number: u32) -> String {
    let suffix = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{suffix}")
}

fn list(mut parts: Vec<String>, and: &str) -> String {
    match parts.pop() {
        None => String::new(),
        Some(last) if parts.is_empty() => last,
        Some(last) => format!("{} {and} {last}", parts.join(", ")),
    }
}
