//! Schedules in Chinese.
//!
//! Monday to Friday are named as such: 工作日 would also mean the days of a public calendar, with its moved holidays.

use super::super::spec::{DstFold, DstGap, Roll};
use super::Tongue;
use super::shape::{
    Clock, Days, HOUR_S, MonthDay, MonthlyWeekday, Run, Shape, Unit, WeekDays, runs, stretch,
    times_text, units,
};

pub(super) struct Chinese;

const WEEKDAYS: [&str; 7] = ["周一", "周二", "周三", "周四", "周五", "周六", "周日"];

impl Tongue for Chinese {
    fn nothing(&self) -> String {
        "不自动触发，仅手动触发".to_owned()
    }

    fn cron(&self, shape: &Shape) -> String {
        let days = days(shape);
        let mut text = match &shape.clock {
            Clock::Times(times) => {
                let days = days.unwrap_or_else(|| every_day(shape));
                format!("{days} {}", list(times_text(times), " 和 "))
            }
            other => {
                let months = || shape.months.as_ref().map(|months| yearly(months));
                match days.or_else(months) {
                    Some(days) => format!("{days}，{}", clock(other)),
                    None => clock(other),
                }
            }
        };
        if let Some(years) = &shape.years {
            text += &format!(
                "，仅限 {} 年",
                list(years.iter().map(run).collect(), " 和 ")
            );
        }
        // A bracket that closes needs no space after it.
        text.replace("） ", "）")
    }

    fn in_zone(&self, zone: &str) -> String {
        format!("（{zone}）")
    }

    fn dates_in_zone(&self, zone: &str) -> String {
        format!("（日期按 {zone}）")
    }

    fn every(&self, ms: u64) -> String {
        every(ms)
    }

    fn anchor(&self, anchor: &str) -> String {
        format!("，从 {anchor} 起算")
    }

    fn at(&self, at: &str) -> String {
        format!("仅一次，于 {at}")
    }

    fn after_end(&self, ms: u64) -> String {
        format!("上次运行结束后 {}", length(ms))
    }

    fn gap(&self, gap: DstGap) -> Option<String> {
        match gap {
            DstGap::Shift => None,
            DstGap::Skip => Some("，拨快时跳过的时刻不触发".to_owned()),
            DstGap::AtTransition => Some("，拨快时跳过的时刻在拨钟的瞬间触发".to_owned()),
        }
    }

    fn fold(&self, fold: DstFold) -> Option<String> {
        match fold {
            DstFold::First => None,
            DstFold::Last => Some("，拨慢时重复的时刻取第二次".to_owned()),
            DstFold::Both => Some("，拨慢时重复的时刻两次都触发".to_owned()),
        }
    }

    fn union(&self, entries: Vec<String>) -> String {
        entries.join("；以及 ")
    }

    fn only(&self, names: Vec<String>) -> String {
        let all = if names.len() > 1 {
            "同时属于"
        } else {
            "属于"
        };
        format!("仅在{all} {} 的日子", list(names, " 和 "))
    }

    fn minus(&self, names: Vec<String>) -> String {
        format!("不在属于 {} 的日子", list(names, " 或 "))
    }

    fn roll(&self, roll: Roll) -> Option<String> {
        match roll {
            Roll::None => None,
            Roll::Next => Some("否则顺延到下一个符合的日子".to_owned()),
            Roll::Previous => Some("否则提前到上一个符合的日子".to_owned()),
            Roll::Nearest => Some("否则移到最近的符合的日子，一样近时取后一个".to_owned()),
        }
    }

    fn jitter(&self, ms: u64) -> String {
        format!("每次推迟，不到 {}", length(ms))
    }

    fn start(&self, start: &str) -> String {
        format!("自 {start} 起")
    }

    fn end(&self, end: &str) -> String {
        format!("仅在 {end} 之前")
    }

    fn max_fires(&self, most: u64) -> String {
        format!("最多运行 {most} 次")
    }

    fn sentence(&self, when: String, clauses: Vec<String>, union: bool) -> String {
        let all = if union { "。以上全部：" } else { "；" };
        match clauses.is_empty() {
            true => when,
            false => format!("{when}{all}{}", clauses.join("；")),
        }
    }
}

fn clock(clock: &Clock) -> String {
    match clock {
        Clock::Times(times) => list(times_text(times), " 和 "),
        Clock::Beat { step, windows } if windows.is_empty() && *step == HOUR_S => {
            "每小时整点".to_owned()
        }
        Clock::Beat { step, windows } => {
            let beat = every(u64::from(*step) * 1000);
            match windows.is_empty() {
                true => beat,
                false => format!("{} {beat}", list(window_texts(windows), " 和 ")),
            }
        }
        Clock::PastHour(minutes) => format!("每小时的第 {} 分", numbers(minutes)),
        Clock::PastMinute(seconds) => format!("每分钟的第 {} 秒", numbers(seconds)),
        Clock::Fields {
            seconds,
            minutes,
            hours,
        } => {
            let mut told = vec![
                field("时", "每小时", hours, 24),
                field("分", "每分钟", minutes, 60),
            ];
            if *seconds != [0] {
                told.push(field("秒", "每秒", seconds, 60));
            }
            told.join("的")
        }
    }
}

fn window_texts(windows: &[(u32, u32)]) -> Vec<String> {
    let ends: Vec<u32> = windows
        .iter()
        .flat_map(|(first, last)| [*first, *last])
        .collect();
    let texts = times_text(&ends);
    texts.chunks(2).map(|ends| ends.join(" 至 ")).collect()
}

