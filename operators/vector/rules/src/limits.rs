//! How large a program may be: a verdict must never depend on how fast the machine is, nor a program take more
//! of it than a review can give.

use std::mem;

use serde_json::{Map, Value};
use shared_validation::{FieldError, FieldPath};

use crate::component::{Component, Family, components, is_pattern};
use crate::patterns;

/// The longest program, in bytes.
const LONGEST: usize = 64 << 10;

/// How deep brackets may be within each other.
const DEEPEST: usize = 48;

/// How many operators may follow each other in one statement: each is one level of the tree that is compiled.
const MOST_OPERATORS: usize = 400;

/// How many fields a program may assign. The compiler knows the type of each after every statement, so that its
/// time grows with the square of them.
const MOST_FIELDS: usize = 150;

/// How many fields the compiler may have to follow: it takes the types of all that it knows through each expression.
/// Measured, 100 to 6,000 fields in 5,000 expressions at most: 0.4 to 2.4 µs each, by [`followed`].
const MOST_FOLLOWED: u64 = 300_000;

/// How much calls within calls may cost: one at depth `d` costs two to the power of `d`, since the compiler asks for
/// the type of each argument at every level again.
const MOST_CALLS: u64 = 20_000;

/// How large all regular expressions of a program may be together, in states.
const LARGEST_PATTERNS: u64 = 300_000;

/// How many fields all programs of a configuration may assign together.
const MOST_FIELDS_TOGETHER: u64 = 1500;

/// How many fields the compiler may have to follow in all programs of a configuration together.
const MOST_FOLLOWED_TOGETHER: u64 = 600_000;

/// How long all programs of a configuration may be together, in bytes.
const LONGEST_TOGETHER: u64 = 256 << 10;

/// How much calls within calls may cost in all programs of a configuration together.
const MOST_CALLS_TOGETHER: u64 = 100_000;

/// How large the regular expressions of all programs of a configuration may be together, in states.
const LARGEST_PATTERNS_TOGETHER: u64 = 1_000_000;

/// How many components a configuration may have.
const MOST_COMPONENTS: usize = 1000;

/// The longest name of a component, in bytes.
const LONGEST_NAME: usize = 256;

/// How many inputs all components may have together.
const MOST_INPUTS: usize = 10_000;

/// How many of them may be patterns: each is compared with every output.
const MOST_PATTERNS: usize = 100;

/// How many routes all components may have together.
const MOST_ROUTES: usize = 10_000;

/// What the deepest tree within these limits takes of the stack, where nothing is optimized, several times over.
const STACK_BYTES: usize = 256 << 20;

/// How large a program is, or what it has too much of.
pub(crate) fn exceeded(source: &str) -> Result<Size, String> {
    if source.len() > LONGEST {
        return Err(format!(
            "the program has {} bytes, more than the {LONGEST} that are judged; divide it among several transforms",
            source.len()
        ));
    }
    let size = measure(source);
    if size.depth > DEEPEST {
        return Err(format!(
            "the program is nested {} deep, more than the {DEEPEST} levels that are judged; name parts of it by variables",
            size.depth
        ));
    }
    if size.operators > MOST_OPERATORS {
        return Err(format!(
            "a statement has {} operators, more than the {MOST_OPERATORS} that are judged; divide it into several",
            size.operators
        ));
    }
    if size.assignments > MOST_FIELDS {
        return Err(format!(
            "the program has {} assignments, more than the {MOST_FIELDS} that are judged; divide it among several transforms",
            size.assignments
        ));
    }
    if size.followed > MOST_FOLLOWED {
        return Err(format!(
            "the program has {} fields to follow, each counted at every expression after it, more than the {MOST_FOLLOWED} that are judged; divide it among several transforms",
            size.followed
        ));
    }
    if size.calls > MOST_CALLS {
        return Err(
            "calls are nested deeper within calls than is judged; name results by variables"
                .to_owned(),
        );
    }
    if size.patterns > LARGEST_PATTERNS {
        return Err(format!(
            "the regular expressions have {} states, more than the {LARGEST_PATTERNS} that are judged; repeat less in them",
            size.patterns
        ));
    }
    Ok(size)
}

/// What the programs of a configuration have too much of together, once there is another one.
pub(crate) fn exceeded_together(together: &mut Size, size: Size) -> Option<String> {
    together.assignments = together.assignments.saturating_add(size.assignments);
    together.bytes += size.bytes;
    together.followed = together.followed.saturating_add(size.followed);
    together.calls = together.calls.saturating_add(size.calls);
    together.patterns = together.patterns.saturating_add(size.patterns);
    let bounds = [
        (
            "assignments",
            together.assignments as u64,
            MOST_FIELDS_TOGETHER,
        ),
        ("bytes", together.bytes, LONGEST_TOGETHER),
        (
            "fields to follow",
            together.followed,
            MOST_FOLLOWED_TOGETHER,
        ),
        ("calls within calls", together.calls, MOST_CALLS_TOGETHER),
        (
            "states of regular expressions",
            together.patterns,
            LARGEST_PATTERNS_TOGETHER,
        ),
    ];
    let exceeded = bounds.into_iter().find(|(_, size, most)| size > most);
    exceeded.map(|(what, size, most)| {
        format!("the programs have {size} {what} together, more than the {most} that are judged; divide the pipeline")
    })
}

