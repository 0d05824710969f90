//! Changes of the files that all operators of a program share.

use std::path::PathBuf;

use crate::error::Error;
use crate::names::Names;
use crate::operator_form::OperatorForm;
use crate::project::{Project, read};

/// Dependencies of an operator that is a reconciler, besides those of every operator.
const DEPENDENCIES: [(&str, &str); 6] = [
    ("async-trait", "\"0.1\""),
    (
        "axum",
        "{ version = \"0.8\", default-features = false, features = [\"http1\", \"json\", \"tokio\"] }",
    ),
    ("http-body-util", "\"0.1\""),
    (
        "hyper",
        "{ version = \"1\", features = [\"client\", \"http1\"] }",
    ),
    (
        "hyper-util",
        "{ version = \"0.1\", features = [\"client-legacy\", \"http1\"] }",
    ),
    (
        "tokio",
        "{ version = \"1\", features = [\"net\", \"rt\", \"time\"] }",
    ),
];

/// Returns the changed files that a form of an operator needs, with their new content.
///
/// # Errors
///
/// A file has no place for the change.
pub(crate) fn of_form(
    project: &Project,
    names: &Names,
    form: OperatorForm,
) -> Result<Vec<(PathBuf, String)>, Error> {
    if form == OperatorForm::Handler {
        return Ok(Vec::new());
    }
    let (manifest, cases) = (project.path("Cargo.toml"), project.path("tests/cases.rs"));
    let with_dependencies = with_dependencies(&read(&manifest)?).ok_or_else(|| Error::NoPlace {
        path: manifest.clone(),
        missing: "the line `[dependencies]`",
        by_hand: "the dependencies that `lockstep new --reconciler` writes".to_owned(),
    })?;
    let with_simulator = with_simulator(&read(&cases)?, names).ok_or_else(|| Error::NoPlace {
        path: cases.clone(),
        missing: "a line `cases.are_as_expected_everywhere()`, with a variable `cases`",
        by_hand: format!("before it\n\n{}", simulator(names)),
    })?;
    Ok(vec![(manifest, with_dependencies), (cases, with_simulator)])
}

/// Returns a manifest with the dependencies of a reconciler that it lacks, each before the first that sorts after it.
fn with_dependencies(manifest: &str) -> Option<String> {
    let mut lines: Vec<String> = manifest.lines().map(ToOwned::to_owned).collect();
    let first = 1 + lines
        .iter()
        .position(|line| line.trim() == "[dependencies]")?;
    for (name, requirement) in DEPENDENCIES {
        let section = lines[first..].iter();
        let section = section.take_while(|line| !line.is_empty() && !line.starts_with('['));
        let section: Vec<_> = section.collect();
        let name_of = |line: &str| {
            line.split(['=', '.'])
                .next()
                .map(|name| name.trim().to_owned())
        };
        let has_name = |line: &&String| name_of(line).is_some_and(|other| other == name);
        if section.iter().any(has_name) {
            continue;
        }
        let is_after = |line: &&String| name_of(line).is_some_and(|other| *name < *other);
        let at = section.iter().position(is_after);
        let at = first + at.unwrap_or(section.len());
        lines.insert(at, format!("{name} = {requirement}"));
    }
    Some(lines.join("\n") + "\n")
}

/// Returns the test of the cases with the simulator that the controller needs.
fn with_simulator(test: &str, names: &Names) -> Option<String> {
    let at = test.find("    cases.are_as_expected_everywhere()")?;
    Some(format!(
        "{}{}{}",
        &test[..at],
        simulator(names),
        &test[at..]
    ))
}

/// Returns the lines of a test that start the simulator.
fn simulator(names: &Names) -> String {
    names.apply(
        "    let greeting = greeting_operator::greeting::simulator::start().await;\n    \
         let greeting = greeting.expect(\"the simulator starts\");\n    \
         let (variable, url) = greeting.environment[0].clone();\n    \
         let cases = cases.controller_env(variable, url);\n",
    )
}

/// Returns the library with the module and the registration of a kind, after those that it has.
pub(crate) fn with_kind(library: &str, names: &Names, form: OperatorForm) -> Option<String> {
    let mut lines: Vec<String> = library.lines().map(ToOwned::to_owned).collect();
    let last = |lines: &[String], start: &str| {
        lines
            .iter()
            .rposition(|line| line.trim_start().starts_with(start))
    };
    let operator = last(&lines, ".operator(")?;
    let indent = lines[operator].len() - lines[operator].trim_start().len();
    let module = &names.module;
    let registered = match form {
        OperatorForm::Handler if imports_operator(library) => {
            format!("Operator::of({module}::operator)")
        }
        OperatorForm::Handler => format!("lockstep_sdk::Operator::of({module}::operator)"),
        OperatorForm::Reconciler => format!("{module}::operator()"),
    };
    let registration = format!("{}.operator({registered})", " ".repeat(indent));
    // A call of several lines is not changed: the reader adds the kind.
    let count = |bracket| lines[operator].matches(bracket).count();
    if count('(') != count(')') {
        return None;
    }
    let ends_statement = lines[operator].ends_with(';');
    let registration = if ends_statement {
        let without = lines[operator].trim_end_matches(';').to_owned();
        lines[operator] = without;
        registration + ";"
    } else {
        registration
    };
    lines.insert(operator + 1, registration);
    let module = last(&lines, "pub mod ")?;
    lines.insert(module + 1, format!("pub mod {};", names.module));
    Some(lines.join("\n") + "\n")
}

