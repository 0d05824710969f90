//! Size of a program, in terms of what it costs the compiler.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher, RandomState};

use crate::regex_cost;

/// Size of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct VrlCost {
    pub(crate) depth: usize,
    /// Largest number of operators in one statement.
    pub(crate) operators: usize,
    pub(crate) assignments: usize,
    pub(crate) bytes: u64,
    /// Number of known fields, summed over all expressions.
    pub(crate) followed: u64,
    /// Cost of nested calls.
    pub(crate) calls: u64,
    /// Number of states of all regular expressions.
    pub(crate) patterns: u64,
}

/// Measures a program without parsing it. The contents of strings and comments do not count. If it is unclear whether
/// something is a string, it counts.
pub(crate) fn measure(source: &str) -> VrlCost {
    let mut size = VrlCost {
        bytes: source.len() as u64,
        ..VrlCost::default()
    };
    // Each open bracket, and true if it is that of a call.
    let mut open: Vec<(u8, bool)> = Vec::new();
    let mut calls_open = 0;
    let mut fields = KnownFields::default();
    let mut statements = vec![Statement::default()];
    let bytes = source.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        match byte {
            b'"' => {
                at = after_string(bytes, at, b'"');
                continue;
            }
            b'\'' if at > 0 && matches!(bytes[at - 1], b's' | b'r' | b't') => {
                let end = after_string(bytes, at, b'\'');
                if bytes[at - 1] == b'r' {
                    let literal = source.get(at + 1..end.saturating_sub(1));
                    let states = literal.map_or(0, regex_cost::states);
                    size.patterns = size.patterns.saturating_add(states);
                }
                at = end;
                continue;
            }
            b'#' => {
                while at < bytes.len() && bytes[at] != b'\n' {
                    at += 1;
                }
                continue;
            }
            b'(' | b'[' | b'{' => {
                let is_call = is_call(&bytes[..at], byte);
                open.push((byte, is_call));
                calls_open += u32::from(is_call);
                size.depth = size.depth.max(open.len());
                if is_call {
                    let cost = 1u64.checked_shl(calls_open);
                    size.calls = size.calls.saturating_add(cost.unwrap_or(u64::MAX));
                }
                size.followed += fields.followed();
                statements.push(Statement::from(at + 1));
            }
            b')' | b']' | b'}' => {
                let is_call = open.pop().is_some_and(|(_, is_call)| is_call);
                calls_open -= u32::from(is_call);
                if statements.len() > 1 {
                    statements.pop();
                }
            }
            b':' if open.last() == Some(&(b'{', false)) => fields.of_literals += 1,
            b';' => {
                size.followed += fields.followed();
                end_statement(&mut statements, at + 1);
            }
            byte if byte.is_ascii_whitespace() => {
                // All adjacent whitespace in one step: the characters before and after it decide.
                let rest = bytes[at..].iter();
                let end = at + rest.take_while(|byte| byte.is_ascii_whitespace()).count();
                let has_newline = bytes[at..end].contains(&b'\n');
                let before = at.checked_sub(1).map(|at| bytes[at]);
                let goes_on = before.is_some_and(is_operator)
                    || bytes
                        .get(end)
                        .is_some_and(|byte| is_operator(*byte) && *byte != b'!');
                if has_newline && !goes_on {
                    size.followed += fields.followed();
                    end_statement(&mut statements, end);
                }
                at = end;
                continue;
            }
            byte if is_operator(byte) => {
                size.followed += fields.followed();
                if let Some(statement) = statements.last_mut() {
                    statement.operators += 1;
                    size.operators = size.operators.max(statement.operators);
                    if byte == b'=' && is_assignment(bytes, at) {
                        size.assignments += 1;
                        fields.assign(&bytes[statement.start..at]);
                        statement.start = at + 1;
                    }
                }
            }
            b'e' if bytes[at..].starts_with(b"else") => {
                if let Some(statement) = statements.last_mut() {
                    statement.operators += 1;
                    size.operators = size.operators.max(statement.operators);
                }
            }
            _ => {}
        }
        at += 1;
    }
    size
}

/// Fields and variables whose types the compiler knows.
#[derive(Default)]
struct KnownFields {
    /// Hashes of the assigned paths and of all their prefixes: each of them is a node in the type of the event.
    assigned: HashSet<u64>,
    /// Fields of object literals.
    of_literals: u64,
    state: RandomState,
}

