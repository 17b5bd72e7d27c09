//! The calendar in numbers: days are counted from 1970-01-01, weekdays from Sunday.
//!
//! Civil times elsewhere in the schedule are seconds since 1970-01-01T00:00:00 as clocks show them, so that an instant and
//! what is shown at it differ by the offset alone.

use jiff::civil::Date;

/// The years that schedules know. They bound every search.
pub(super) const FIRST_YEAR: i32 = 1970;
pub(super) const LAST_YEAR: i32 = 2199;

pub(super) const DAY_S: i64 = 86_400;

/// The number of a day; `month` and `day` begin at 1.
pub(super) fn day_number(year: i32, month: u32, day: u32) -> i32 {
    // Years that begin in March end with the leap day, and their months follow one formula.
    let march_year = if month <= 2 { year - 1 } else { year };
    let march_month = (month as i32 + 9) % 12;
    let day_of_year = (153 * march_month + 2) / 5 + day as i32 - 1;
    let (era, of_era) = (march_year.div_euclid(400), march_year.rem_euclid(400));
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719_468
}

/// The year, month and day of month of a day.
pub(super) fn year_month_day(number: i32) -> (i32, u32, u32) {
    let shifted = number + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year + year / 4 - year / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    let march_year = year + era * 400;
    let year = if month <= 2 {
        march_year + 1
    } else {
        march_year
    };
    (year, month as u32, day as u32)
}

/// Sunday is 0.
pub(super) fn weekday(number: i32) -> u32 {
    (number + 4).rem_euclid(7) as u32
}

pub(super) fn days_in_month(year: i32, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

pub(super) fn number_of(date: Date) -> i32 {
    day_number(date.year().into(), date.month() as u32, date.day() as u32)
}

/// The day of a civil time, and the second within it.
pub(super) fn split(civil: i64) -> (i32, u32) {
    let day = civil.div_euclid(DAY_S);
    let day = day.clamp(i32::MIN as i64 / 2, i32::MAX as i64 / 2);
    (day as i32, civil.rem_euclid(DAY_S) as u32)
}

pub(super) fn join(day: i32, second: u32) -> i64 {
    i64::from(day) * DAY_S + i64::from(second)
}

/// A civil time as text, such as `2026-03-29T02:30:00`.
pub(super) fn text(civil: i64) -> String {
    let (day, second) = split(civil);
    let (year, month, day) = year_month_day(day);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_agree_with_a_calendar_that_counts_one_by_one() {
        let mut date = Date::new(1895, 12, 31).unwrap();
        let first = number_of(date);
        for number in first..first + 120_000 {
            assert_eq!(number_of(date), number);
            let (year, month, day) = year_month_day(number);
            assert_eq!(
                Date::new(year as i16, month as i8, day as i8).unwrap(),
                date
            );
            assert_eq!(
                weekday(number),
                date.weekday().to_sunday_zero_offset() as u32
            );
            assert_eq!(days_in_month(year, month), date.days_in_month() as u32);
            date = date.tomorrow().unwrap();
        }
        assert_eq!(text(0), "1970-01-01T00:00:00");
        assert_eq!(text(-1), "1969-12-31T23:59:59");
    }
}
