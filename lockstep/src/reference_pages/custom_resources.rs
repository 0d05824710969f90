//! Markdown page of the custom resources: each field of the schema with its type, default and validation.

use std::fmt::Write as _;

use serde_json::Value;

const INTRODUCTION: &str = "# Custom resources

Generated from the schemas of the CRDs. A field that is not required may be missing. The rules that no schema can
express are in the [rule reference](rules.md).
";

/// Beginning of the references to types of the Kubernetes API, whose own documentation describes their fields.
const KUBERNETES_API: &str = "https://kubernetes.io/docs/reference/kubernetes-api/";

/// Sources of the fields of a kind, by path.
type References = [(String, &'static str)];

/// Returns the page of all kinds, each with the sources of its fields.
pub(super) fn page(kinds: &[(Value, Vec<(String, &'static str)>)]) -> String {
    let mut page = INTRODUCTION.to_owned();
    for (crd, references) in kinds {
        write_kind(&mut page, &crd["spec"], references);
    }
    page
}

/// Returns the documentation of a field that has a type of the Kubernetes API.
fn kubernetes_page(references: &References, path: &str) -> Option<&'static str> {
    let found = references.iter().find(|(field, _)| *field == path);
    let page = found.map(|(_, page)| *page);
    page.filter(|page| page.starts_with(KUBERNETES_API))
}

fn write_kind(page: &mut String, spec: &Value, references: &References) {
    let kind = text(&spec["names"]["kind"]);
    let group = text(&spec["group"]);
    let versions = spec["versions"].as_array().map_or(&[][..], Vec::as_slice);
    for version in versions.iter().filter(|version| version["served"] == true) {
        let name = text(&version["name"]);
        let schema = &version["schema"]["openAPIV3Schema"];
        let scope = text(&spec["scope"]).to_lowercase();
        let _ = write!(
            page,
            "\n## {kind} ({group}/{name})\n\nScope: {scope}. {}\n",
            cell(&schema["description"])
        );
        for part in ["spec", "status"] {
            let part_schema = &schema["properties"][part];
            if part_schema.is_null() {
                continue;
            }
            let _ = write!(
                page,
                "\n### `{part}` of {kind}\n\n{}\n\n\
                 | field | type | default | description | validation |\n|---|---|---|---|---|\n",
                cell(&part_schema["description"])
            );
            write_fields(page, part, part_schema, references);
        }
    }
}

/// Writes the fields of an object, each followed by the fields within it.
fn write_fields(page: &mut String, path: &str, schema: &Value, references: &References) {
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let is_required = required.iter().any(|required| required == name);
        let default = &field["default"];
        let default = if default.is_null() {
            String::new()
        } else {
            code(&default.to_string())
        };
        let kubernetes = kubernetes_page(references, &path);
        let more = kubernetes.map_or_else(String::new, |page| {
            format!(" Its fields are those of [Kubernetes]({page}).")
        });
        let _ = writeln!(
            page,
            "| `{path}` | {} | {default} | {}{more} | {} |",
            type_of(field),
            cell(&field["description"]),
            validation(field, is_required)
        );
        if kubernetes.is_none() {
            write_within(page, &path, field, references);
        }
    }
}

fn write_within(page: &mut String, path: &str, schema: &Value, references: &References) {
    write_fields(page, path, schema, references);
    for (member, suffix) in [("items", "[]"), ("additionalProperties", ".*")] {
        let inner = &schema[member];
        if inner.is_object() {
            write_within(page, &format!("{path}{suffix}"), inner, references);
        }
    }
}

fn type_of(schema: &Value) -> String {
    if schema["x-kubernetes-int-or-string"] == true {
        return "integer or string".to_owned();
    }
    match text(&schema["type"]) {
        "" => "any".to_owned(),
        "array" => format!("list of {}", type_of(&schema["items"])),
        "object" if schema["additionalProperties"].is_object() => {
            format!("map of {}", type_of(&schema["additionalProperties"]))
        }
        plain => plain.to_owned(),
    }
}

/// Describes everything that the API server checks of one field.
fn validation(schema: &Value, is_required: bool) -> String {
    let mut all = Vec::new();
    if is_required {
        all.push("required".to_owned());
    }
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<_> = values
            .iter()
            .map(|value| code(&value.to_string()))
            .collect();
        all.push(format!("one of {}", values.join(", ")));
    }
    // In words that hold for the field, in the order in which they are usually read.
    for (keyword, word) in [
        ("format", "format"),
        ("pattern", "pattern"),
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("multipleOf", "multiple of"),
        ("minLength", "minimum length"),
        ("maxLength", "maximum length"),
        ("minItems", "minimum items"),
        ("maxItems", "maximum items"),
        ("minProperties", "minimum entries"),
        ("maxProperties", "maximum entries"),
        ("x-kubernetes-list-type", "list type"),
    ] {
        let value = &schema[keyword];
        if !value.is_null() {
            let shown = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            // Bounds are floats in the schema, also those of integers.
            let shown = shown.strip_suffix(".0").unwrap_or(&shown);
            all.push(format!("{word} {}", code(shown)));
        }
    }
    for rule in schema["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let message = &rule["message"];
        all.push(if message.is_null() {
            code(text(&rule["rule"]))
        } else {
            cell(message)
        });
    }
    all.join("; ")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns a text on one line. An unescaped `|` would end the table cell, and `<` would begin an HTML element.
fn cell(value: &Value) -> String {
    let words: Vec<_> = text(value).split_whitespace().collect();
    words.join(" ").replace('|', "\\|").replace('<', "&lt;")
}

fn code(text: &str) -> String {
    format!("`{}`", text.replace('|', "\\|"))
}