impl KnownFields {
    /// Adds the target of an assignment: a path, or two paths and a comma.
    fn assign(&mut self, target: &[u8]) {
        let mut hasher = self.state.build_hasher();
        let target = target.trim_ascii();
        for (index, byte) in target.iter().enumerate() {
            if index > 0 && matches!(byte, b'.' | b'[' | b',') {
                self.assigned.insert(hasher.finish());
            }
            hasher.write_u8(*byte);
        }
        self.assigned.insert(hasher.finish());
    }

    /// Returns the cost of tracking their types through one expression. The cost of each field grows with their number,
    /// because a large number of fields does not fit into the caches.
    fn followed(&self) -> u64 {
        let fields = self.of_literals + self.assigned.len() as u64;
        fields + fields * fields / 1000
    }
}

/// Returns true if a bracket opens the arguments of a call or the body of a closure.
fn is_call(before: &[u8], bracket: u8) -> bool {
    match bracket {
        b'(' => {
            let before = before.strip_suffix(b"!").unwrap_or(before);
            before
                .last()
                .is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        }
        b'{' => before.trim_ascii_end().ends_with(b"|"),
        _ => false,
    }
}

/// Returns the position after the string that starts at `start`.
fn after_string(bytes: &[u8], start: usize, quote: u8) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            byte if byte == quote => return at + 1,
            _ => {}
        }
        at += 1;
    }
    at
}

/// Counts of the current statement, without the contents of brackets.
#[derive(Clone, Copy, Default)]
struct Statement {
    operators: usize,
    /// Position where it starts, or where the value of its last assignment starts.
    start: usize,
}

impl Statement {
    fn from(start: usize) -> Self {
        Self {
            operators: 0,
            start,
        }
    }
}

/// Ends the current statement. The next one starts at a position.
fn end_statement(statements: &mut [Statement], start: usize) {
    if let Some(statement) = statements.last_mut() {
        *statement = Statement::from(start);
    }
}

fn is_operator(byte: u8) -> bool {
    b"+-*/!?&|<>=".contains(&byte)
}

fn is_assignment(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).map(|at| bytes[at]);
    let after = bytes.get(at + 1);
    !matches!(before, Some(b'=' | b'!' | b'<' | b'>')) && !matches!(after, Some(b'='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_comments_do_not_count() {
        let size = measure("a = \"((((\" # [[[[\nb = r'\\'{{{' + s'((' == 1");
        assert_eq!((size.depth, size.operators, size.assignments), (0, 4, 2));
    }

    #[test]
    fn nesting_and_chains_of_operators_are_counted() {
        assert_eq!(measure("((([{}])))").depth, 5);
        assert_eq!(measure("1 + 2 +\n3 + 4\n5").operators, 3);
        assert_eq!(measure("1 + 2\n3 + 4\n+ 5").operators, 2);
        assert_eq!(measure("1 + (2 + 3)\n!!a").operators, 2);
    }

    #[test]
    fn known_fields_count_at_each_expression() {
        assert_eq!(measure("1 + 2\n3").followed, 0);
        // At the end of its own statement, at the sum and at the call.
        assert_eq!(measure(".a = 1\n1 + f(2)").followed, 3);
        assert_eq!(measure(".a.b.c = 1\n1 + 2").followed, 6);
        // `.a` and `.a.b` are the same in both statements.
        assert_eq!(measure(".a.b.c = 1; .a.b.d = 1").followed, 3 + 3);
        assert_eq!(measure(".a = 1; .a = 2").followed, 1 + 1);
        assert_eq!(measure(".a[0] = 1; .a[1] = 1").followed, 2 + 2 + 2);
        assert_eq!(measure(".a, err = f(); 1").followed, 2 + 2);
        assert_eq!(
            measure(r#"x = {"a": 1, "b": f(c: 1)}; 1 + 2"#).followed,
            1 + 3 + 3 + 3
        );
    }

    #[test]
    fn nested_calls_cost_twice_as_much_at_each_level() {
        assert_eq!(measure("f(1); f!(1)").calls, 4);
        assert_eq!(measure("f(g(h(1)))").calls, 2 + 4 + 8);
        assert_eq!(measure("f(1) -> |v| { g(v) }").calls, 2 + 2 + 4);
        assert_eq!(measure("(((1)))").calls, 0);
    }
}
