use super::*;

/// Returns a library with one more registration, or what is missing.
fn registered(text: &str) -> Result<String, String> {
    let source = Source::parse(text).expect("Rust");
    let found = registration(&source)?;
    let mut edits = Edits::of(text);
    let call = format!(".operator({}b::operator())", found.root);
    found.add(text, &call, &mut edits);
    Ok(edits.apply())
}

/// Asserts that a registration is added where the text has `<>`.
fn assert_added(marked: &str, call: &str) {
    let text = marked.replace("<>", "");
    assert_eq!(registered(&text), Ok(marked.replace("<>", call)));
}

#[test]
fn a_registration_follows_the_last_one() {
    let line = "\n        .operator(b::operator())";
    for marked in [
        "fn program() -> Program {\n    Program::new(\"a\")\n        .operator(a::operator())<>\n}\n",
        "fn program() -> Program {\n    let program = lockstep_sdk::Program::new(\"a\")\n        \
         .operator(a::operator())\n        .operator(Operator::of(c::operator))<>;\n    program\n}\n",
        "fn program() -> P {\n    P::new(\"a\")\n        .operator(\n            a::operator()\n                \
         .operator(1),\n        )<>\n        .about(\".operator(x)\")\n}\nuse lockstep_sdk::Program as P;\n",
        // A comment with parentheses and the text of a call.
        "fn main() -> ExitCode {\n    Program::new(\"a\")\n        // .operator(x) (\n        .operator(a::operator())<>\n        \
         // .operator(y)\n        .run()\n}\n",
        "fn program() -> Program {\n    let it = base();\n    it\n        .operator(a::operator(\")\"))<>\n        .about(\"b\")\n}\n\
         fn base() -> Program { x() }\n",
        "\u{feff}fn program() -> Program {\r\n    Program::new(\"ä\")\r\n        .operator(a::operator())<>\r\n}\r\n",
    ] {
        let line = if marked.contains('\r') {
            line.replace('\n', "\r\n")
        } else {
            line.to_owned()
        };
        assert_added(marked, &line);
    }
}

#[test]
fn a_registration_within_a_line_stays_there() {
    for marked in [
        "fn program() -> Program { Program::new(\"a\").operator(a::operator())<> }",
        "fn program(mut program: Program) -> Program {\n    program = program.operator(a::operator())<>;\n    program\n}\n",
        "fn run() { sdk::run(Program::new(\"a\").operator(a::operator())<>) }",
    ] {
        assert_added(marked, ".operator(b::operator())");
    }
    assert_added(
        "mod inner {\n    fn program() -> Program { Program::new(\"a\").operator(super::a())<> }\n}\n",
        ".operator(crate::b::operator())",
    );
}

#[test]
fn a_comment_stays_behind_its_registration() {
    let text = "fn program() -> Program {\n    let it = Program::new(\"a\")\n        .operator(a()); // the first\n    it\n}\n";
    let expected = "fn program() -> Program {\n    let it = Program::new(\"a\")\n        .operator(a()) // the first\n        \
                    .operator(b::operator());\n    it\n}\n";
    assert_eq!(registered(text), Ok(expected.to_owned()));
}

#[test]
fn other_calls_are_no_registrations() {
    for text in [
        "fn main() {}",
        "fn program() -> Program { Program::new(\"a\") }",
        "fn f(parser: Parser) { parser.operator(\"+\"); }",
        "fn f() { let x = Parser::new(); x.operator(\"+\"); }",
        "fn program() -> Program { Program::new(\"a\").operator() }",
        "#[cfg(test)]\nfn program() -> Program { Program::new(\"a\").operator(a()) }",
        "#[cfg(test)]\nmod tests { fn f() -> Program { Program::new(\"a\").operator(a()) } }",
        "fn program(is_it: bool) -> Program { if is_it { Program::new(\"a\").operator(a()) } else { x() } }",
        "fn program(mut it: Program) -> Program { for one in all { it = it.operator(one); } it }",
        "fn program(it: Program) -> Program { #[cfg(unix)] let it = it.operator(a()); it }",
        "fn program(it: Program) -> Program { #[cfg(unix)] { it.operator(a()) } #[cfg(not(unix))] { it.operator(a()) } }",
        "fn program(it: Program) -> Program { #[cfg(unix)] return it.operator(a()); it }",
        "fn program(mut it: Program) -> Program { #[cfg(unix)] it = it.operator(a()); it }",
        "fn run(it: Program) { #[cfg(unix)] it.operator(a()).run(); }",
        "fn run(it: Program) { start(1, #[cfg(unix)] it.operator(a())) }",
        "// Program::new(\"a\").operator(a())\nconst A: &str = \"Program::new().operator(a())\";",
    ] {
        let error = registered(text).expect_err(text);
        assert!(error.contains("a call `.operator(…)`"), "{text}: {error}");
    }
}

