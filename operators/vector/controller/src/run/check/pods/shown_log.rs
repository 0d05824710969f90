//! Log of Vector, as far as users may see it.

use lockstep_vector_api::Workload;

use crate::run::check::pods::candidate::hides_log;
use crate::run::check::pods::redaction::redact;

/// Maximum length of the log in a message, in bytes. The message with the names of pipeline and check must fit into a
/// status.
const LONGEST_LOG: usize = 800;

/// Returns the end of a log without values of Secrets.
pub(crate) fn shown<'v>(
    log: &str,
    workload: &Workload,
    values: impl Iterator<Item = &'v [u8]>,
) -> String {
    if hides_log(workload) {
        return "its log is not shown, because it may contain environment variables from Secrets"
            .to_owned();
    }
    end_of(&redact(log, values)).to_owned()
}

/// Returns the last lines of a log that fit into a message: Vector prints the errors last.
fn end_of(log: &str) -> &str {
    let log = log.trim();
    let mut start = log.len().saturating_sub(LONGEST_LOG);
    while !log.is_char_boundary(start) {
        start += 1;
    }
    let end = &log[start..];
    match end.split_once('\n').filter(|_| start > 0) {
        Some((_, lines)) => lines,
        None => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_of_a_log_are_shown() {
        assert_eq!(end_of(" a\nb\n"), "a\nb");
        let long = format!("{}\n{}\nlast", "ä".repeat(LONGEST_LOG), "b".repeat(700));
        assert_eq!(end_of(&long), format!("{}\nlast", "b".repeat(700)));
        assert_eq!(end_of(&"ä".repeat(LONGEST_LOG)).len(), LONGEST_LOG);
    }
}
