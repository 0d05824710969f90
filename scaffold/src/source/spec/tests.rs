use super::*;

fn field(text: &str, path: &[&str]) -> Result<TextField, String> {
    text_field(&Source::parse(text).expect("Rust"), "ASpec", path)
}

fn json_path(text: &str, path: &[&str]) -> Result<String, String> {
    field(text, path).map(|field| field.json_path.join("."))
}

#[test]
fn the_text_fields_of_a_struct_are_found_with_their_schema() {
    let text = "\u{feff}/// Ä.\r\n#[derive(kube::KubeSchema)]\r\n#[serde(rename_all = \"camelCase\")]\r\npub struct ASpec {\r\n    \
                #[schemars(length(min = 1))]\r\n    pub first_name: String,\r\n    pub count: u32,\r\n    \
                #[serde(rename = \"x\")]\r\n    second: ::std::option::Option<std::string::String>,\r\n    \
                #[serde(skip)]\r\n    pub third: String,\r\n    pub list: Vec<String>,\r\n}\r\n";
    let source = Source::parse(text).expect("Rust");
    let fields = text_fields(&source, "ASpec").expect("a struct");
    let names: Vec<_> = fields
        .iter()
        .map(|field| field.json_path.join("."))
        .collect();
    assert_eq!(names, ["firstName", "x"]);
    let steps: Vec<_> = fields.iter().flat_map(|field| &field.rust_path).collect();
    assert_eq!(
        (steps[0].name.as_str(), steps[0].is_optional),
        ("first_name", false)
    );
    assert_eq!(
        (steps[1].name.as_str(), steps[1].is_optional),
        ("second", true)
    );
    assert_eq!(fields[0].free_keyword, Some(Keyword::Pattern));
    assert!(fields[0].allows_cel);
    assert!(text[fields[0].position..].starts_with("pub first_name"));
    assert!(text[fields[1].position..].starts_with("second"));
    assert_eq!(
        text_fields(&source, "Other"),
        Err("the struct `Other`".to_owned())
    );
    let kept = "pub struct ASpec { #[serde(default)] pub text: String }";
    assert!(kept[field(kept, &["text"]).expect("a field").position..].starts_with("pub text"));
    assert!(!field(kept, &["text"]).expect("a field").allows_cel);
}

#[test]
fn a_field_has_the_name_that_serde_gives_it() {
    for (case, expected) in [
        ("lowercase", "first_name"),
        ("UPPERCASE", "FIRST_NAME"),
        ("PascalCase", "FirstName"),
        ("camelCase", "firstName"),
        ("snake_case", "first_name"),
        ("SCREAMING_SNAKE_CASE", "FIRST_NAME"),
        ("kebab-case", "first-name"),
        ("SCREAMING-KEBAB-CASE", "FIRST-NAME"),
    ] {
        let text =
            format!("#[serde(rename_all = \"{case}\")]\nstruct ASpec {{ first_name: String }}");
        assert_eq!(json_path(&text, &["first_name"]).as_deref(), Ok(expected));
        // The name in JSON finds it, too.
        assert_eq!(json_path(&text, &[expected]).as_deref(), Ok(expected));
    }
    let renamed = "#[serde(rename_all = \"camelCase\")]\nstruct ASpec { #[serde(default, rename = \"a-b\")] first_name: String }";
    assert_eq!(json_path(renamed, &["first_name"]).as_deref(), Ok("a-b"));
    let raw = "#[serde(rename_all = \"PascalCase\")]\nstruct ASpec { r#type: String }";
    assert_eq!(json_path(raw, &["type"]).as_deref(), Ok("Type"));
    let steps = field(raw, &["type"]).expect("a field").rust_path;
    assert_eq!(steps[0].name, "r#type");
}

#[test]
fn a_field_with_several_names_is_an_error() {
    for attributes in [
        "#[serde(rename(serialize = \"a\", deserialize = \"b\"))]",
        "#[serde(rename(deserialize = \"b\"))]",
        "#[schemars(rename = \"b\")]",
    ] {
        let text = format!("struct ASpec {{ {attributes} text: String }}");
        let error = json_path(&text, &["text"]).expect_err(attributes);
        assert!(error.starts_with("one name of the field `text`"), "{error}");
        let source = Source::parse(&text).expect("Rust");
        assert_eq!(text_fields(&source, "ASpec"), Ok(Vec::new()));
    }
    let unknown = "#[serde(rename_all = \"Camel\")]\nstruct ASpec { text: String }";
    let error = json_path(unknown, &["text"]).expect_err("an unknown case");
    assert!(
        error.contains("`ASpec` that serde accepts: unknown rename rule"),
        "{error}"
    );
}