#[test]
fn of_several_functions_the_program_is_meant() {
    let other = "fn other() -> Program { Program::new(\"a\").operator(a()) }\n";
    let marked = "fn program() -> Program { Program::new(\"a\").operator(a())<> }\n";
    assert_added(&format!("{marked}{other}"), ".operator(b::operator())");
    let third = other.replace("other", "third");
    let error = registered(&format!("{third}{other}")).expect_err("two functions");
    assert!(
        error.contains("`third` (line 1), `other` (line 2)"),
        "{error}"
    );
}

#[test]
fn programs_are_told_apart() {
    let body = "-> Program { Program::new(\"a\").operator(a()) }";
    for (text, places) in [
        (
            format!("mod x {{ fn program() {body} }}\nmod y {{ fn program() {body} }}"),
            "`x::program` (line 1), `y::program` (line 2)",
        ),
        (
            format!("impl A {{ fn program() {body} }}\nimpl B<C> {{ fn program() {body} }}"),
            "`A::program` (line 1), `B<C>::program` (line 2)",
        ),
        (
            "fn main() {\n    let a = Program::new(\"a\").operator(a());\n    let b = Program::new(\"b\").operator(b());\n}"
                .to_owned(),
            "`main` (line 2), `main` (line 3)",
        ),
        (
            "fn main(it: Program) {\n    it.operator(a()).run();\n    let it = base();\n    it.operator(b()).run();\n}\n             fn base() -> Program { x() }"
                .to_owned(),
            "`main` (line 1), `main` (line 3)",
        ),
        (
            "fn main(mut it: Program) {\n    it.operator(a()).run();\n    it = Program::new(\"b\");\n    it.operator(b()).run();\n}"
                .to_owned(),
            "`main` (line 1), `main` (line 3)",
        ),
    ] {
        let error = registered(&text).expect_err(&text);
        assert!(error.ends_with(places), "{error}");
    }
    assert_added(
        "fn main() {\n    let it = Program::new(\"a\").operator(a());\n    let it = it.about(\"b\").operator(b())<>;\n}",
        ".operator(b::operator())",
    );
}

#[test]
fn the_type_is_written_as_it_is_imported() {
    let operator_type = |imports: &str, inner: &str| {
        let text = format!(
            "{imports}\nfn program() -> Program {{ {inner} Program::new(\"a\").operator(a()) }}"
        );
        let source = Source::parse(&text).expect("Rust");
        registration(&source).map(|found| found.sdk.operator)
    };
    for (imports, inner, expected) in [
        (
            "use lockstep_sdk::{\n    Operator,\n    Program,\n};",
            "",
            "Operator",
        ),
        ("use lockstep_sdk::{Operator as Op};", "", "Op"),
        ("", "use lockstep_sdk::Operator;", "Operator"),
        ("use lockstep_sdk::*;", "", "Operator"),
        ("use lockstep_sdk as sdk;", "", "sdk::Operator"),
        (
            "// use lockstep_sdk::Operator;",
            "",
            "lockstep_sdk::Operator",
        ),
        ("use other::Operator;", "", "lockstep_sdk::Operator"),
    ] {
        assert_eq!(operator_type(imports, inner), Ok(expected.to_owned()));
    }
}
