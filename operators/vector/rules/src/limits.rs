//! How large a program may be: a verdict must never depend on how fast the machine is, nor a program take more
//! of it than a review can give.

use serde_json::{Map, Value};
use shared_validation::{FieldError, FieldPath};

use crate::component::{Component, ComponentKind, components, is_pattern};
use crate::size::{VrlCost, measure};

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
/// Measured, 100 to 6,000 fields in 5,000 expressions at most: 0.4 to 2.4 µs each.
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
pub(crate) fn exceeded(source: &str) -> Result<VrlCost, String> {
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
pub(crate) fn exceeded_together(together: &mut VrlCost, size: VrlCost) -> Option<String> {
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
        return wrong(ComponentKind::Transform.block(), detail);
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
fn most(config: &Map<String, Value>) -> ComponentKind {
    let count = |family: &ComponentKind| {
        config
            .get(family.block())
            .and_then(Value::as_object)
            .map_or(0, Map::len)
    };
    ComponentKind::ALL
        .into_iter()
        .max_by_key(count)
        .unwrap_or(ComponentKind::Source)
}

/// Runs what may go deep.
pub(crate) fn on_a_large_stack<T>(run: impl FnOnce() -> T) -> T {
    stacker::grow(STACK_BYTES, run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_followed_through_a_program_is_bounded() {
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
    fn all_programs_count_together() {
        let mut together = VrlCost::default();
        let size = exceeded(&".a = 1\n".repeat(50)).expect("not too much");
        let times = MOST_FIELDS_TOGETHER / 50;
        for _ in 0..times {
            assert_eq!(exceeded_together(&mut together, size), None);
        }
        let detail = exceeded_together(&mut together, size).expect("too much");
        assert!(detail.contains("1550 assignments together"), "{detail}");
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