/// What a whole configuration has too much of, if anything, and where.
pub(crate) fn exceeded_by_components(config: &Map<String, Value>) -> Option<FieldError> {
    let all: Vec<_> = components(config).collect();
    let wrong =
        |path: &str, detail: String| Some(FieldError::invalid_hidden(FieldPath::new(path), detail));
    if all.len() > MOST_COMPONENTS {
        let detail = format!(
            "there are {} components, more than the {MOST_COMPONENTS} that are judged; divide the pipeline",
            all.len()
        );
        return wrong(most(config).block(), detail);
    }
    let names = all.iter().map(|component| (component, component.id));
    let of_routes = all.iter().flat_map(|component| {
        let names = routes(component);
        names.map(move |name| (component, name))
    });
    let routes = of_routes.clone().count();
    let mut names = names.chain(of_routes);
    if let Some((component, name)) = names.find(|(_, name)| name.len() > LONGEST_NAME) {
        let detail = format!(
            "a name has {} bytes, more than the {LONGEST_NAME} that are judged",
            name.len()
        );
        return wrong(component.family.block(), detail);
    }
    if routes > MOST_ROUTES {
        let detail = format!(
            "there are {routes} routes, more than the {MOST_ROUTES} that are judged; divide the pipeline"
        );
        return wrong(Family::Transform.block(), detail);
    }
    let inputs = all.iter().filter_map(|component| {
        let inputs = component.option("inputs")?.as_array()?;
        Some(inputs.len())
    });
    let inputs: usize = inputs.sum();
    if inputs > MOST_INPUTS {
        let detail = format!(
            "the components have {inputs} inputs together, more than the {MOST_INPUTS} that are judged; divide the pipeline"
        );
        return wrong(most(config).block(), detail);
    }
    let patterns = all.iter().flat_map(Component::inputs);
    let patterns = patterns.filter(|input| is_pattern(input));
    let patterns = patterns.count();
    if patterns > MOST_PATTERNS {
        let detail = format!(
            "{patterns} inputs are patterns, more than the {MOST_PATTERNS} that are judged; name the components"
        );
        return wrong(most(config).block(), detail);
    }
    None
}

/// The names of all routes of a component.
fn routes<'a>(component: &Component<'a>) -> impl Iterator<Item = &'a str> + Clone + use<'a> {
    let named = component.option("route").and_then(Value::as_object);
    let listed = component.option("routes").and_then(Value::as_array);
    let listed = listed.into_iter().flatten();
    let listed = listed.map(|route| route["name"].as_str().unwrap_or_default());
    let named = named.into_iter().flat_map(Map::keys).map(String::as_str);
    named.chain(listed)
}

/// The family that has most components.
fn most(config: &Map<String, Value>) -> Family {
    let count = |family: &Family| {
        config
            .get(family.block())
            .and_then(Value::as_object)
            .map_or(0, Map::len)
    };
    Family::ALL
        .into_iter()
        .max_by_key(count)
        .unwrap_or(Family::Source)
}

