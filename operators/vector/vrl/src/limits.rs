//! Size limits of programs. A validation result must not depend on the speed of the machine, and a program must not
//! need more resources than one admission request can use.

use crate::cost::{VrlCost, measure};

/// Maximum length of a program, in bytes.
const LONGEST: usize = 64 << 10;

/// Maximum nesting depth of brackets.
const DEEPEST: usize = 48;

/// Maximum number of operators in one statement: each is one level of the syntax tree.
const MAX_OPERATORS: usize = 400;

/// Maximum number of assignments in a program. The compiler tracks the type of each assigned field after every
/// statement, so its time grows with the square of this number.
const MAX_FIELDS: usize = 150;

/// Maximum number of field types that the compiler tracks, with each field counted once per later expression: the
/// compiler passes the types of all known fields through each expression.
/// Measured with 100 to 6,000 fields in at most 5,000 expressions: 0.4 to 2.4 µs each.
const MAX_FOLLOWED: u64 = 300_000;

/// Maximum cost of nested calls: a call at depth `d` costs 2 to the power of `d`, because the compiler computes the
/// type of each argument again at every level.
const MAX_CALLS: u64 = 20_000;

/// Maximum size of all regular expressions of a program, in states.
const LARGEST_PATTERNS: u64 = 300_000;

/// Maximum number of assignments in all programs of a configuration.
const MAX_FIELDS_TOGETHER: u64 = 1500;

/// Maximum number of field types that the compiler tracks in all programs of a configuration.
const MAX_FOLLOWED_TOGETHER: u64 = 600_000;

/// Maximum length of all programs of a configuration, in bytes.
const LONGEST_TOGETHER: u64 = 256 << 10;

/// Maximum cost of nested calls in all programs of a configuration.
const MAX_CALLS_TOGETHER: u64 = 100_000;

/// Maximum size of the regular expressions in all programs of a configuration, in states.
const LARGEST_PATTERNS_TOGETHER: u64 = 1_000_000;

/// Stack size for the compiler: several times what the deepest syntax tree within these limits needs in an unoptimized
/// build.
const STACK_BYTES: usize = 256 << 20;

/// Returns the size of a program, or an error if it exceeds a limit.
pub fn exceeded(source: &str) -> Result<VrlCost, String> {
    if source.len() > LONGEST {
        return Err(format!(
            "the program has {} bytes, more than the limit of {LONGEST}; split it into several transforms",
            source.len()
        ));
    }
    let size = measure(source);
    if size.depth > DEEPEST {
        return Err(format!(
            "the program is nested {} levels deep, more than the limit of {DEEPEST}; assign parts of it to variables",
            size.depth
        ));
    }
    if size.operators > MAX_OPERATORS {
        return Err(format!(
            "a statement has {} operators, more than the limit of {MAX_OPERATORS}; split it into several statements",
            size.operators
        ));
    }
    if size.assignments > MAX_FIELDS {
        return Err(format!(
            "the program has {} assignments, more than the limit of {MAX_FIELDS}; split it into several transforms",
            size.assignments
        ));
    }
    if size.followed > MAX_FOLLOWED {
        return Err(format!(
            "the compiler would have to track {} field types, counting each field at every later expression, more than the limit of {MAX_FOLLOWED}; split the program into several transforms",
            size.followed
        ));
    }
    if size.calls > MAX_CALLS {
        return Err("function calls are nested too deeply; assign results to variables".to_owned());
    }
    if size.patterns > LARGEST_PATTERNS {
        return Err(format!(
            "the regular expressions have {} states, more than the limit of {LARGEST_PATTERNS}; use fewer or smaller repetitions",
            size.patterns
        ));
    }
    Ok(size)
}

