use super::*;
use crate::source::Source;
use crate::source::spec::text_field;

fn rule<'a>(name: &'a str, field: &str) -> NewRule<'a> {
    let text = format!("struct LampSpec {{ {field} }}");
    let source = Source::parse(&text).expect("Rust");
    NewRule {
        name,
        kind: "Lamp",
        field: text_field(&source, "LampSpec", &["text"]).expect("a field"),
        has_let_chains: false,
    }
}

#[test]
fn the_texts_satisfy_and_violate_only_the_rule() {
    let texts = |field: &str, present: Option<&str>, is_schema| {
        rule("web", field).texts(present, is_schema)
    };
    let expected = |valid: &str, violating: &str| Some((valid.to_owned(), violating.to_owned()));
    let free = "text: String";
    let with = |length: &str| format!("#[schemars(length({length}))] text: String");
    for (field, present, is_schema, texts_expected) in [
        (free, Some("a"), false, expected("a", "a web")),
        (free, None, false, expected("example", "example web")),
        (free, Some("my web"), false, None),
        (
            &with("max = 4"),
            Some("abcd"),
            false,
            expected("abcd", "web"),
        ),
        (&with("max = 4"), None, false, expected("text", "web")),
        (
            &with("max = 3, min = 3"),
            Some("abc"),
            false,
            expected("abc", "web"),
        ),
        (&with("max = 2"), Some("a"), false, None),
        (
            &with("max = 9"),
            Some("abc"),
            true,
            expected("abc", "abc <web>"),
        ),
        (
            &with("max = 8"),
            Some("abc"),
            true,
            expected("abc", "<web>"),
        ),
        (&with("max = 4"), Some("abc"), true, expected("abc", "abc<")),
        (&with("equal = 1"), Some("a"), true, expected("a", "<")),
        (&with("max = 9"), Some("a < b"), true, None),
        (
            free,
            Some("a <web>"),
            true,
            expected("a <web>", &format!("a <web>{}", "x".repeat(506))),
        ),
        (free, Some(&"x".repeat(513)), true, None),
    ] {
        assert_eq!(
            texts(field, present, is_schema),
            texts_expected,
            "{field} {present:?}"
        );
    }
}

/// Editions before 2024 have no conditions such as `if let … && …`.
#[test]
fn conditions_are_nested_where_they_cannot_be_chained() {
    let field = "text: Option<String>";
    let check = |has_let_chains| {
        let rule = NewRule {
            has_let_chains,
            ..rule("web", field)
        };
        rule.check(&Imports::default())
    };
    let nested = "    if let Some(text) = &context.object.spec.text {\n        if text.contains(\"web\") {\n";
    assert!(check(false).contains(nested), "{}", check(false));
    for (has_let_chains, edition) in [(false, "2021"), (true, "2024")] {
        let check = check(has_let_chains);
        syn::parse_str::<syn::ItemFn>(&check).expect("Rust");
        let rustfmt = crate::rustfmt::Rustfmt::new(Some(edition.to_owned()));
        let formatted = rustfmt.formatted(std::path::Path::new("/a.rs"), &check);
        assert!(formatted.is_some(), "{check}");
    }
    assert!(check(true).contains("\n        && text.contains(\"web\")\n    {"));
}
