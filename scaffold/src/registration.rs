//! Changes of the files that all operators of a program share.

use std::path::Path;

use crate::audience::Audience;
use crate::edits::{Edits, indentation};
use crate::error::Error;
use crate::manifest::Manifest;
use crate::manifest::dependencies::{add_dependencies, lines};
use crate::names::Names;
use crate::operator_form::OperatorForm;
use crate::source::Source;
use crate::source::cases_test::{Cases, comparisons};
use crate::source::modules::{add_module, has_module};
use crate::source::registration::{SdkNames, registration};

/// Returns a manifest with the dependencies of a reconciler, and sentences on what the author must check.
///
/// # Errors
///
/// The manifest has no place for them.
pub(crate) fn with_dependencies(path: &Path, text: &str) -> Result<(String, Vec<String>), Error> {
    let manifest = Manifest::parse(path, text)?;
    let mut edits = Edits::of(text);
    let notes = add_dependencies(&manifest, &mut edits).map_err(|missing| Error::NoPlace {
        path: path.to_owned(),
        missing: missing.to_owned(),
        by_hand: format!("\n\n[dependencies]\n{}", lines()),
    })?;
    let notes = notes.into_iter();
    let notes = notes.map(|note| format!("{}: {note}", path.display()));
    Ok((edits.apply(), notes.collect()))
}

/// Returns the test of the cases with the simulator that the controller needs.
///
/// # Errors
///
/// The test does not compare the cases.
pub(crate) fn with_simulator(path: &Path, text: &str, names: &Names) -> Result<String, Error> {
    let source = Source::parse(text).map_err(Error::syntax(path))?;
    let comparisons = comparisons(&source);
    if comparisons.is_empty() {
        return Err(Error::NoPlace {
            path: path.to_owned(),
            missing: "a call `cases.are_as_expected_everywhere()`".to_owned(),
            by_hand: format!("before it\n\n{}", simulator(names, "cases", "    ")),
        });
    }
    let mut edits = Edits::of(text);
    for comparison in comparisons {
        let indentation = indentation(text, comparison.statement);
        let lines = match &comparison.cases {
            Cases::Variable(cases) => simulator(names, cases, indentation),
            Cases::Expression(end) => {
                let environment = names.apply("&greeting.environment[0]");
                edits.insert(
                    *end,
                    format!(".controller_env({environment}.0, {environment}.1)"),
                );
                started_simulator(names, indentation)
            }
        };
        // The statement is indented already.
        let lines = lines.trim_start();
        edits.insert(comparison.statement, format!("{lines}{indentation}"));
    }
    Ok(edits.apply())
}

/// Returns the lines of a test that start the simulator, and set its address for the controller.
fn simulator(names: &Names, cases: &str, indentation: &str) -> String {
    let environment = names.apply("greeting.environment[0].clone()");
    format!(
        "{started}{indentation}let (variable, url) = {environment};\n\
         {indentation}let {cases} = {cases}.controller_env(variable, url);\n",
        started = started_simulator(names, indentation)
    )
}

fn started_simulator(names: &Names, indentation: &str) -> String {
    let simulator = names.apply("greeting_operator::greeting::simulator::start()");
    let (module, expected) = (&names.module, "the simulator starts");
    format!(
        "{indentation}let {module} = {simulator}.await;\n\
         {indentation}let {module} = {module}.expect(\"{expected}\");\n"
    )
}