/// Adds the size of a program to the total, and returns an error if the total exceeds a limit.
pub fn exceeded_together(together: &mut VrlCost, size: VrlCost) -> Option<String> {
    together.assignments = together.assignments.saturating_add(size.assignments);
    together.bytes += size.bytes;
    together.followed = together.followed.saturating_add(size.followed);
    together.calls = together.calls.saturating_add(size.calls);
    together.patterns = together.patterns.saturating_add(size.patterns);
    let bounds = [
        (
            "assignments",
            together.assignments as u64,
            MAX_FIELDS_TOGETHER,
        ),
        ("bytes", together.bytes, LONGEST_TOGETHER),
        (
            "field types to track",
            together.followed,
            MAX_FOLLOWED_TOGETHER,
        ),
        ("nested calls", together.calls, MAX_CALLS_TOGETHER),
        (
            "states of regular expressions",
            together.patterns,
            LARGEST_PATTERNS_TOGETHER,
        ),
    ];
    let exceeded = bounds.into_iter().find(|(_, size, most)| size > most);
    exceeded.map(|(what, size, most)| {
        format!("the programs have {size} {what} in total, more than the limit of {most}; split the pipeline")
    })
}

/// Runs a function that may recurse deeply on a large stack.
pub(crate) fn on_a_large_stack<T>(run: impl FnOnce() -> T) -> T {
    stacker::grow(STACK_BYTES, run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_tracked_field_types_is_limited() {
        let deep = format!(".a = {}1{}\n", r#"{"a": "#.repeat(20), "}".repeat(20));
        for (source, is_too_much) in [
            (".a = upcase(string!(.b))\n".repeat(150), false),
            (deep.repeat(5), false),
            (deep.repeat(100), true),
            (format!(".a{} = 1\n", ".b".repeat(20)).repeat(150), true),
            (
                format!(
                    "{}{}",
                    ".a = {\"b\": 1, \"c\": 1}\n".repeat(50),
                    "if .b == 1 { 1 }\n".repeat(800)
                ),
                true,
            ),
        ] {
            assert_eq!(exceeded(&source).is_err(), is_too_much, "{source:.60}");
        }
    }

    #[test]
    fn the_limits_also_apply_to_the_total_of_all_programs() {
        let mut together = VrlCost::default();
        let size = exceeded(&".a = 1\n".repeat(50)).expect("not too much");
        let times = MAX_FIELDS_TOGETHER / 50;
        for _ in 0..times {
            assert_eq!(exceeded_together(&mut together, size), None);
        }
        let detail = exceeded_together(&mut together, size).expect("too much");
        assert!(detail.contains("1550 assignments in total"), "{detail}");
        let long = exceeded(&" ".repeat(LONGEST)).expect("not too much");
        let mut together = VrlCost::default();
        let mut times = (0..).map_while(|_| {
            exceeded_together(&mut together, long)
                .is_none()
                .then_some(())
        });
        assert_eq!(times.by_ref().count(), 4);
        let source = ".a.b.c = 1\n".repeat(10) + &"1 + 1\n".repeat(1000);
        let fields = exceeded(&source).expect("not too much");
        let mut together = VrlCost::default();
        let detail = (0..20).find_map(|_| exceeded_together(&mut together, fields));
        assert!(detail.is_some_and(|detail| detail.contains("field types to track in total")));
    }

    #[test]
    fn the_message_names_the_exceeded_limit() {
        assert!(exceeded(".a = 1").is_ok());
        for (source, what) in [
            (" ".repeat(LONGEST + 1), "bytes"),
            ("(".repeat(DEEPEST + 1), "levels"),
            ("!".repeat(MAX_OPERATORS + 1), "operators"),
            (".a = 1\n".repeat(MAX_FIELDS + 1), "assignments"),
            ("f(".repeat(15) + &")".repeat(15), "nested"),
            (
                r"r'\w{100}\w{100}\w{100}\w{100}\w{100}'".to_owned(),
                "states",
            ),
        ] {
            let detail = exceeded(&source).expect_err("too much");
            assert!(detail.contains(what), "{detail}");
        }
    }
}