/// Returns true if a library imports `Operator` by name.
fn imports_operator(library: &str) -> bool {
    let mut imports = library
        .lines()
        .filter(|line| line.starts_with("use lockstep_sdk::"));
    imports.any(|line| {
        let mut names = line.split(|letter: char| !letter.is_alphanumeric());
        names.any(|name| name == "Operator")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::REPOSITORY;

    fn names() -> Names {
        Names::new("a", "SecondKind", "demo.example.com", "v1", None).expect("names")
    }

    fn template(path: &str) -> &'static str {
        let found = REPOSITORY.iter().find(|template| template.path == path);
        found.expect("a template").content
    }

    #[test]
    fn a_kind_is_registered_after_the_others() {
        let library = "//! Operators.\n\npub mod first;\n\nuse lockstep_sdk::{Operator, Program};\n\nfn program() -> Program {\n    Program::new(\"a\")\n        \
                       .operator(Operator::of(first::operator))\n}\n";
        let expected = |registered: &str| {
            format!(
                "//! Operators.\n\npub mod first;\npub mod second_kind;\n\nuse lockstep_sdk::{{Operator, Program}};\n\n\
                 fn program() -> Program {{\n    Program::new(\"a\")\n        \
                 .operator(Operator::of(first::operator))\n        .operator({registered})\n}}\n"
            )
        };
        let with = |library, form| with_kind(library, &names(), form);
        let handler = expected("Operator::of(second_kind::operator)");
        assert_eq!(with(library, OperatorForm::Handler), Some(handler));
        let reconciler = expected("second_kind::operator()");
        assert_eq!(with(library, OperatorForm::Reconciler), Some(reconciler));
        assert_eq!(with("fn main() {}\n", OperatorForm::Handler), None);
        let several =
            "pub mod first;\n        .operator(\n            first::operator(),\n        )\n";
        assert_eq!(with(several, OperatorForm::Handler), None);
    }

    #[test]
    fn a_handler_is_registered_also_where_the_type_is_not_imported() {
        let library =
            "pub mod first;\n\nuse lockstep_sdk::Program;\n        .operator(first::operator());\n";
        let expected = "pub mod first;\npub mod second_kind;\n\nuse lockstep_sdk::Program;\n        \
                        .operator(first::operator())\n        \
                        .operator(lockstep_sdk::Operator::of(second_kind::operator));\n";
        let registered = with_kind(library, &names(), OperatorForm::Handler);
        assert_eq!(registered.as_deref(), Some(expected));
    }

    #[test]
    fn missing_dependencies_are_added_in_their_order() {
        let changed = with_dependencies(template("Cargo.toml")).expect("a section");
        let section = changed.split("[dependencies]\n").nth(1).expect("a section");
        let section = section.split("\n\n").next().unwrap_or_default();
        let of_section: Vec<_> = section
            .lines()
            .filter_map(|line| line.split(' ').next())
            .collect();
        assert!(of_section.is_sorted(), "{of_section:?}");
        for (name, _) in DEPENDENCIES {
            assert!(of_section.contains(&name), "{name}");
        }
        assert!(changed.contains("\n\n[dev-dependencies]\n"), "{changed}");
        assert_eq!(with_dependencies(&changed), Some(changed.clone()));
        let own = "[dependencies]\ntokio.workspace = true\n";
        let with_own = with_dependencies(own).expect("a section");
        assert!(
            with_own.ends_with("\ntokio.workspace = true\n"),
            "{with_own}"
        );
        assert_eq!(with_dependencies("[package]\n"), None);
    }

    #[test]
    fn the_cases_run_with_the_simulators_of_all_kinds() {
        let first = with_simulator(template("tests/cases.rs"), &names()).expect("a place");
        let other = Names::new("a", "Third", "demo.example.com", "v1", None).expect("names");
        let both = with_simulator(&first, &other).expect("a place");
        for (module, after) in [("second_kind", "third"), ("third", "cases.are_as_expected")] {
            let started = both.find(&format!("a::{module}::simulator::start()"));
            assert!(started < both.rfind(after), "{both}");
            assert!(started.is_some(), "{both}");
        }
        assert_eq!(with_simulator("fn main() {}\n", &names()), None);
    }
}
