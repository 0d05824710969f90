use std::fs;
use std::path::Path;

use clap::Parser;

use crate::test_repository::repository;
use crate::{AddArgs, add};

fn add_rule(folder: &Path, arguments: &[&str]) -> Result<(), String> {
    let args = ["add", "rule"].iter().chain(arguments);
    let args = AddArgs::parse_from(args.chain(&["--kind", "Lamp"]));
    add(&args, folder)
        .map(drop)
        .map_err(|error| error.to_string())
}

#[test]
fn a_rule_of_each_layer_is_added_where_the_others_are() {
    let folder = tempfile::tempdir().expect("a folder");
    repository(folder.path());
    for (name, layer) in [("brand", "schema"), ("gold", "cel"), ("silver", "rust")] {
        add_rule(folder.path(), &[name, "--layer", layer]).expect("a rule");
    }
    let read = |path: &str| fs::read_to_string(folder.path().join(path)).expect("a file");
    let resource = read("src/lamp/resource.rs");
    let attributes = "[single-line]\"))]
    #[schemars(regex(pattern = \"^[^<>]*$\"))]
    #[x_kube(validation = Rule::new(\"!self.contains('gold')\").message(\"must not contain `gold` [gold]\"))]
    pub text: String,";
    assert!(resource.contains(attributes), "{resource}");
    let rules = read("src/lamp/rules.rs");
    for part in [
        "id: \"balanced-braces\",",
        "id: \"silver\",",
        "\nfn check_silver(",
    ] {
        assert!(rules.contains(part), "{rules}");
    }
    let violation = read("tests/cases/lamp-violates-silver.yaml");
    assert!(violation.contains("    text: H silver\n"), "{violation}");
    assert!(violation.contains("  - rule: silver\n"), "{violation}");
    assert!(!read("tests/cases/lamp-satisfies-silver.yaml").contains("errors"));

    for (taken, layer) in [
        ("silver", "rust"),
        ("gold", "cel"),
        ("balanced-braces", "cel"),
        ("single-line", "rust"),
        // The function `check_braces` is that of another rule.
        ("braces", "rust"),
    ] {
        let again = add_rule(folder.path(), &[taken, "--layer", layer]);
        let error = again.expect_err("a taken id");
        assert!(error.contains("exists already"), "{taken}: {error}");
    }
    assert_eq!(read("src/lamp/resource.rs"), resource);
    assert_eq!(read("src/lamp/rules.rs"), rules);
}

#[test]
fn nothing_is_written_where_the_place_is_not_found() {
    let folder = tempfile::tempdir().expect("a folder");
    repository(folder.path());
    let rules = folder.path().join("src/lamp/rules.rs");
    let own = "pub fn rules() -> Vec<Rule<Lamp>> { all() }\n";
    fs::write(&rules, own).expect("a file");
    let error = add_rule(folder.path(), &["gold", "--layer", "rust"]).expect_err("no list");
    for part in [
        "a function `rules` that ends with `vec![…]`",
        "id: \"gold\"",
        "fn check_gold(",
    ] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(fs::read_to_string(&rules).expect("a file"), own);
    let error = add_rule(folder.path(), &["gold", "--field", "size"]).expect_err("no field");
    assert!(
        error.contains("lamp/resource.rs") && error.contains("`--field size`"),
        "{error}"
    );
    let error = add_rule(folder.path(), &["gold", "--field", "language"]).expect_err("a pattern");
    let expected = "`language` has a pattern, which may also deny the text of the new case";
    assert!(error.contains(expected), "{error}");
    assert!(
        error.contains(".message(\"must not contain `gold` [gold]\"))]"),
        "{error}"
    );
    assert!(
        !folder
            .path()
            .join("tests/cases/lamp-violates-gold.yaml")
            .exists()
    );
}

/// The file of an author who does not use rustfmt keeps its form.
#[test]
fn only_a_file_that_was_formatted_is_formatted() {
    let folder = tempfile::tempdir().expect("a folder");
    repository(folder.path());
    let path = folder.path().join("src/lamp/rules.rs");
    let rules = fs::read_to_string(&path).expect("a file");
    fs::write(&path, rules + "\nfn  own( ) { }\n").expect("a file");
    add_rule(folder.path(), &["gold", "--layer", "rust"]).expect("a rule");
    let changed = fs::read_to_string(&path).expect("a file");
    assert!(changed.contains("\nfn  own( ) { }\n"), "{changed}");
}

