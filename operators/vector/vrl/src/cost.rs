//! Size of a program, in terms of what it costs the compiler.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher, RandomState};

use crate::operator_cost::OperatorChain;
use crate::{operator_cost, regex_cost};

/// Size of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct VrlCost {
    pub(crate) depth: usize,
    /// Largest number of operators in one statement.
    pub(crate) operators: usize,
    pub(crate) assignments: usize,
    pub(crate) bytes: u64,
    /// Number of known fields, summed over all expressions each time the compiler passes over one.
    pub(crate) followed: u64,
    /// Part of `followed` that is caused by chains of operators.
    pub(crate) chained: u64,
    /// Cost of nested calls.
    pub(crate) calls: u64,
    /// Number of states of all regular expressions.
    pub(crate) patterns: u64,
}

/// Measures a program without parsing it. The contents of strings and comments do not count. If it is unclear whether
/// something is a string, it counts.
pub(crate) fn measure(source: &str) -> VrlCost {
    let mut measurement = Measurement::of(source);
    let mut at = 0;
    while at < source.len() {
        at = measurement.read(at);
    }
    measurement.size
}

/// Measurement of a program up to a position.
struct Measurement<'a> {
    source: &'a str,
    bytes: &'a [u8],
    size: VrlCost,
    /// Each open bracket, and true if it is that of a call.
    open: Vec<(u8, bool)>,
    calls_open: u32,
    fields: KnownFields,
    /// The current statement in each open bracket, and outside.
    statements: Vec<Statement>,
}

impl<'a> Measurement<'a> {
    fn of(source: &'a str) -> Self {
        Self {
            source,
            bytes: source.as_bytes(),
            size: VrlCost {
                bytes: source.len() as u64,
                ..VrlCost::default()
            },
            open: Vec::new(),
            calls_open: 0,
            fields: KnownFields::default(),
            statements: vec![Statement::default()],
        }
    }

    /// Reads what begins at a position, and returns the position after it.
    fn read(&mut self, at: usize) -> usize {
        let byte = self.bytes[at];
        match byte {
            b'"' => return self.string(at),
            b'\'' if at > 0 && matches!(self.bytes[at - 1], b's' | b'r' | b't') => {
                return self.literal(at);
            }
            b'#' => {
                let rest = self.bytes[at..].iter();
                return at + rest.take_while(|byte| **byte != b'\n').count();
            }
            byte if byte.is_ascii_whitespace() => return self.whitespace(at),
            b'(' | b'[' | b'{' => self.opening(at, byte),
            b')' | b']' | b'}' => self.closing(at, byte),
            b',' => {
                let statement = self.statement();
                statement.chain.finish();
                // The items of a list are beside each other in the syntax tree.
                statement.operators = 0;
            }
            b':' if self.open.last() == Some(&(b'{', false)) => self.fields.of_literals += 1,
            b';' => self.end_statement(at + 1),
            byte if is_operator(byte) => self.operator(at, byte),
            b'e' if self.bytes[at..].starts_with(b"else") => self.count_operator(),
            _ => {}
        }
        at + 1
    }

    /// Returns the current statement.
    fn statement(&mut self) -> &mut Statement {
        self.statements
            .last_mut()
            .expect("the statement outside of all brackets is never removed")
    }

    /// Ends the current statement. The next one starts at a position.
    fn end_statement(&mut self, start: usize) {
        self.follow();
        let statement = self.statement();
        statement.chain.finish();
        statement.operators = 0;
        statement.start = start;
    }

    /// Adds an expression to which the compiler passes the types of all known fields.
    fn follow(&mut self) {
        let followed = self.fields.followed();
        self.size.followed = self.size.followed.saturating_add(followed);
    }

    /// Adds expressions of this weight, whose types the compiler computes again at an operator.
    fn pass_again(&mut self, weight: u64) {
        let cost = self.fields.cost_of(weight);
        self.size.chained = self.size.chained.saturating_add(cost);
        self.size.followed = self.size.followed.saturating_add(cost);
    }

    fn count_operator(&mut self) {
        let statement = self.statement();
        statement.operators += 1;
        let operators = statement.operators;
        self.size.operators = self.size.operators.max(operators);
    }

    /// Reads a string, whose variables the compiler joins to its other parts.
    fn string(&mut self, at: usize) -> usize {
        let end = after_string(self.bytes, at, b'"');
        let operators = operator_cost::of_string(self.source.get(at..end).unwrap_or_default());
        self.size.operators = self.size.operators.max(operators);
        self.pass_again(operator_cost::within_string(operators));
        self.statement().chain.add(operators as u64);
        end
    }

    /// Reads a raw string, a regular expression or a timestamp.
    fn literal(&mut self, at: usize) -> usize {
        let end = after_string(self.bytes, at, b'\'');
        if self.bytes[at - 1] == b'r' {
            let literal = self.source.get(at + 1..end.saturating_sub(1));
            let states = literal.map_or(0, regex_cost::states);
            self.size.patterns = self.size.patterns.saturating_add(states);
        }
        end
    }

    /// Reads all adjacent whitespace in one step: the characters before and after it decide whether the statement ends.
    fn whitespace(&mut self, at: usize) -> usize {
        let rest = self.bytes[at..].iter();
        let end = at + rest.take_while(|byte| byte.is_ascii_whitespace()).count();
        let has_newline = self.bytes[at..end].contains(&b'\n');
        let before = at.checked_sub(1).map(|at| self.bytes[at]);
        let after = self.bytes.get(end);
        let goes_on = before.is_some_and(is_operator)
            || after.is_some_and(|byte| is_operator(*byte) && *byte != b'!');
        if has_newline && !goes_on {
            self.end_statement(end);
        }
        end
    }

