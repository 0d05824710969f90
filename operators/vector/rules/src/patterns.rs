//! How large a regular expression becomes when it is compiled.

use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::ast::{
    Ast, ClassPerlKind, ClassSet, ClassSetItem, RepetitionKind, RepetitionRange,
};

/// What a class of Unicode may have of ranges, at most about.
const UNICODE_CLASS: u64 = 800;

/// What the characters that stand for many have of ranges.
const DIGITS: u64 = 71;
const SPACES: u64 = 10;

/// About as many states as an automaton for it has. What is no regular expression is told by the compiler. It is
/// parsed and not translated: that would take the time that this is to spare.
pub(crate) fn states(pattern: &str) -> u64 {
    // As the compiler of programs takes it out of its quotes.
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
    fn what_is_repeated_counts_as_often() {
        assert_eq!(states("abc"), 3);
        assert_eq!(states("(abc){10}"), 50);
        assert_eq!(states("a{10}{10}{10}"), 1000);
        assert!(states(r"\w{100}") > 50_000);
        assert!(states(r"[\pL--a]{100}") > 50_000);
        assert!(states(r"^(?P<ip>\S+) (?P<rest>.*)$") < 200);
        assert_eq!(states("[a-"), 0);
    }
}
