//! Size limits of programs. A validation result must not depend on the speed of the machine, and a program must not
//! need more resources than one admission request can use.

use crate::cost::{VrlCost, measure};

/// Maximum nesting depth of brackets. The stack of the compiler holds it.
const DEEPEST: usize = 48;

/// Maximum number of operators in one statement: each is one level of the syntax tree.
const MAX_OPERATORS: usize = 400;

/// Limits of the programs of a configuration.
#[derive(Debug)]
pub struct ProgramLimits {
    /// Limits of each program.
    one: CostLimits,
    /// Limits of all programs together.
    together: CostLimits,
}

/// Maximum costs.
#[derive(Clone, Copy, Debug)]
struct CostLimits {
    /// Length, in bytes.
    bytes: u64,
    /// Number of field types that the compiler tracks, with each field counted once per later expression: the compiler
    /// passes the types of all known fields through each expression. Programs of 236 assignments to fields such as
    /// `.ecs.event.code`, as users have them, need 230,000.
    followed: u64,
    /// Cost of nested calls: a call at depth `d` costs 2 to the power of `d`, because the compiler computes the type of
    /// each argument again at every level.
    calls: u64,
    /// Size of all regular expressions, in states.
    patterns: u64,
}

impl CostLimits {
    const fn times(self, factor: u64) -> Self {
        Self {
            bytes: self.bytes * factor,
            followed: self.followed * factor,
            calls: self.calls * factor,
            patterns: self.patterns * factor,
        }
    }
}

/// Stack size for the compiler: several times what the deepest syntax tree within these limits needs in an unoptimized
/// build.
const STACK_BYTES: usize = 256 << 20;

impl ProgramLimits {
    /// Limits of programs of other people, which are compiled while an API server waits or while other objects do.
    pub const SHARED: Self = Self {
        one: CostLimits {
            bytes: 64 << 10,
            followed: 300_000,
            calls: 20_000,
            patterns: 300_000,
        },
        together: CostLimits {
            bytes: 256 << 10,
            followed: 600_000,
            calls: 100_000,
            patterns: 1_000_000,
        },
    };

    /// Limits of programs that their author validates on a machine of his own.
    pub const OFFLINE: Self = Self {
        one: Self::SHARED.one.times(10),
        together: Self::SHARED.together.times(10),
    };

