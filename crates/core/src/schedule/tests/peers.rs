//! Cron lines against two published libraries of other languages, croniter and cron-parser.
//!
//! What they answer is kept in files beside this one, with the scripts that asked them. Where they and we differ, a rule
//! says what the line means to them, written as a line of ours; with the rules applied nothing may differ. Each rule is a
//! row of docs/reference/cron-differences.md.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{DayRule, ScheduleEntry};
use super::{compiled, cron_entry};

const CRONITER: &str = include_str!("peers/croniter.tsv");
const CRON_PARSER: &str = include_str!("peers/cron-parser.tsv");
const DIFFERENCES: &str = include_str!("../../../../../docs/reference/cron-differences.md");
const TIMES: usize = 4;

/// What a library, or ours, makes of a line: the following times, or that it refuses the line.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Refused,
    Times(Vec<i64>),
}

/// A line in the course of translation to ours.
struct Meaning {
    fields: Vec<String>,
    /// Another line that counts as well.
    also: Option<String>,
    rule: DayRule,
    refused: bool,
    /// It must have times when days match both fields, else there are none.
    needs_both: bool,
}

/// A difference: changes the line to what it means to the other library, and says whether it did.
type Rule = (&'static str, fn(&mut Meaning) -> bool);

const CRONITER_RULES: [Rule; 10] = [
    ("no 7 for Sunday in lines with seconds", seven_with_seconds),
    ("no days before the last, no LW", days_before_last),
    ("no mixture of plain weekdays with # or L", mixed_weekdays),
    ("a range of one value is the whole field", single_range),
    ("a range that runs backwards goes round", backwards),
    (
        "a step longer than the field means its first value",
        long_step,
    ),
    ("a stepped star restricts a day field", star_restricts),
    (
        "W on a day that a month lacks is its last weekday",
        nearest_to_missing,
    ),
    ("W takes the place of the weekday", nearest_alone),
    ("# and L take the place of the day of month", nth_alone),
];

const CRON_PARSER_RULES: [Rule; 8] = [
    ("no value twice in a list", twice),
    ("no days before the last, no LW", days_before_last),
    ("no mixture of plain weekdays with # or L", mixed_list),
    ("no range that ends with sun", ends_with_sun),
    ("no date that never comes", impossible_date),
    (
        "a step longer than the field means its first value",
        long_step,
    ),
    ("an open step of weekdays ends with Sunday", ends_with_seven),
    ("a stepped star restricts a day field", star_restricts),
];

impl Meaning {
    fn of(line: &str) -> Self {
        Self {
            fields: line.split(' ').map(str::to_owned).collect(),
            also: None,
            rule: DayRule::Or,
            refused: false,
            needs_both: false,
        }
    }

    fn line(&self) -> String {
        self.fields.join(" ")
    }

    fn day(&mut self) -> &mut String {
        let index = self.fields.len() - 3;
        &mut self.fields[index]
    }

    fn weekday(&mut self) -> &mut String {
        let index = self.fields.len() - 1;
        &mut self.fields[index]
    }

    /// The fields with their least and greatest values.
    fn limits(&mut self) -> impl Iterator<Item = (&mut String, u32, u32)> {
        const LIMITS: [(u32, u32); 6] = [(0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 6)];
        let skipped = LIMITS.len() - self.fields.len();
        let limits = LIMITS.into_iter().skip(skipped);
        self.fields
            .iter_mut()
            .zip(limits)
            .map(|(field, (min, max))| (field, min, max))
    }

    fn refuse_if(&mut self, refused: bool) -> bool {
        self.refused |= refused;
        refused
    }

    /// Rewrites each item of each field for which `instead` has something.
    fn rewrite(&mut self, instead: impl Fn(&str, u32, u32) -> Option<String>) -> bool {
        let mut changed = false;
        for (field, min, max) in self.limits() {
            let item = |item: &str| {
                let instead = instead(item, min, max);
                changed |= instead.is_some();
                instead.unwrap_or_else(|| item.to_owned())
            };
            *field = field.split(',').map(item).collect::<Vec<_>>().join(",");
        }
        changed
    }
}

fn number(text: &str) -> Option<u32> {
    const NAMES: [&str; 19] = [
        "sun", "mon", "tue", "wed", "thu", "fri", "sat", "jan", "feb", "mar", "apr", "may", "jun",
        "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let named = NAMES
        .iter()
        .position(|name| *name == text)
        .map(|index| match index {
            0..=6 => index as u32,
            _ => index as u32 - 6,
        });
    named.or_else(|| text.parse().ok())
}

/// First, last and step of a plain item; an open step ends with the field.
fn plain(item: &str, min: u32, max: u32) -> Option<(u32, u32, u32)> {
    let (range, step) = match item.split_once('/') {
        Some((range, step)) => (range, step.parse().ok()),
        None => (item, None),
    };
    let (first, last) = match range.split_once('-') {
        Some((first, last)) => (number(first)?, number(last)?),
        None if range == "*" || range == "?" => (min, max),
        None => {
            let first = number(range)?;
            (first, step.map_or(first, |_| max.max(first)))
        }
    };
    Some((first, last, step.unwrap_or(1)))
}

fn is_special(item: &str) -> bool {
    item.contains('#') || item.ends_with('L')
}

fn seven_with_seconds(line: &mut Meaning) -> bool {
    let seconds = line.fields.len() == 6;
    let seven = |item: &str| {
        let values = item.split(['/', '#']).next().unwrap_or_default();
        values
            .trim_end_matches('L')
            .split('-')
            .any(|value| value == "7")
    };
    let found = seconds && line.weekday().split(',').any(seven);
    line.refuse_if(found)
}

fn days_before_last(line: &mut Meaning) -> bool {
    let found = line
        .day()
        .split(',')
        .any(|item| item.starts_with('L') && item != "L");
    line.refuse_if(found)
}

fn mixed_weekdays(line: &mut Meaning) -> bool {
    let items: Vec<String> = line.weekday().split(',').map(str::to_owned).collect();
    let (special, plain): (Vec<&String>, Vec<&String>) =
        items.iter().partition(|item| is_special(item));
    let named = |item: &&String| {
        special
            .iter()
            .any(|special| special.starts_with(item.as_str()))
    };
    let mixed = !special.is_empty() && !plain.is_empty();
    if mixed && plain.iter().all(named) {
        *line.weekday() = special.into_iter().cloned().collect::<Vec<_>>().join(",");
        return true;
    }
    line.refuse_if(mixed)
}

fn mixed_list(line: &mut Meaning) -> bool {
    let found = line.weekday().contains('#') && line.weekday().contains(',');
    line.refuse_if(found)
}

fn backwards(line: &mut Meaning) -> bool {
    line.rewrite(|item, min, max| {
        let (first, last, step) = plain(item, min, max)?;
        // `-sun` and `-7` are ends that we know as well.
        if first <= last || item.contains("-sun") {
            return None;
        }
        // Where it goes on after the end of the field: as far on as the step reaches over it, when it does.
        let left = (max - first) % step;
        let on = if left + 1 < step { step - left } else { 0 };
        let late = format!("{first}-{max}/{step}");
        Some(match min + on <= last {
            true => format!("{late},{}-{last}/{step}", min + on),
            false => late,
        })
    })
}

fn single_range(line: &mut Meaning) -> bool {
    line.rewrite(|item, min, max| {
        let (first, last, _) = plain(item, min, max)?;
        (first == last && item.contains('-')).then(|| "*".to_owned())
    })
}

fn long_step(line: &mut Meaning) -> bool {
    line.rewrite(|item, min, max| {
        let (_, _, step) = plain(item, min, max)?;
        (item.starts_with('*') && step > max - min + 1).then(|| min.to_string())
    })
}

fn star_restricts(line: &mut Meaning) -> bool {
    let free = |field: &str| matches!(field, "*" | "?");
    if free(line.day()) || free(line.weekday()) {
        return false;
    }
    let mut changed = false;
    for (field, whole) in [
        (line.fields.len() - 3, "1-31/"),
        (line.fields.len() - 1, "0-6/"),
    ] {
        let stepped = line.fields[field].replace("*/", whole);
        changed |= stepped != line.fields[field];
        line.fields[field] = stepped;
    }
    changed
}

fn nearest_to_missing(line: &mut Meaning) -> bool {
    match line.day().as_str() {
        "31W" => {
            *line.day() = "LW".to_owned();
            true
        }
        "29W" | "30W" => {
            let mut february = line.fields.clone();
            let count = february.len();
            february[count - 3] = "LW".to_owned();
            let month = std::mem::replace(&mut february[count - 2], "2".to_owned());
            let mut items = month.split(',').filter_map(|item| plain(item, 1, 12));
            let has = |(first, last, step): (u32, u32, u32)| {
                (first..=last)
                    .step_by(step as usize)
                    .any(|month| month == 2)
            };
            line.also = items.any(has).then(|| february.join(" "));
            line.also.is_some()
        }
        _ => false,
    }
}

fn nearest_alone(line: &mut Meaning) -> bool {
    if !line.day().contains('W') || matches!(line.weekday().as_str(), "*" | "?") {
        return false;
    }
    if line.weekday().split(',').any(is_special) {
        line.rule = DayRule::And;
        return true;
    }
    line.needs_both = true;
    true
}

fn nth_alone(line: &mut Meaning) -> bool {
    let special = line.weekday().split(',').any(is_special);
    if !special || line.rule == DayRule::And || matches!(line.day().as_str(), "*" | "?") {
        return false;
    }
    line.needs_both = true;
    true
}

fn twice(line: &mut Meaning) -> bool {
    let mut found = false;
    for (field, min, max) in line.limits() {
        // Sunday is also 7, and an open step goes on to it.
        let week = max == 6;
        let mut values = Vec::new();
        for item in field.split(',') {
            let max = if week && !item.starts_with('*') {
                7
            } else {
                max
            };
            if let Some((first, last, step)) = plain(item, min, max) {
                let range = (first..=last).step_by(step as usize);
                let own: BTreeSet<u32> = range
                    .map(|value| if week { value % 7 } else { value })
                    .collect();
                values.extend(own);
            }
        }
        let all = values.len();
        values.sort_unstable();
        values.dedup();
        found |= values.len() < all;
    }
    line.refuse_if(found)
}

fn ends_with_sun(line: &mut Meaning) -> bool {
    let found = line.weekday().contains("-sun");
    line.refuse_if(found)
}

fn ends_with_seven(line: &mut Meaning) -> bool {
    let open = |item: &str| {
        let (first, step) = item.split_once('/')?;
        number(first).map(|first| format!("{first}-7/{step}"))
    };
    let items = line
        .weekday()
        .split(',')
        .map(|item| open(item).unwrap_or_else(|| item.to_owned()));
    let changed = items.collect::<Vec<_>>().join(",");
    let differs = changed != *line.weekday();
    *line.weekday() = changed;
    differs
}

fn impossible_date(line: &mut Meaning) -> bool {
    let found = line.fields.join(" ") == "0 0 30 2 *";
    line.refuse_if(found)
}

fn ours(lines: &[&str], rule: DayRule, zone: &str, start: i64) -> Answer {
    let entry = |line: &&str| ScheduleEntry {
        day_rule: Some(rule),
        ..cron_entry(line, zone)
    };
    let Ok(schedule) = compiled(&lines.iter().map(entry).collect::<Vec<_>>()) else {
        return Answer::Refused;
    };
    let next = |at: &i64| schedule.next_after(*at);
    let times = std::iter::successors(next(&(start * 1000)), next).take(TIMES);
    Answer::Times(times.map(|at| at / 1000).collect())
}

/// What we make of a line as another library means it.
fn translated(mut line: Meaning, zone: &str, start: i64) -> Answer {
    if line.refused {
        return Answer::Refused;
    }
    if line.needs_both {
        let both = ours(&[&line.line()], DayRule::And, zone, start);
        if both == Answer::Times(Vec::new()) {
            return both;
        }
        match line.day().contains('W') {
            true => *line.weekday() = "*".to_owned(),
            false => *line.day() = "*".to_owned(),
        }
        if let Some(also) = &mut line.also {
            let fields = also.rsplit_once(' ').map_or("", |(rest, _)| rest);
            *also = format!("{fields} *");
        }
    }
    let own = line.line();
    let lines: Vec<&str> = [Some(own.as_str()), line.also.as_deref()]
        .into_iter()
        .flatten()
        .collect();
    ours(&lines, line.rule, zone, start)
}

fn theirs(text: &str, start: i64) -> Answer {
    match text {
        "!" => Answer::Refused,
        "-" => Answer::Times(Vec::new()),
        gaps => {
            let gaps = gaps.split(' ').map(|gap| gap.parse::<i64>().unwrap());
            let times = gaps.scan(start, |at, gap| {
                *at += gap;
                Some(*at)
            });
            Answer::Times(times.collect())
        }
    }
}

/// Compares all rows, and returns how often each rule was needed.
fn compare(rows: &str, rules: &[Rule]) -> BTreeMap<&'static str, usize> {
    let mut used = BTreeMap::new();
    let (mut count, mut unexplained) = (0, Vec::new());
    for row in rows.lines().filter(|row| !row.starts_with('#')) {
        let columns: Vec<&str> = row.split('\t').collect();
        let &[line, zone, start, answer] = columns.as_slice() else {
            panic!("not four columns: {row}");
        };
        count += 1;
        let start = start.parse().unwrap();
        let theirs = theirs(answer, start);
        if ours(&[line], DayRule::Or, zone, start) == theirs {
            continue;
        }
        let mut meaning = Meaning::of(line);
        let applied: Vec<&str> = rules
            .iter()
            .filter_map(|(name, rule)| rule(&mut meaning).then_some(*name))
            .collect();
        let told = meaning.line();
        let translated = translated(meaning, zone, start);
        match translated == theirs {
            true => applied
                .into_iter()
                .for_each(|name| *used.entry(name).or_default() += 1),
            false => unexplained.push(format!("{row}\n    {applied:?}: {told} {translated:?}")),
        }
    }
    let (left, some) = (
        unexplained.len(),
        unexplained.iter().take(40).cloned().collect::<Vec<_>>(),
    );
    assert!(
        left == 0,
        "{left} of {count} rows differ without a rule:\n{}",
        some.join("\n")
    );
    used
}

/// Every rule is needed by some line, and people can read about it.
fn check(rows: &str, rules: &[Rule], section: &str) {
    let used = compare(rows, rules);
    let documented = DIFFERENCES
        .split("\n## ")
        .find(|part| part.starts_with(section));
    for (name, _) in rules {
        assert!(used.contains_key(name), "no line needs the rule: {name}");
        let row = format!("| {name} |");
        assert!(
            documented.is_some_and(|text| text.contains(&row)),
            "not documented: {name}"
        );
    }
}

#[test]
fn croniter_differs_only_by_known_rules() {
    check(CRONITER, &CRONITER_RULES, "croniter ");
}

#[test]
fn cron_parser_differs_only_by_known_rules() {
    check(CRON_PARSER, &CRON_PARSER_RULES, "cron-parser ");
}