const RESOURCE: &str = "//! Custom resource.\r\n\r\nuse kube::KubeSchema;\r\n\r\n#[derive(KubeSchema)]\r\n\
                        #[serde(rename_all = \"kebab-case\")]\r\npub struct LampSpec {\r\n    pub text: String,\r\n    \
                        pub light_bulb: Option<LightBulb>,\r\n    #[serde(flatten)]\r\n    pub shared: Shared,\r\n}\r\n\r\n\
                        #[derive(JsonSchema)]\r\npub struct LightBulb {\r\n    pub r#type: String,\r\n}\r\n\r\n\
                        #[derive(JsonSchema)]\r\n#[serde(rename_all = \"camelCase\")]\r\npub struct Shared {\r\n    \
                        pub light_note: Option<String>,\r\n}\r\n";

/// A nested field has a path in JSON and another one in Rust.
#[test]
fn a_rule_of_a_nested_field_is_added() {
    let folder = tempfile::tempdir().expect("a folder");
    repository(folder.path());
    let path = |path: &str| folder.path().join(path);
    let read = |file: &str| fs::read_to_string(path(file)).expect("a file");
    fs::write(path("src/lamp/resource.rs"), RESOURCE).expect("a file");
    // The author imports nothing by name.
    let rules = "pub fn rules() -> Vec<lockstep_sdk::shared_validation::Rule<super::resource::Lamp>> {\n    vec![]\n}\n";
    fs::write(path("src/lamp/rules.rs"), rules).expect("a file");
    let nested = ["--field", "spec.light_bulb.type"];
    let add = |name: &str, layer: &str, field: &[&str]| {
        add_rule(folder.path(), &[&[name, "--layer", layer], field].concat())
    };

    let error = add("gold", "rust", &nested).expect_err("no object");
    let expected = "a file with a valid object of the kind with the field `spec.light-bulb`";
    assert!(error.contains(expected), "{error}");
    assert_eq!(read("src/lamp/rules.rs"), rules);
    let case = "object:\n  kind: Lamp\n  spec:\n    text: a b c d e f g h i j k l m n o p q r s t u v w x y z\n    light-bulb:\n      type: LED\n";
    fs::write(path("tests/cases/lamp-bulb.yaml"), case).expect("a file");

    let other = case.replace("light-bulb:\n      type: LED", "light-bulb: LED");
    fs::write(path("tests/cases/lamp-bulb.yaml"), other).expect("a file");
    let error = add("gold", "rust", &nested).expect_err("no object");
    let expected = "the field `spec.light-bulb.type` can be set: in the smallest one, `type` is a field of the value \"LED\"";
    assert!(error.contains(expected), "{error}");
    fs::write(path("tests/cases/lamp-bulb.yaml"), case).expect("a file");

    add("gold", "rust", &nested).expect("a rule");
    let changed = read("src/lamp/rules.rs");
    for part in [
        "lockstep_sdk::shared_validation::Rule {",
        "severity: lockstep_sdk::shared_validation::Severity::Error",
        "\"spec.light-bulb.type\"",
        "context: &lockstep_sdk::shared_validation::RuleContext<'_, super::resource::Lamp>",
        "    if let Some(inner) = &context.object.spec.light_bulb
        && inner.r#type.contains(\"gold\")
    {",
        "inner.r#type.as_str()",
    ] {
        assert!(changed.contains(part), "{part}: {changed}");
    }
    let violation = read("tests/cases/lamp-violates-gold.yaml");
    assert!(
        violation.contains("    light-bulb:\n      type: LED gold\n"),
        "{violation}"
    );

    let error = add("red", "cel", &nested).expect_err("the struct has no rules in CEL");
    assert!(error.contains("does not derive `KubeSchema`"), "{error}");
    assert_eq!(read("src/lamp/resource.rs"), RESOURCE);
    add("red", "schema", &nested).expect("a rule");
    let attribute = "    #[schemars(length(max = 512))]\r\n    pub r#type: String,";
    let expected = RESOURCE.replace("    pub r#type: String,", attribute);
    assert_eq!(read("src/lamp/resource.rs"), expected);

    add("blue", "rust", &["--field", "lightNote"]).expect("a rule");
    let changed = read("src/lamp/rules.rs");
    let condition = "if let Some(text) = &context.object.spec.shared.light_note\n";
    assert!(changed.contains(condition), "{changed}");
    let violation = read("tests/cases/lamp-violates-blue.yaml");
    assert!(
        violation.contains("\n    lightNote: example blue\n"),
        "{violation}"
    );
}

/// A kind may contain the text of the new rule in its smallest object.
#[test]
fn a_case_that_violates_the_new_rule_is_not_taken() {
    let folder = tempfile::tempdir().expect("a folder");
    repository(folder.path());
    let cases = folder.path().join("tests/cases");
    for entry in fs::read_dir(&cases).expect("a folder") {
        fs::remove_file(entry.expect("an entry").path()).expect("a file");
    }
    let case = |text: &str| format!("object:\n  kind: Lamp\n  spec:\n    text: {text}\n");
    fs::write(cases.join("lamp-a.yaml"), case("web")).expect("a file");
    let error = add_rule(folder.path(), &["web"]).expect_err("no other text");
    let expected = "a valid object whose `spec.text` satisfies the new rule";
    assert!(error.contains(expected), "{error}");
    fs::write(cases.join("lamp-b.yaml"), case("another")).expect("a file");
    add_rule(folder.path(), &["web"]).expect("a rule");
    let read = |name: &str| fs::read_to_string(cases.join(name)).expect("a file");
    assert!(read("lamp-satisfies-web.yaml").contains("text: another\n"));
    assert!(read("lamp-violates-web.yaml").contains("text: another web\n"));
}

#[test]
fn the_reason_is_that_of_the_field_and_the_layer() {
    let folder = tempfile::tempdir().expect("a folder");
    repository(folder.path());
    let resource = folder.path().join("src/lamp/resource.rs");
    let error_with = |fields: &str, layer: &str| {
        let text = format!("#[derive(JsonSchema)]\npub struct LampSpec {{ {fields} }}\n");
        fs::write(&resource, text).expect("a file");
        add_rule(folder.path(), &["gold", "--layer", layer]).expect_err(fields)
    };
    for (fields, layer, expected) in [
        (
            "#[schemars(email)] pub a: String",
            "rust",
            "`a` has the attribute `email`",
        ),
        (
            "#[schemars(length(max = 9), regex(pattern = \"^[^<>]*$\"))] pub a: String",
            "schema",
            "`a` has a length and a pattern already",
        ),
        (
            "pub a: String",
            "cel",
            "the struct of `a` does not derive `KubeSchema`",
        ),
        ("a: String", "rust", "`a` is private"),
        ("pub a: u8", "rust", "a field of the type `String`; choose"),
    ] {
        let error = error_with(fields, layer);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn the_expected_files_of_a_kind_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    repository(folder.path());
    for file in ["rules.rs", "resource.rs"] {
        fs::remove_file(folder.path().join("src/lamp").join(file)).expect("a file");
        let error = add_rule(folder.path(), &["gold", "--layer", "rust"]).expect_err(file);
        for part in [
            &format!("src/lamp/{file} does not exist"),
            "the kind `Lamp`",
        ] {
            assert!(error.contains(part), "{error}");
        }
    }
}

#[test]
fn the_edition_of_the_package_decides_on_the_form_of_the_conditions() {
    let folder = tempfile::tempdir().expect("a folder");
    repository(folder.path());
    let path = |path: &str| folder.path().join(path);
    let manifest = fs::read_to_string(path("Cargo.toml")).expect("a file");
    fs::write(path("Cargo.toml"), manifest.replace("2024", "2021")).expect("a file");
    let resource = "pub struct LampSpec { pub text: Option<String> }\n";
    fs::write(path("src/lamp/resource.rs"), resource).expect("a file");
    add_rule(folder.path(), &["gold", "--layer", "rust"]).expect("a rule");
    let rules = fs::read_to_string(path("src/lamp/rules.rs")).expect("a file");
    let nested = "    if let Some(text) = &context.object.spec.text {
        if text.contains(\"gold\") {
";
    assert!(rules.contains(nested), "{rules}");
}
