//! Lines of the log.

use std::time::{SystemTime, UNIX_EPOCH};

/// Writes a line as Vector does, with the level behind the time.
pub(crate) fn log(line: &str) {
    eprintln!("{} {line}", now());
}

/// Returns the time in milliseconds.
pub(crate) fn now() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH);
    elapsed.map_or(0, |elapsed| {
        u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
    })
}