#[test]
fn a_path_leads_through_structs() {
    let text = "#[serde(rename_all = \"camelCase\")]\nstruct ASpec {\n    inner_part: Option<Box<Inner>>,\n    list: Vec<Inner>,\n    text: String,\n    \
                other: super::Other,\n    #[serde(flatten)]\n    shared: Shared,\n    #[serde(flatten)]\n    rest: BTreeMap<String, Value>,\n}\n\
                #[derive(KubeSchema)]\nstruct Inner { #[serde(rename = \"b\")] a: String, size: u8, #[serde(flatten)] shared: Shared }\n\
                #[serde(rename_all = \"UPPERCASE\")]\nstruct Shared { note: Option<String> }\n";
    let inner = field(text, &["inner_part", "a"]).expect("a field");
    assert_eq!(inner.json_path, ["innerPart", "b"]);
    let steps: Vec<_> = inner
        .rust_path
        .iter()
        .map(|step| (step.name.as_str(), step.is_optional))
        .collect();
    assert_eq!(steps, [("inner_part", true), ("a", false)]);
    assert!(inner.allows_cel);
    assert!(text[inner.position..].starts_with("a: String"));

    let shared = field(text, &["note"]).expect("a flattened field");
    assert_eq!(shared.json_path, ["NOTE"]);
    let steps: Vec<_> = shared
        .rust_path
        .iter()
        .map(|step| step.name.as_str())
        .collect();
    assert_eq!(steps, ["shared", "note"]);
    assert_eq!(
        json_path(text, &["innerPart", "NOTE"]).as_deref(),
        Ok("innerPart.NOTE")
    );
    let source = Source::parse(text).expect("Rust");
    let all = text_fields(&source, "ASpec").expect("a struct");
    let all: Vec<_> = all.iter().map(|field| field.json_path.join(".")).collect();
    assert_eq!(all, ["text", "NOTE"]);

    for (path, expected) in [
        (
            &["inner_part", "c"][..],
            "the field `c` in the struct `Inner`",
        ),
        (
            &["inner_part"],
            "a field of the type `String` or `Option<String>`: `inner_part` has another type",
        ),
        (
            &["inner_part", "size"],
            "a field of the type `String` or `Option<String>`: `size` has another type",
        ),
        (
            &["list", "a"],
            "a struct in this file as the type of the field `list`",
        ),
        (
            &["text", "a"],
            "a struct in this file as the type of the field `text`",
        ),
        (
            &["other", "a"],
            "a struct in this file as the type of the field `other`",
        ),
        (&["shared"], "the field `shared` in the struct `ASpec`"),
    ] {
        let error = json_path(text, path).expect_err(expected);
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn a_struct_that_flattens_itself_ends() {
    let text = "struct ASpec { text: String, #[serde(flatten)] next: Option<Box<ASpec>> }";
    assert_eq!(json_path(text, &["text"]).as_deref(), Ok("text"));
}

#[test]
fn code_for_a_private_field_or_a_nested_option_would_not_compile() {
    let text = "struct ASpec {\n    a: String,\n    pub b: String,\n    pub(super) c: String,\n    pub(self) d: String,\n    \
                pub e: Option<Option<String>>,\n    pub f: Box<Option<String>>,\n    pub g: Option<Box<String>>,\n}";
    for (name, is_visible) in [("a", false), ("b", true), ("c", true), ("d", false)] {
        let steps = field(text, &[name]).expect(name).rust_path;
        assert_eq!(steps[0].is_visible, is_visible, "{name}");
    }
    for name in ["e", "f"] {
        let error = json_path(text, &[name]).expect_err(name);
        assert!(error.ends_with("has another type"), "{error}");
    }
    let steps = field(text, &["g"]).expect("a field").rust_path;
    assert!(steps[0].is_optional);
}

#[test]
fn a_struct_with_another_form_in_json_is_an_error() {
    for attribute in [
        "transparent",
        "from = \"B\"",
        "try_from = \"B\"",
        "into = \"B\"",
    ] {
        let text = format!("#[serde({attribute})]\nstruct ASpec {{ text: String }}");
        let error = json_path(&text, &["text"]).expect_err(attribute);
        let name = attribute.split(' ').next().expect("a name");
        assert!(
            error.contains(&format!("`ASpec` has the attribute `serde({name})`")),
            "{error}"
        );
    }
}

#[test]
fn code_of_some_builds_is_skipped() {
    let text = "#[cfg(unix)]\nstruct ASpec { a: String }\n#[cfg_attr(unix, derive(Debug))]\nstruct ASpec { #[cfg(unix)] b: String, c: String }";
    let source = Source::parse(text).expect("Rust");
    let fields = text_fields(&source, "ASpec").expect("a struct");
    let fields: Vec<_> = fields
        .iter()
        .map(|field| field.json_path.join("."))
        .collect();
    assert_eq!(fields, ["c"]);
    let error = json_path(text, &["b"]).expect_err("a condition");
    assert_eq!(
        error,
        "the field `b` in the struct `ASpec` without the attribute `cfg`"
    );
    let error = json_path("#[cfg(unix)]\nstruct ASpec { a: String }", &["a"]);
    let expected = "the struct `ASpec` without the attribute `cfg`";
    assert_eq!(error, Err(expected.to_owned()));
}
