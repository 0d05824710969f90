//! Backup window and maintenance window.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use crate::protocol::fault::Fault;

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const DAY: i64 = 24 * 60;
const WEEK: i64 = 7 * DAY;
const SHORTEST: i64 = 30;

/// Backup windows that RDS may choose for an instance: two, so that one does not conflict with a maintenance window.
const DEFAULT_BACKUP: [&str; 2] = ["03:00-03:30", "06:00-06:30"];

/// Maintenance windows that RDS may choose for an instance.
const DEFAULT_MAINTENANCE: [&str; 2] = ["sun:04:00-sun:04:30", "sun:07:00-sun:07:30"];

/// Range of minutes of a week.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Minutes {
    start: i64,
    length: i64,
}

/// Returns both windows as RDS stores them. A window that is not given is chosen so that it does not conflict.
pub(crate) fn check(
    backup: Option<&str>,
    maintenance: Option<&str>,
) -> Result<(String, String), Fault> {
    let backup = backup.map(str::to_ascii_lowercase);
    let maintenance = maintenance.map(str::to_ascii_lowercase);
    if let Some(window) = &backup {
        daily(window)?;
    }
    if let Some(window) = &maintenance {
        weekly(window)?;
    }
    let backups = backup.map_or(DEFAULT_BACKUP.map(String::from).to_vec(), |it| vec![it]);
    let weeklies = DEFAULT_MAINTENANCE.map(String::from).to_vec();
    let weeklies = maintenance.map_or(weeklies, |it| vec![it]);
    for backup in &backups {
        for maintenance in &weeklies {
            if !overlap(daily(backup)?, weekly(maintenance)?) {
                return Ok((backup.clone(), maintenance.clone()));
            }
        }
    }
    Err(Fault::value(
        "The backup window and maintenance window must not overlap.",
    ))
}

/// Returns the next time at which a maintenance window opens.
pub(crate) fn next_opening(maintenance: &str, now: Timestamp) -> Timestamp {
    let window = weekly(maintenance).expect("a stored window is valid");
    let now = now.to_zoned(TimeZone::UTC);
    let days = i64::from(now.weekday().to_monday_zero_offset());
    let minute = days * DAY + i64::from(now.hour()) * 60 + i64::from(now.minute());
    let wait = (window.start - minute - 1).rem_euclid(WEEK) + 1;
    let seconds = i64::from(now.second());
    (now.timestamp() - seconds.seconds()) + wait.minutes()
}

fn daily(window: &str) -> Result<Minutes, Fault> {
    let invalid = || {
        Fault::value(format!(
            "Invalid backup window: {window}. It must be in the format hh24:mi-hh24:mi and at least 30 minutes long"
        ))
    };
    let (start, end) = window.split_once('-').ok_or_else(invalid)?;
    let start = clock(start).ok_or_else(invalid)?;
    let end = clock(end).ok_or_else(invalid)?;
    let length = (end - start).rem_euclid(DAY);
    if length < SHORTEST {
        return Err(invalid());
    }
    Ok(Minutes { start, length })
}

fn weekly(window: &str) -> Result<Minutes, Fault> {
    let invalid = || {
        Fault::value(format!(
            "Invalid maintenance window: {window}. It must be in the format ddd:hh24:mi-ddd:hh24:mi, at least 30 minutes and at most 24 hours long"
        ))
    };
    let minute = |text: &str| {
        let (day, time) = text.split_once(':')?;
        let day = DAYS.iter().position(|known| *known == day)?;
        Some(i64::try_from(day).ok()? * DAY + clock(time)?)
    };
    let (start, end) = window.split_once('-').ok_or_else(invalid)?;
    let start = minute(start).ok_or_else(invalid)?;
    let end = minute(end).ok_or_else(invalid)?;
    let length = (end - start).rem_euclid(WEEK);
    if !(SHORTEST..=DAY).contains(&length) {
        return Err(invalid());
    }
    Ok(Minutes { start, length })
}

/// Returns the minute of the day of a time `hh:mm`.
fn clock(text: &str) -> Option<i64> {
    let (hours, minutes) = text.split_once(':')?;
    if hours.len() != 2 || minutes.len() != 2 {
        return None;
    }
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    ((0..24).contains(&hours) && (0..60).contains(&minutes)).then_some(hours * 60 + minutes)
}

/// Returns true if a daily window and a weekly window have a minute in common.
fn overlap(daily: Minutes, weekly: Minutes) -> bool {
    (0..8).any(|day| {
        let daily = daily.start + (day - 1) * DAY..daily.start + (day - 1) * DAY + daily.length;
        [0, WEEK].iter().any(|shift| {
            let start = weekly.start - shift;
            start < daily.end && daily.start < start + weekly.length
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_have_a_format_and_a_length_and_do_not_overlap() {
        let check = |backup: &str, maintenance: &str| check(Some(backup), Some(maintenance));
        let stored = check("23:30-00:30", "Mon:03:00-Mon:04:00").expect("valid windows");
        assert_eq!(
            stored,
            ("23:30-00:30".to_owned(), "mon:03:00-mon:04:00".to_owned())
        );
        for (backup, maintenance) in [
            ("03:00-03:29", "mon:05:00-mon:06:00"),
            ("3:00-04:00", "mon:05:00-mon:06:00"),
            ("24:00-25:00", "mon:05:00-mon:06:00"),
            ("03:00-04:00", "mon:05:00-mon:05:20"),
            ("03:00-04:00", "mon:05:00-wed:05:00"),
            ("03:00-04:00", "05:00-06:00"),
            ("03:00-04:00", "mon:03:30-mon:04:30"),
            ("23:30-00:30", "sun:00:00-sun:01:00"),
            ("00:00-00:30", "sun:23:45-mon:00:15"),
        ] {
            assert!(
                check(backup, maintenance).is_err(),
                "{backup} {maintenance}"
            );
        }
    }

    #[test]
    fn a_window_that_is_not_given_does_not_conflict_with_the_other_one() {
        let (backup, _) = check(None, Some("sun:03:00-sun:04:00")).expect("windows");
        assert_eq!(backup, "06:00-06:30");
        let (_, maintenance) = check(Some("04:00-05:00"), None).expect("windows");
        assert_eq!(maintenance, "sun:07:00-sun:07:30");
    }

    #[test]
    fn the_next_window_is_in_the_future() {
        let now: Timestamp = "2026-11-26T16:00:30Z".parse().expect("a Thursday");
        let opening = |window: &str| next_opening(window, now).to_string();
        assert_eq!(opening("thu:17:00-thu:18:00"), "2026-11-26T17:00:00Z");
        assert_eq!(opening("thu:16:00-thu:17:00"), "2026-12-03T16:00:00Z");
        assert_eq!(opening("mon:00:00-mon:01:00"), "2026-11-30T00:00:00Z");
    }
}
