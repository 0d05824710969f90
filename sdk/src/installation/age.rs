//! Ages and durations, as kubectl prints them.

use std::time::Duration;

use jiff::Timestamp;

/// Returns an age in its two largest units, as kubectl prints it.
pub(crate) fn age(since: Timestamp, now: Timestamp) -> String {
    let elapsed: Duration = now.duration_since(since).try_into().unwrap_or_default();
    short(elapsed)
}

/// Returns a duration in its two largest units.
pub(crate) fn short(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m{}s", seconds % 60),
        (0, _, _) => format!("{hours}h{minutes}m"),
        _ => format!("{days}d{hours}h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_at_most_two_units() {
        let shown = |seconds| short(Duration::from_secs(seconds));
        assert_eq!(shown(7), "7s");
        assert_eq!(shown(125), "2m5s");
        assert_eq!(shown(7_260), "2h1m");
        assert_eq!(shown(90_000), "1d1h");
    }
}
