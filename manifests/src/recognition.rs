//! Recognition of files that the program has written, so that it replaces no others.

use std::path::Path;

use serde_json::{Value, json};

use crate::manifest::Manifest;
use crate::marker::marker;
use crate::values_table;

impl Manifest {
    /// Returns true if the program, in this version or in an earlier one, has written an existing file of this name.
    ///
    /// A `Chart.yaml` belongs to the author of the chart. It counts as written by the program if it is that of the chart with
    /// the program's name.
    #[must_use]
    pub fn recognizes(&self, program: &str, existing: &str) -> bool {
        let path = Path::new(&self.name);
        let is_named = |name: &str| path.file_name() == Some(name.as_ref());
        let starts_with =
            |comment: &str| existing.starts_with(&format!("{comment} {}", marker(program)));
        if is_named("Chart.yaml") {
            return is_chart(program, existing);
        }
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("yaml") => starts_with("#"),
            Some("tpl") => starts_with("{{/*"),
            Some("md") => starts_with("<!--") || self.has_same_title_and_table(existing),
            Some("json") => self.is_same_schema(program, existing),
            _ => false,
        }
    }

    /// Returns the words for what is expected in a file of this name.
    #[must_use]
    pub fn expected(&self, program: &str) -> String {
        let path = Path::new(&self.name);
        if path.file_name() == Some("Chart.yaml".as_ref()) {
            return format!("the name `{program}`");
        }
        let marker = marker(program);
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("json") => format!("the `$comment` \"{marker}\""),
            _ => format!("a first line with \"{marker}\""),
        }
    }

    /// Returns true for the README of a chart. Early versions have written it without a marker.
    fn has_same_title_and_table(&self, existing: &str) -> bool {
        let is_same_title = title(existing).is_some() && title(existing) == title(&self.content);
        is_same_title && existing.contains(values_table::HEADER)
    }

    /// Returns true for a JSON Schema of the same kind. Early versions have written it without a marker.
    fn is_same_schema(&self, program: &str, existing: &str) -> bool {
        let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
        let (own, existing) = (parsed(&self.content), parsed(existing));
        let comment = existing["$comment"].as_str();
        let has_marker = comment.is_some_and(|comment| comment.starts_with(&marker(program)));
        let is_same = |pointer: &str| {
            let value = own.pointer(pointer);
            value.is_some() && value == existing.pointer(pointer)
        };
        has_marker
            || [
                "/$schema",
                "/title",
                "/required",
                "/properties/apiVersion",
                "/properties/kind",
                "/properties/metadata",
            ]
            .into_iter()
            .all(is_same)
    }
}

/// Returns true for the `Chart.yaml` of a program.
fn is_chart(program: &str, existing: &str) -> bool {
    let chart: Option<Value> = serde_saphyr::from_str(existing).ok();
    chart.is_some_and(|chart| chart["name"] == json!(program))
}

/// Returns the first heading of a Markdown page.
fn title(page: &str) -> Option<&str> {
    page.lines().find(|line| line.starts_with("# "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, content: &str) -> Manifest {
        Manifest {
            name: name.to_owned(),
            content: content.to_owned(),
        }
    }

    #[test]
    fn yaml_and_templates_are_recognized_by_their_first_line() {
        let rbac = file("rbac.yaml", "");
        for own in [
            "# Written by `greeter manifests`; do not edit.\nkind: Role\n",
            "# Written by `greeter manifests` 2.0.0; do not edit.\r\n",
        ] {
            assert!(rbac.recognizes("greeter", own), "{own}");
        }
        for foreign in [
            "",
            "kind: Role\n",
            "# Written by `farewell manifests`; do not edit.\n",
            "kind: Role\n# Written by `greeter manifests`; do not edit.\n",
        ] {
            assert!(!rbac.recognizes("greeter", foreign), "{foreign}");
        }
        let template = file("templates/_crds.tpl", "");
        let own = "{{/* Written by `greeter manifests`, from the chart lockstep; do not edit. */}}";
        assert!(template.recognizes("greeter", own));
        assert!(!template.recognizes("greeter", "{{- define \"mine\" -}}"));
        assert!(!file("templates/NOTES.txt", "").recognizes("greeter", "mine"));
    }

    #[test]
    fn a_schema_is_recognized_by_its_comment_or_its_kind() {
        let schema = |comment: Option<&str>, kind: &str| {
            let mut schema = json!({
                "$schema": "http://json-schema.org/draft-07/schema#",
                "title": kind, "required": ["apiVersion", "kind", "metadata", "spec"],
                "properties": {
                    "apiVersion": {"const": "greeter.example.com/v1"}, "kind": {"const": kind},
                    "metadata": {"type": "object"},
                },
            });
            if let Some(comment) = comment {
                schema["$comment"] = comment.into();
            }
            schema.to_string()
        };
        let comment = "Written by `greeter manifests`; do not edit.";
        let own = file("schemas/lamp_v1.json", &schema(Some(comment), "Lamp"));
        assert!(own.recognizes("greeter", &schema(None, "Lamp")));
        assert!(own.recognizes("greeter", &schema(Some(comment), "Bulb")));
        assert!(!own.recognizes("greeter", &schema(None, "Bulb")));
        for foreign in ["", "{", "{}", r#"{"title": "Lamp"}"#] {
            assert!(!own.recognizes("greeter", foreign), "{foreign}");
        }
    }

    #[test]
    fn a_chart_is_recognized_by_its_name_and_its_table_of_values() {
        let chart = file("greeter/Chart.yaml", "");
        assert!(chart.recognizes("greeter", "apiVersion: v2\nname: greeter\n"));
        assert!(!chart.recognizes("greeter", "apiVersion: v2\nname: other\n"));
        assert!(!chart.recognizes("greeter", "name: ["));
        let page = format!("# greeter\n\nInstalls it.\n\n{}", values_table::HEADER);
        let readme = file("greeter/README.md", &page);
        assert!(readme.recognizes("greeter", &format!("# greeter\n\n{}", values_table::HEADER)));
        let marked = "<!-- Written by `greeter manifests`; do not edit. -->\n# Another title\n";
        assert!(readme.recognizes("greeter", marked));
        assert!(!readme.recognizes("greeter", "# greeter\n\nMy notes.\n"));
        assert!(!readme.recognizes("greeter", &format!("# mine\n\n{}", values_table::HEADER)));
    }
}
