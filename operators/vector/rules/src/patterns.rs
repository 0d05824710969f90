//! How large a regular expression becomes when it is compiled.

use regex_syntax::hir::{Class, Hir, HirKind};

/// The longest pattern that is looked into, in bytes; a longer one counts as if each of them were a class.
const LONGEST: usize = 4096;

/// About as many states as an automaton for it has. What is no regular expression is told by the compiler.
pub(crate) fn states(pattern: &str) -> u64 {
    if pattern.len() > LONGEST {
        return 1000 * pattern.len() as u64;
    }
    // As the compiler of programs takes it out of its quotes.
    let pattern = pattern.replace("\\'", "'");
    let parsed = regex_syntax::ParserBuilder::new()
        .nest_limit(50)
        .build()
        .parse(&pattern);
    parsed.map_or(0, |hir| states_of(&hir))
}

fn states_of(hir: &Hir) -> u64 {
    let sum = |parts: &[Hir]| {
        let states = parts.iter().map(states_of);
        states.fold(0, u64::saturating_add)
    };
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(Class::Unicode(class)) => class.ranges().len() as u64,
        HirKind::Class(Class::Bytes(class)) => class.ranges().len() as u64,
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min.saturating_add(1));
            states_of(&repetition.sub).saturating_mul(u64::from(times.max(1)))
        }
        HirKind::Capture(capture) => states_of(&capture.sub).saturating_add(2),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => sum(parts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_repeated_counts_as_often() {
        assert_eq!(states("abc"), 3);
        assert_eq!(states("(abc){10}"), 50);
        assert_eq!(states("a{10}{10}{10}"), 1000);
        assert!(states(r"\w{100}") > 50_000);
        assert!(states(r"^(?P<ip>\S+) (?P<rest>.*)$") < 200);
        assert_eq!(states("[a-"), 0);
    }
}