/// Runs what may go deep.
pub(crate) fn on_a_large_stack<T>(run: impl FnOnce() -> T) -> T {
    stacker::grow(STACK_BYTES, run)
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Size {
    depth: usize,
    /// In the statement that has most.
    operators: usize,
    assignments: usize,
    bytes: u64,
    /// The fields that are known, at all expressions.
    followed: u64,
    /// What calls within calls cost.
    calls: u64,
    /// The states of all regular expressions.
    patterns: u64,
}

/// Measures a text without parsing it. What stands in strings and comments does not count; where it is unclear
/// what is a string, more is counted rather than less.
fn measure(source: &str) -> Size {
    let mut size = Size {
        bytes: source.len() as u64,
        ..Size::default()
    };
    // Of each open bracket, what it is, and whether it is a call's.
    let mut open: Vec<(u8, bool)> = Vec::new();
    let mut calls_open = 0;
    let mut fields: u64 = 0;
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
                    let states = literal.map_or(0, patterns::states);
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
                size.followed += followed(fields);
                statements.push(Statement::default());
            }
            b')' | b']' | b'}' => {
                let is_call = open.pop().is_some_and(|(_, is_call)| is_call);
                calls_open -= u32::from(is_call);
                if statements.len() > 1 {
                    statements.pop();
                }
            }
            b':' if open.last() == Some(&(b'{', false)) => fields += 1,
            b'.' => {
                if let Some(statement) = statements.last_mut() {
                    statement.dots += 1;
                }
            }
            b';' => {
                size.followed += followed(fields);
                end_statement(&mut statements);
            }
            byte if byte.is_ascii_whitespace() => {
                // The whole of it at once: what stands before and after decides.
                let rest = bytes[at..].iter();
                let end = at + rest.take_while(|byte| byte.is_ascii_whitespace()).count();
                let has_newline = bytes[at..end].contains(&b'\n');
                let before = at.checked_sub(1).map(|at| bytes[at]);
                let goes_on = before.is_some_and(is_operator)
                    || bytes
                        .get(end)
                        .is_some_and(|byte| is_operator(*byte) && *byte != b'!');
                if has_newline && !goes_on {
                    size.followed += followed(fields);
                    end_statement(&mut statements);
                }
                at = end;
                continue;
            }
            byte if is_operator(byte) => {
                size.followed += followed(fields);
                if let Some(statement) = statements.last_mut() {
                    statement.operators += 1;
                    size.operators = size.operators.max(statement.operators);
                    if byte == b'=' && is_assignment(bytes, at) {
                        size.assignments += 1;
                        // Each part of its path is a field.
                        fields += mem::take(&mut statement.dots).max(1);
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

/// How much it is to follow the types of so many fields through one expression: many take more for each, since they
/// are not at hand any more.
fn followed(fields: u64) -> u64 {
    fields + fields * fields / 1000
}

/// Whether a bracket opens the arguments of a call, or the body of a closure.
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

/// Where a string ends that begins here.
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

/// What stands in a statement so far, but for what is in its brackets.
#[derive(Clone, Copy, Default)]
struct Statement {
    operators: usize,
    dots: u64,
}

fn end_statement(statements: &mut [Statement]) {
    if let Some(statement) = statements.last_mut() {
        *statement = Statement::default();
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
    fn what_is_in_strings_and_comments_does_not_count() {
        let size = measure("a = \"((((\" # [[[[\nb = r'\\'{{{' + s'((' == 1");
        assert_eq!((size.depth, size.operators, size.assignments), (0, 4, 2));
    }

    #[test]
    fn depth_and_chains_are_seen() {
        assert_eq!(measure("((([{}])))").depth, 5);
        assert_eq!(measure("1 + 2 +\n3 + 4\n5").operators, 3);
        assert_eq!(measure("1 + 2\n3 + 4\n+ 5").operators, 2);
        assert_eq!(measure("1 + (2 + 3)\n!!a").operators, 2);
    }

    #[test]
    fn what_is_known_is_followed_through_each_expression() {
        assert_eq!(measure("1 + 2\n3").followed, 0);
        // Through its own end, the sum and the call.
        assert_eq!(measure(".a = 1\n1 + f(2)").followed, 3);
        assert_eq!(measure(".a.b.c = 1\n1 + 2").followed, 6);
        assert_eq!(
            measure(r#"x = {"a": 1, "b": f(c: 1)}; 1 + 2"#).followed,
            1 + 3 + 3 + 3
        );
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
    fn calls_within_calls_cost_twice_as_much_at_each_level() {
        assert_eq!(measure("f(1); f!(1)").calls, 4);
        assert_eq!(measure("f(g(h(1)))").calls, 2 + 4 + 8);
        assert_eq!(measure("f(1) -> |v| { g(v) }").calls, 2 + 2 + 4);
        assert_eq!(measure("(((1)))").calls, 0);
    }

    #[test]
    fn all_programs_count_together() {
        let mut together = Size::default();
        let size = exceeded(&".a = 1\n".repeat(50)).expect("not too much");
        let times = MOST_FIELDS_TOGETHER / 50;
        for _ in 0..times {
            assert_eq!(exceeded_together(&mut together, size), None);
        }
        let detail = exceeded_together(&mut together, size).expect("too much");
        assert!(detail.contains("1550 assignments together"), "{detail}");
        let long = exceeded(&" ".repeat(LONGEST)).expect("not too much");
        let mut together = Size::default();
        let mut times = (0..).map_while(|_| {
            exceeded_together(&mut together, long)
                .is_none()
                .then_some(())
        });
        assert_eq!(times.by_ref().count(), 4);
        let source = r#". = {"a": 1, "b": 1, "c": 1}"#.to_owned() + &"\n1 + 1".repeat(1000);
        let fields = exceeded(&source).expect("not too much");
        let mut together = Size::default();
        let detail = (0..200).find_map(|_| exceeded_together(&mut together, fields));
        assert!(detail.is_some_and(|detail| detail.contains("fields to follow together")));
    }

    #[test]
    fn who_has_too_much_is_told_of_what() {
        assert!(exceeded(".a = 1").is_ok());
        for (source, what) in [
            (" ".repeat(LONGEST + 1), "bytes"),
            ("(".repeat(DEEPEST + 1), "levels"),
            ("!".repeat(MOST_OPERATORS + 1), "operators"),
            (".a = 1\n".repeat(MOST_FIELDS + 1), "assignments"),
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
