//! Dates and durations, parsed as in the API server.

use std::sync::LazyLock;

use chrono::{DateTime, FixedOffset, NaiveDate, NaiveTime, Offset, Utc};
use regex::Regex;

/// Parses a full date as in RFC 3339.
pub(crate) fn date(text: &str) -> Option<NaiveDate> {
    let plain = text.len() == 10 && text.is_ascii();
    plain.then(|| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok())?
}

/// Returns true if the validator accepts the text as date and time. It accepts more than the parser of the
/// value.
pub(crate) fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(day), Some(clock)) = (parts.next(), parts.next()) else {
        return false;
    };
    let Some(found) = CLOCK.captures(clock) else {
        return false;
    };
    date(day).is_some() && &found[1] <= "23" && &found[2] <= "59" && &found[3] <= "59"
}

/// Parses the timestamp of a field. An empty text is the epoch.
pub(crate) fn moment(text: &str) -> Option<DateTime<FixedOffset>> {
    if text.is_empty() {
        return Some(DateTime::<Utc>::UNIX_EPOCH.fixed_offset());
    }
    rfc3339(text, true)
}

/// Parses a timestamp as in RFC 3339, in its time zone. The zone may be optional; it is then UTC.
pub(crate) fn rfc3339(text: &str, zone_is_optional: bool) -> Option<DateTime<FixedOffset>> {
    let found = MOMENT.captures(text)?;
    let day = date(&found[1])?;
    let clock = NaiveTime::parse_from_str(&found[2], "%H:%M:%S").ok()?;
    // chrono accepts a leap second, Go does not.
    if found[2].ends_with("60") {
        return None;
    }
    let fraction = found.get(3).map_or("", |digits| digits.as_str());
    let nanos: u32 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    let clock = clock + chrono::Duration::nanoseconds(nanos.into());
    let offset = match found.get(4).map(|zone| zone.as_str()) {
        None if !zone_is_optional => return None,
        None | Some("Z") => Utc.fix(),
        Some(zone) => {
            let part = |range| {
                zone.get(range)
                    .and_then(|digits: &str| digits.parse::<i32>().ok())
            };
            let (hours, minutes) = (part(1..3)?, part(4..6)?);
            let seconds = (hours * 60 + minutes) * 60;
            FixedOffset::east_opt(if zone.starts_with('-') {
                -seconds
            } else {
                seconds
            })?
        }
    };
    day.and_time(clock).and_local_timezone(offset).single()
}

/// Parses a duration in Go's format, or with Scala's units: `1h30m`, `22 ns`, `3 days`.
pub(crate) fn duration(text: &str) -> Option<chrono::Duration> {
    if let Some(nanos) = go_duration(text) {
        return Some(chrono::Duration::nanoseconds(nanos));
    }
    let mut total: Option<i64> = None;
    for found in SCALA.captures_iter(text) {
        let factor: i64 = found[1].parse().ok()?;
        let unit = found[2].to_lowercase();
        let nanos = UNITS.iter().find_map(|(names, nanos)| {
            let (long, short) = names.split_last()?;
            (unit.starts_with(long) || short.contains(&unit.as_str())).then_some(*nanos)
        });
        if let Some(nanos) = nanos {
            total = Some(total.unwrap_or(0).wrapping_add(factor.wrapping_mul(nanos)));
        }
    }
    total.map(chrono::Duration::nanoseconds)
}

/// Implements `time.ParseDuration`, in nanoseconds: <https://pkg.go.dev/time#ParseDuration>.
pub(crate) fn go_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let number = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (figure, behind) = rest.split_at(number);
        let (whole, fraction) = figure.split_once('.').unwrap_or((figure, ""));
        if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
            return None;
        }
        let end = behind
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        let nanos: u64 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let whole: u64 = if whole.is_empty() {
            0
        } else {
            whole.parse().ok()?
        };
        let mut part = whole.checked_mul(nanos)?;
        let digits = &fraction[..fraction.len().min(18)];
        if let Ok(value) = digits.parse::<u64>() {
            let scale = 10_u128.pow(u32::try_from(digits.len()).ok()?);
            let added = u128::from(value) * u128::from(nanos) / scale;
            part = part.checked_add(u64::try_from(added).ok()?)?;
        }
        total = total.checked_add(part)?;
        if total > 1 << 63 {
            return None;
        }
        rest = behind;
    }
    if negative {
        return Some(total.wrapping_neg().cast_signed());
    }
    i64::try_from(total).ok()
}

/// Names of each unit and its nanoseconds. The last name is also a prefix of longer names.
const UNITS: &[(&[&str], i64)] = &[
    (&["ns", "nano"], 1),
    (&["us", "µs", "micro"], 1_000),
    (&["ms", "milli"], 1_000_000),
    (&["s", "sec"], 1_000_000_000),
    (&["m", "min"], 60_000_000_000),
    (&["h", "hr", "hour"], 3_600_000_000_000),
    (&["d", "day"], 86_400_000_000_000),
    (&["w", "wk", "week"], 604_800_000_000_000),
];

static SCALA: LazyLock<Regex> = LazyLock::new(|| literal(r"([0-9]+)[\t\n\f\r ]*([A-Za-zµ]+)"));
static CLOCK: LazyLock<Regex> = LazyLock::new(|| {
    literal(r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$")
});
static MOMENT: LazyLock<Regex> = LazyLock::new(|| {
    literal(
        r"^([0-9]{4}-[0-9]{2}-[0-9]{2})T([0-9]{2}:[0-9]{2}:[0-9]{2})(?:[.,]([0-9]+))?(Z|[+-][0-9]{2}:[0-9]{2})?$",
    )
});

fn literal(expression: &str) -> Regex {
    Regex::new(expression).expect("the literal expression is valid, as a test verifies")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_as_in_go() {
        assert_eq!(go_duration("1h30m"), Some(5_400_000_000_000));
        assert_eq!(go_duration("-1.5s"), Some(-1_500_000_000));
        assert_eq!(go_duration("0"), Some(0));
        for bad in ["", "1", "1x", ".s", "1.2.3s", "-"] {
            assert_eq!(go_duration(bad), None, "{bad}");
        }
        assert_eq!(duration("3 days"), Some(chrono::Duration::days(3)));
        assert_eq!(duration("1 fortnight"), None);
    }

    #[test]
    fn timestamps_are_parsed_as_in_go() {
        let seconds = |text| moment(text).map(|m| m.timestamp());
        assert_eq!(seconds("1970-01-01T01:00:00.5+01:00"), Some(0));
        assert_eq!(seconds("1970-01-01T00:00:01"), Some(1));
        assert_eq!(seconds(""), Some(0));
        for bad in [
            "1970-01-01t00:00:00Z",
            "1970-01-01T00:00:60Z",
            "1970-13-01T00:00:00Z",
        ] {
            assert_eq!(moment(bad), None, "{bad}");
        }
    }
}
