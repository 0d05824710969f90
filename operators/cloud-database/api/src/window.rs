//! Weekly and daily time windows, in UTC.

const MINUTES_A_DAY: u32 = 24 * 60;
const MINUTES_A_WEEK: u32 = 7 * MINUTES_A_DAY;

/// Recurring window: its start, in minutes since the start of the day or week, and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    start: u32,
    pub(crate) minutes: u32,
}

impl Window {
    /// Parses a daily window such as `03:00-04:00`. Returns `None` if the text has another format.
    pub(crate) fn daily(text: &str) -> Option<Self> {
        let (start, end) = text.split_once('-')?;
        Some(Self::between(
            time_of_day(start)?,
            time_of_day(end)?,
            MINUTES_A_DAY,
        ))
    }

    /// Parses a weekly window such as `sun:23:30-mon:00:30`. Returns `None` if the text has another format.
    pub(crate) fn weekly(text: &str) -> Option<Self> {
        let (start, end) = text.split_once('-')?;
        Some(Self::between(
            time_of_week(start)?,
            time_of_week(end)?,
            MINUTES_A_WEEK,
        ))
    }

    fn between(start: u32, end: u32, period: u32) -> Self {
        Self {
            start,
            minutes: (end + period - start) % period,
        }
    }

    /// Returns true if a daily window overlaps a weekly one on any day.
    pub(crate) fn daily_overlaps_weekly(daily: Self, weekly: Self) -> bool {
        (0..7).any(|day| {
            let start = day * MINUTES_A_DAY + daily.start;
            let after_weekly = (start + MINUTES_A_WEEK - weekly.start) % MINUTES_A_WEEK;
            let after_daily = (weekly.start + MINUTES_A_WEEK - start) % MINUTES_A_WEEK;
            after_weekly < weekly.minutes || after_daily < daily.minutes
        })
    }
}

fn time_of_day(text: &str) -> Option<u32> {
    let (hours, minutes) = text.split_once(':')?;
    let hours: u32 = hours.parse().ok().filter(|hours| *hours < 24)?;
    let minutes: u32 = minutes.parse().ok().filter(|minutes| *minutes < 60)?;
    Some(hours * 60 + minutes)
}

fn time_of_week(text: &str) -> Option<u32> {
    const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    let (name, time) = text.split_once(':')?;
    let day = (0..)
        .zip(DAYS)
        .find_map(|(index, day)| day.eq_ignore_ascii_case(name).then_some(index))?;
    Some(day * MINUTES_A_DAY + time_of_day(time)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_days_may_have_capitals() {
        let window = Window::weekly("Sun:23:30-Mon:00:30");
        assert_eq!(window, Window::weekly("sun:23:30-mon:00:30"));
        assert_eq!(window.map(|it| it.minutes), Some(60));
    }

    #[test]
    fn windows_may_cross_midnight_and_the_end_of_the_week() {
        assert_eq!(Window::daily("23:45-00:15").map(|w| w.minutes), Some(30));
        assert_eq!(
            Window::weekly("sun:23:30-mon:00:30").map(|w| w.minutes),
            Some(60)
        );
        for other in ["someday", "sun:24:00-mon:00:30", "sun:23:60-mon:00:30"] {
            assert_eq!(Window::weekly(other), None, "{other}");
        }
        assert_eq!(Window::daily("00:00-4294967295:00"), None);
    }

    #[test]
    fn a_daily_window_overlaps_a_weekly_one_on_any_day() {
        let overlap = |daily, weekly| {
            Window::daily_overlaps_weekly(
                Window::daily(daily).expect("a window"),
                Window::weekly(weekly).expect("a window"),
            )
        };
        assert!(overlap("03:00-04:00", "wed:03:30-wed:05:00"));
        assert!(overlap("23:30-00:30", "sun:23:00-mon:00:10"));
        assert!(overlap("00:00-00:30", "sun:23:30-mon:00:10"));
        assert!(!overlap("03:00-04:00", "wed:04:00-wed:05:00"));
        assert!(!overlap("05:00-06:00", "wed:04:00-wed:05:00"));
    }
}