/// Returns the library with the module and the registration of a kind, after those that it has.
///
/// # Errors
///
/// The library registers no operator, or has a module of the name.
pub(crate) fn with_kind(
    path: &Path,
    text: &str,
    names: &Names,
    form: OperatorForm,
    audience: Audience,
) -> Result<String, Error> {
    let source = Source::parse(text).map_err(Error::syntax(path))?;
    let module = &names.module;
    if has_module(&source, module) {
        return Err(Error::ModuleExists {
            path: path.to_owned(),
            name: module.clone(),
        });
    }
    let call = |root: &str, sdk: &SdkNames| match form {
        OperatorForm::Handler => {
            let SdkNames {
                operator,
                audiences,
            } = sdk;
            let audience = audience.variant().replacen("Audience", audiences, 1);
            format!(".operator({operator}::of({audience}, {root}{module}::operator))")
        }
        OperatorForm::Reconciler => format!(".operator({root}{module}::operator())"),
    };
    let last = registration(&source).map_err(|missing| Error::NoPlace {
        path: path.to_owned(),
        missing,
        by_hand: format!(
            "the files of a kind of another repository that `lockstep new` creates, with `pub mod {module};`, and \
             `{}` where the program is created",
            call("crate::", &SdkNames::default())
        ),
    })?;
    let mut edits = Edits::of(text);
    add_module(&source, module, &mut edits);
    last.add(text, &call(last.root, &last.sdk), &mut edits);
    Ok(edits.apply())
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
        let library = "//! Operators.\n\npub mod first;\n\nuse lockstep_sdk::{Audience, Operator, Program};\n\nfn program() -> Program {\n    Program::new(\"a\")\n        \
                       .operator(Operator::of(Audience::Tenants, first::operator))\n}\n";
        let expected = |registered: &str| {
            format!(
                "//! Operators.\n\npub mod first;\npub mod second_kind;\n\nuse lockstep_sdk::{{Audience, Operator, Program}};\n\n\
                 fn program() -> Program {{\n    Program::new(\"a\")\n        \
                 .operator(Operator::of(Audience::Tenants, first::operator))\n        .operator({registered})\n}}\n"
            )
        };
        let with = |library, form| {
            let path = Path::new("lib.rs");
            with_kind(path, library, &names(), form, Audience::Administrators)
                .map_err(|error| error.to_string())
        };
        let handler = expected("Operator::of(Audience::Administrators, second_kind::operator)");
        assert_eq!(with(library, OperatorForm::Handler), Ok(handler.clone()));
        let reconciler = expected("second_kind::operator()");
        assert_eq!(with(library, OperatorForm::Reconciler), Ok(reconciler));

        let error = with(&handler, OperatorForm::Handler).expect_err("the module exists");
        assert!(error.contains("`second_kind` exists already"), "{error}");
        let error = with("fn main() {}\n", OperatorForm::Handler).expect_err("no program");
        for part in [
            "`pub mod second_kind;`",
            "`.operator(lockstep_sdk::Operator::of(lockstep_sdk::Audience::Administrators, crate::second_kind::operator))`",
        ] {
            assert!(error.contains(part), "{error}");
        }
        let error = with("//! A.\n\nfn main( {}\n", OperatorForm::Handler).expect_err("no Rust");
        assert!(error.starts_with("lib.rs:3: "), "{error}");
    }

    #[test]
    fn the_cases_run_with_the_simulators_of_all_kinds() {
        let with = |text: &str, names: &Names| {
            with_simulator(Path::new("cases.rs"), text, names).map_err(|error| error.to_string())
        };
        let first = with(template("tests/cases.rs"), &names()).expect("a place");
        let other = Names::new("a", "Third", "demo.example.com", "v1", None).expect("names");
        let both = with(&first, &other).expect("a place");
        let expected = "    let second_kind = a::second_kind::simulator::start().await;
    let second_kind = second_kind.expect(\"the simulator starts\");
    let (variable, url) = second_kind.environment[0].clone();
    let cases = cases.controller_env(variable, url);
    let third = a::third::simulator::start().await;
    let third = third.expect(\"the simulator starts\");
    let (variable, url) = third.environment[0].clone();
    let cases = cases.controller_env(variable, url);
    cases.are_as_expected_everywhere().await;
}
";
        assert!(both.ends_with(expected), "{both}");
        let error = with("fn main() {}\n", &names()).expect_err("no call");
        assert!(
            error.contains("let cases = cases.controller_env(variable, url);"),
            "{error}"
        );
    }

    #[test]
    fn the_dependencies_to_add_by_hand_are_printed() {
        let error = with_dependencies(Path::new("Cargo.toml"), "[package]\n");
        let error = error.expect_err("no section").to_string();
        let lines = "[dependencies]\nasync-trait = \"0.1\"\naxum = { version = \"0.8\",";
        assert!(error.contains(lines), "{error}");
    }

    #[test]
    fn the_simulator_is_set_in_a_chain() {
        let text = "async fn a() {\r\n\tCases::read(\"a\")\r\n\t\t.are_as_expected_everywhere().await;\r\n}\r\n";
        let changed = with_simulator(Path::new("cases.rs"), text, &names()).expect("a place");
        let expected = "async fn a() {\r\n\tlet second_kind = a::second_kind::simulator::start().await;\r\n\t\
                        let second_kind = second_kind.expect(\"the simulator starts\");\r\n\tCases::read(\"a\")\
                        .controller_env(&second_kind.environment[0].0, &second_kind.environment[0].1)\r\n\t\t\
                        .are_as_expected_everywhere().await;\r\n}\r\n";
        assert_eq!(changed, expected);
    }
}