fn field(unit: &str, every: &str, values: &[u32], all: usize) -> String {
    match values.len() == all {
        true => every.to_owned(),
        false => format!("第 {} {unit}", numbers(values)),
    }
}

fn every_day(shape: &Shape) -> String {
    match &shape.months {
        Some(months) => format!("{}的每一天", yearly(months)),
        None => "每天".to_owned(),
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
            "{}以及{}",
            month_days(month, months),
            week_days(week, months)
        )),
        Days::Both(month, week) => Some(format!(
            "{}（须为{}）",
            month_days(month, months),
            condition(week)
        )),
    }
}

fn month_days(days: &[MonthDay], months: Option<&[u32]>) -> String {
    let days = list(days.iter().map(month_day).collect(), "和");
    let space = if starts_with_digit(&days) { " " } else { "" };
    format!("{}{space}{days}", of_months(months))
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit())
}

fn month_day(day: &MonthDay) -> String {
    match *day {
        MonthDay::Plain(Run::One(day)) => format!("{day} 日"),
        MonthDay::Plain(Run::Span { first, last }) => format!("{first} 日至 {last} 日"),
        MonthDay::Plain(Run::Steps { first, last, step }) => {
            format!("{first} 日至 {last} 日（步长 {step}）")
        }
        MonthDay::Last { before: 0 } => "最后一天".to_owned(),
        MonthDay::Last { before } => from_end(before),
        MonthDay::NearestWeekday { day } => format!("离 {day} 日最近的平日（周一至周五）"),
        MonthDay::NearestWeekdayToLast { before: 0 } => "最后一个平日（周一至周五）".to_owned(),
        MonthDay::NearestWeekdayToLast { before } => {
            format!("离{}最近的平日（周一至周五）", from_end(before))
        }
    }
}

fn from_end(before: u32) -> String {
    format!("倒数第 {} 天", before + 1)
}

fn week_days(week: &WeekDays, months: Option<&[u32]>) -> String {
    let mut parts = Vec::new();
    if !week.weekly.is_empty() {
        let within = months.map(|months| format!("{}的", yearly(months)));
        parts.push(within.unwrap_or_default() + "每" + &weekly(&week.weekly, "和"));
    }
    if !week.monthly.is_empty() {
        let days = list(week.monthly.iter().map(monthly).collect(), "和");
        parts.push(of_months(months) + &days);
    }
    parts.join("以及")
}

fn weekly(days: &[u32], and: &str) -> String {
    match stretch(days) {
        Some((first, last)) => format!("{}至{}", weekday(first), weekday(last)),
        None => list(
            days.iter().map(|day| weekday(*day).to_owned()).collect(),
            and,
        ),
    }
}

fn monthly(day: &MonthlyWeekday) -> String {
    match *day {
        MonthlyWeekday::Nth { weekday: day, nth } => format!("第 {nth} 个{}", weekday(day)),
        MonthlyWeekday::Last { weekday: day } => format!("最后一个{}", weekday(day)),
    }
}

fn condition(week: &WeekDays) -> String {
    let mut parts = Vec::new();
    if !week.weekly.is_empty() {
        parts.push(weekly(&week.weekly, "或"));
    }
    parts.extend(
        week.monthly
            .iter()
            .map(|day| format!("当月{}", monthly(day))),
    );
    parts.join("或")
}

fn weekday(day: u32) -> &'static str {
    WEEKDAYS[(day as usize - 1).min(6)]
}

/// Before days of month.
fn of_months(months: Option<&[u32]>) -> String {
    match months {
        None => "每月".to_owned(),
        Some([month]) => format!("每年 {month} 月"),
        Some(months) => format!("{}的", yearly(months)),
    }
}

fn yearly(months: &[u32]) -> String {
    let months = match stretch(months) {
        Some((first, last)) => format!("{first} 月至 {last} 月"),
        None => list(
            months.iter().map(|month| format!("{month} 月")).collect(),
            "和",
        ),
    };
    format!("每年 {months}")
}

fn every(ms: u64) -> String {
    match units(ms).as_slice() {
        [(1, unit)] if *unit != Unit::Day => format!("每{}", unit_name(*unit)),
        _ => format!("每 {}", length(ms)),
    }
}

fn length(ms: u64) -> String {
    let unit = |(number, unit): (u64, Unit)| format!("{number} {}", unit_name(unit));
    let units: Vec<String> = units(ms).into_iter().map(unit).collect();
    units.join(" ")
}

fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Day => "天（每天按 24 小时计）",
        Unit::Hour => "小时",
        Unit::Minute => "分钟",
        Unit::Second => "秒",
        Unit::Millisecond => "毫秒",
    }
}

fn numbers(values: &[u32]) -> String {
    list(runs(values).iter().map(run).collect(), "、")
}

fn run(run: &Run) -> String {
    match *run {
        Run::One(value) => value.to_string(),
        Run::Span { first, last } => format!("{first} 至 {last}"),
        Run::Steps { first, last, step } => format!("{first} 至 {last}（步长 {step}）"),
    }
}

fn list(mut parts: Vec<String>, and: &str) -> String {
    match parts.pop() {
        None => String::new(),
        Some(last) if parts.is_empty() => last,
        Some(last) => {
            let space = if and == "和" && starts_with_digit(&last) {
                " "
            } else {
                ""
            };
            format!("{}{and}{space}{last}", parts.join("、"))
        }
    }
}
