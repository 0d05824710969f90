//! The transform `throttle`.

use crate::component::ComponentKind;
use crate::diagnostic::DiagnosticList;
use crate::start_up::component_options::ComponentOptions;

/// Half a nanosecond: a shorter time for one event is rounded to none.
const SHORTEST_SECS: f64 = 0.000_000_000_5;

/// Longest time for one event: Vector counts nanoseconds in 64 bits.
const LONGEST_SECS: f64 = 18_446_744_073.709_55;

/// Validates the time that one event takes: the window, divided by the number of events in it.
pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    if !options.is(ComponentKind::Transform, "throttle") {
        return;
    }
    let number = |option: &str| options.get(option).and_then(|found| found.value.as_f64());
    let (Some(threshold), Some(window)) = (number("threshold"), number("window_secs")) else {
        return;
    };
    // Another check reports zero.
    if threshold <= 0.0 || window < SHORTEST_SECS {
        return;
    }
    let time = window / threshold;
    let detail = if time < SHORTEST_SECS {
        "divided by `threshold`, must be at least a nanosecond"
    } else if time >= LONGEST_SECS {
        "divided by `threshold`, must be at most 18446744073 seconds: Vector panics at start"
    } else {
        return;
    };
    if let Some(found) = options.get("window_secs") {
        found.refuse(detail, problems);
    }
}
