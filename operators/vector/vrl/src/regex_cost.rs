//! Size of a compiled regular expression.

use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::ast::{
    Ast, ClassPerlKind, ClassSet, ClassSetItem, RepetitionKind, RepetitionRange,
};

/// Approximate maximum number of ranges in a Unicode class.
const UNICODE_CLASS: u64 = 800;

/// Number of ranges in the classes `\d` and `\s`.
const DIGITS: u64 = 71;
const SPACES: u64 = 10;

/// Returns the approximate number of states of the automaton for a regular expression, or 0 if it is invalid, which the
/// compiler reports. The expression is parsed but not translated, because translation would take the time that this
/// limit saves.
pub(crate) fn states(pattern: &str) -> u64 {
    // Unescaped in the same way as by the VRL compiler.
    let pattern = pattern.replace("\\'", "'");
    let parsed = ParserBuilder::new().nest_limit(50).build().parse(&pattern);
    parsed.map_or(0, |ast| states_of(&ast))
}

fn states_of(ast: &Ast) -> u64 {
    let sum = |parts: &[Ast]| {
        let states = parts.iter().map(states_of);
        states.fold(0, u64::saturating_add)
    };
    match ast {
        Ast::Empty(_) | Ast::Flags(_) | Ast::Literal(_) | Ast::Dot(_) | Ast::Assertion(_) => 1,
        Ast::ClassUnicode(_) => UNICODE_CLASS,
        Ast::ClassPerl(class) => perl(&class.kind),
        Ast::ClassBracketed(class) => set(&class.kind),
        Ast::Repetition(repetition) => {
            let times = match &repetition.op.kind {
                RepetitionKind::ZeroOrOne | RepetitionKind::ZeroOrMore => 1,
                RepetitionKind::OneOrMore => 2,
                RepetitionKind::Range(
                    RepetitionRange::Exactly(times) | RepetitionRange::Bounded(_, times),
                ) => *times,
                RepetitionKind::Range(RepetitionRange::AtLeast(times)) => times.saturating_add(1),
            };
            states_of(&repetition.ast).saturating_mul(u64::from(times.max(1)))
        }
        Ast::Group(group) => states_of(&group.ast).saturating_add(2),
        Ast::Alternation(parts) => sum(&parts.asts),
        Ast::Concat(parts) => sum(&parts.asts),
    }
}

fn perl(kind: &ClassPerlKind) -> u64 {
    match kind {
        ClassPerlKind::Digit => DIGITS,
        ClassPerlKind::Space => SPACES,
        ClassPerlKind::Word => UNICODE_CLASS,
    }
}

fn set(set: &ClassSet) -> u64 {
    match set {
        ClassSet::Item(item) => of_item(item),
        ClassSet::BinaryOp(both) => set_sum(&[&both.lhs, &both.rhs]),
    }
}

fn set_sum(sets: &[&ClassSet]) -> u64 {
    let states = sets.iter().map(|one| set(one));
    states.fold(0, u64::saturating_add)
}

fn of_item(item: &ClassSetItem) -> u64 {
    match item {
        ClassSetItem::Empty(_)
        | ClassSetItem::Literal(_)
        | ClassSetItem::Range(_)
        | ClassSetItem::Ascii(_) => 1,
        ClassSetItem::Unicode(_) => UNICODE_CLASS,
        ClassSetItem::Perl(class) => perl(&class.kind),
        ClassSetItem::Bracketed(class) => set(&class.kind),
        ClassSetItem::Union(union) => {
            let states = union.items.iter().map(of_item);
            states.fold(0, u64::saturating_add)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_multiply_the_number_of_states() {
        assert_eq!(states("abc"), 3);
        assert_eq!(states("(abc){10}"), 50);
        assert_eq!(states("a{10}{10}{10}"), 1000);
        assert!(states(r"\w{100}") > 50_000);
        assert!(states(r"[\pL--a]{100}") > 50_000);
        assert!(states(r"^(?P<ip>\S+) (?P<rest>.*)$") < 200);
        assert_eq!(states("[a-"), 0);
    }
}
