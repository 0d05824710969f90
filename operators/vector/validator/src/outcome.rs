//! Meaning of the exit code of `vector validate`.

use serde::{Deserialize, Serialize};

/// Smallest exit code that no program returns for a wrong configuration: the program could not be run, or a signal has
/// ended it.
const SMALLEST_OF_SYSTEM: i32 = 126;

/// Meaning of the end of `vector validate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// Vector accepts the configuration.
    Passed,
    /// Vector rejects the configuration.
    Failed,
    /// Vector came to no result.
    Unfinished,
}

impl Outcome {
    /// Returns the meaning of an exit code.
    #[must_use]
    pub fn of_exit_code(code: i32) -> Self {
        match code {
            0 => Self::Passed,
            1..SMALLEST_OF_SYSTEM => Self::Failed,
            _ => Self::Unfinished,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_zero_passes_and_exit_codes_of_the_system_are_no_result() {
        for (code, expected) in [
            (0, Outcome::Passed),
            (1, Outcome::Failed),
            (78, Outcome::Failed),
            (125, Outcome::Failed),
            (126, Outcome::Unfinished),
            (137, Outcome::Unfinished),
            (-1, Outcome::Unfinished),
        ] {
            assert_eq!(Outcome::of_exit_code(code), expected, "{code}");
        }
    }
}