    /// Returns the size of a program, or an error if it exceeds a limit.
    pub fn exceeded(&self, source: &str) -> Result<VrlCost, String> {
        let CostLimits {
            bytes,
            followed,
            calls,
            patterns,
        } = self.one;
        if source.len() as u64 > bytes {
            return Err(format!(
                "the program has {} bytes, more than the limit of {bytes}; split it into several transforms",
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
        if size.followed > followed && size.chained > size.followed / 2 {
            return Err(format!(
                "the chains of operators cost the compiler {}, more than the limit of {followed}: at each operator, it passes over the chain again, with all fields that were assigned before; write shorter chains, such as `includes([\"a\", \"b\"], .field)`, or split the program into several transforms",
                size.chained
            ));
        }
        if size.followed > followed {
            return Err(format!(
                "the compiler would have to track {} field types (assignments: {}), counting each field at every later expression, more than the limit of {followed}; split the program into several transforms",
                size.followed, size.assignments
            ));
        }
        if size.calls > calls {
            return Err(
                "function calls are nested too deeply; assign results to variables".to_owned(),
            );
        }
        if size.patterns > patterns {
            return Err(format!(
                "the regular expressions have {} states, more than the limit of {patterns}; use fewer or smaller repetitions",
                size.patterns
            ));
        }
        Ok(size)
    }

    /// Adds the size of a program to the total, and returns an error if the total exceeds a limit.
    pub fn exceeded_together(&self, together: &mut VrlCost, size: VrlCost) -> Option<String> {
        together.bytes += size.bytes;
        together.followed = together.followed.saturating_add(size.followed);
        together.calls = together.calls.saturating_add(size.calls);
        together.patterns = together.patterns.saturating_add(size.patterns);
        let most = self.together;
        let bounds = [
            ("bytes", together.bytes, most.bytes),
            ("field types to track", together.followed, most.followed),
            ("nested calls", together.calls, most.calls),
            (
                "states of regular expressions",
                together.patterns,
                most.patterns,
            ),
        ];
        let exceeded = bounds.into_iter().find(|(_, size, most)| size > most);
        exceeded.map(|(what, size, most)| {
            format!("the programs have {size} {what} in total, more than the limit of {most}; split the pipeline")
        })
    }
}

/// Runs a function that may recurse deeply on a large stack.
pub(crate) fn on_a_large_stack<T>(run: impl FnOnce() -> T) -> T {
    stacker::grow(STACK_BYTES, run)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exceeded(source: &str) -> Result<VrlCost, String> {
        ProgramLimits::SHARED.exceeded(source)
    }

    /// Returns the text once for each number, which replaces `#`.
    fn numbered(text: &str, times: usize) -> String {
        let texts = (0..times).map(|number| text.replace('#', &number.to_string()));
        texts.collect()
    }

    #[test]
    fn the_number_of_tracked_field_types_is_limited() {
        let deep = format!(".a = {}1{}\n", r#"{"a": "#.repeat(20), "}".repeat(20));
        for (source, is_too_much) in [
            (".a = upcase(string!(.b))\n".repeat(1000), false),
            (
                numbered(".ecs.event.f# = to_string(.data.f#) ?? \"\"\n", 236),
                false,
            ),
            (numbered(".a# = 1\n", 400), false),
            // Alternatives as users have them, and far too many.
            (
                numbered(".a# = 1\n", 50)
                    + "if "
                    + &vec![".l == \"e\""; 30].join(" || ")
                    + " { 1 }",
                false,
            ),
            (
                numbered(&format!(".a# = {}\n", vec![".b"; 200].join(" || ")), 38),
                true,
            ),
            (numbered(".a# = 1\n", 600), true),
            (deep.repeat(5), false),
            (deep.repeat(100), true),
            (
                numbered(&format!(".a#{} = 1\n", ".b".repeat(20)), 150),
                true,
            ),
            (
                format!(
                    "{}{}",
                    ".a = {\"b\": 1, \"c\": 1}\n".repeat(50),
                    "if .b == 1 { 1 }\n".repeat(1200)
                ),
                true,
            ),
        ] {
            let cost = exceeded(&source);
            assert_eq!(cost.is_err(), is_too_much, "{source:.60}: {cost:?}");
        }
    }

    #[test]
    fn a_program_that_its_author_validates_may_cost_more() {
        let source = numbered(".a# = 1\n", 900);
        assert!(exceeded(&source).is_err());
        assert!(ProgramLimits::OFFLINE.exceeded(&source).is_ok());
        let nested = "(".repeat(DEEPEST + 1);
        assert!(ProgramLimits::OFFLINE.exceeded(&nested).is_err());
    }

    #[test]
    fn the_limits_also_apply_to_the_total_of_all_programs() {
        let limits = ProgramLimits::SHARED;
        let long = exceeded(&" ".repeat(64 << 10)).expect("not too much");
        let mut together = VrlCost::default();
        let mut times = (0..).map_while(|_| {
            limits
                .exceeded_together(&mut together, long)
                .is_none()
                .then_some(())
        });
        assert_eq!(times.by_ref().count(), 4);
        let source = numbered(".a#.b.c = 1\n", 10) + &"1 + 1\n".repeat(1000);
        let fields = exceeded(&source).expect("not too much");
        let mut together = VrlCost::default();
        let detail = (0..50).find_map(|_| limits.exceeded_together(&mut together, fields));
        assert!(detail.is_some_and(|detail| detail.contains("field types to track in total")));
    }

    #[test]
    fn the_message_names_the_exceeded_limit() {
        assert!(exceeded(".a = 1").is_ok());
        for (source, what) in [
            (" ".repeat((64 << 10) + 1), "bytes"),
            ("(".repeat(DEEPEST + 1), "levels"),
            ("!".repeat(MAX_OPERATORS + 1), "operators"),
            (numbered(".a# = 1\n", 1000), "assignments: 1000"),
            (
                numbered(&format!(".a# = {}\n", vec![".b"; 200].join(" || ")), 9),
                "the chains of operators cost",
            ),
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