    fn opening(&mut self, at: usize, byte: u8) {
        let is_call = is_call(&self.bytes[..at], byte);
        self.open.push((byte, is_call));
        self.calls_open += u32::from(is_call);
        self.size.depth = self.size.depth.max(self.open.len());
        if is_call {
            let cost = 1u64.checked_shl(self.calls_open);
            self.size.calls = self.size.calls.saturating_add(cost.unwrap_or(u64::MAX));
        }
        self.follow();
        self.statements.push(Statement::from(at + 1));
    }

    fn closing(&mut self, at: usize, byte: u8) {
        let is_call = self.open.pop().is_some_and(|(_, is_call)| is_call);
        self.calls_open -= u32::from(is_call);
        if self.statements.len() == 1 {
            return;
        }
        let inner = self.statements.pop().unwrap_or_default();
        let next = self.bytes[at + 1..].trim_ascii_start().first();
        // A block ends an expression, and an object can be the operand of an operator.
        let is_end = byte == b'}' && !next.is_some_and(|byte| is_operator(*byte));
        let statement = self.statement();
        statement.chain.add(inner.chain.total());
        if is_end {
            statement.chain.finish();
        }
    }

    fn operator(&mut self, at: usize, byte: u8) {
        self.follow();
        let source = self.source;
        let statement = self.statement();
        // The second character of an operator such as `==` is none of its own.
        if at >= statement.read_to {
            let text = source.get(at..).unwrap_or_default();
            let (length, left) = statement.chain.operator(text);
            statement.read_to = at + length;
            self.count_operator();
            self.pass_again(left);
        }
        if byte == b'=' && is_assignment(self.bytes, at) {
            self.size.assignments += 1;
            let start = std::mem::replace(&mut self.statement().start, at + 1);
            self.fields.assign(&self.bytes[start..at]);
        }
    }
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

    /// Returns the cost of computing the types of expressions of this weight again. Without any field, it is that of two.
    fn cost_of(&self, weight: u64) -> u64 {
        weight.saturating_mul(self.followed() + 2)
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
#[derive(Default)]
struct Statement {
    operators: usize,
    /// Position where it starts, or where the value of its last assignment starts.
    start: usize,
    /// Operators of the statement, and of those before it in the same brackets.
    chain: OperatorChain,
    /// End of the last operator.
    read_to: usize,
}

impl Statement {
    fn from(start: usize) -> Self {
        Self {
            start,
            ..Self::default()
        }
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
    use crate::limits::ProgramLimits;

    #[test]
    fn strings_and_comments_do_not_count() {
        let size = measure("a = \"((((\" # [[[[\nb = r'\\'{{{' + s'((' == 1");
        assert_eq!((size.depth, size.operators, size.assignments), (0, 3, 2));
    }

    #[test]
    fn nesting_and_chains_of_operators_are_counted() {
        assert_eq!(measure("((([{}])))").depth, 5);
        assert_eq!(measure("1 + 2 +\n3 + 4\n5").operators, 3);
        assert_eq!(measure("1 + 2\n3 + 4\n+ 5").operators, 2);
        assert_eq!(measure("1 + (2 + 3)\n!!a").operators, 2);
        assert_eq!(measure("a == 1 || b != -2").operators, 4);
        assert_eq!(measure("[a == 1, b == 2, -3]").operators, 1);
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
    fn the_cost_of_a_chain_grows_with_the_square_of_its_length() {
        let chain = |operator: &str, length: usize| vec![".b"; length].join(operator);
        // Without fields, each operator costs twice the weight of those before it.
        assert_eq!(measure(&chain(" || ", 4)).followed, 2 * (4 + 8));
        assert_eq!(measure(&chain(" + ", 4)).followed, 2 * (1 + 2));
        assert_eq!(measure("a == 1 || b == 2").followed, 2);
        // The content of brackets is part of the left side, and an argument, an item or a block is not.
        assert_eq!(measure("(a || b) + c").followed, 2 * 4);
        assert_eq!(measure("f(a || b, c || d)").followed, 0);
        assert_eq!(measure("[a || b, c || d]").followed, 0);
        assert_eq!(measure("if a || b { 1 } else if c || d { 2 }").followed, 0);
        assert_eq!(measure("a || b\nc || d").followed, 0);
        // The operator to the left counts for both fields and for two more. Each field counts at the four characters
        // of operators, and at the ends of the assignments.
        let with_fields = measure(".a = 1; .b = 1; c || d || e");
        assert_eq!(with_fields.followed, 4 * (2 + 2) + 4 * 2 + (1 + 1 + 2));
    }

    #[test]
    fn a_string_with_variables_is_a_chain_of_additions() {
        assert_eq!(measure(r#"x = "a""#).followed, 0);
        let size = measure(r#""{{a}} {{b}}""#);
        assert_eq!((size.operators, size.followed), (4, 2 * 8));
        assert_eq!(measure(r"s'{{a}} {{b}}'").followed, 0);
        let long = format!("\"{}\"", "{{a}}".repeat(201));
        assert!(ProgramLimits::SHARED.exceeded(&long).is_err());
        let short = format!("\"{}\"", "{{a}}".repeat(100));
        assert!(ProgramLimits::SHARED.exceeded(&short).is_ok());
    }

    #[test]
    fn nested_calls_cost_twice_as_much_at_each_level() {
        assert_eq!(measure("f(1); f!(1)").calls, 4);
        assert_eq!(measure("f(g(h(1)))").calls, 2 + 4 + 8);
        assert_eq!(measure("f(1) -> |v| { g(v) }").calls, 2 + 2 + 4);
        assert_eq!(measure("(((1)))").calls, 0);
    }
}
