//! List of the options of a component type, for people: path, requirement and expected value of each.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::options::Options;

/// Maximum number of options around an option that is listed. None of Vector's is deeper.
const MAX_DEPTH: usize = 12;

/// Option of a component type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionEntry {
    /// Path in the component, such as `encoding.codec`. `[]` stands for an item of a list and `*` for a key of a mapping.
    pub path: String,
    /// Requirement, if the option around it is set.
    pub requirement: Requirement,
    /// Expected value, such as `a boolean`.
    pub expects: String,
}

/// Requirement of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// The option must be set.
    Required,
    /// The option must be set with these values of another one, such as `mode: tcp`.
    RequiredWith(Vec<String>),
    /// The option need not be set.
    Optional,
}

/// Alternative form of a value.
struct Form<'a> {
    /// Value of the tag that selects the form, such as `mode: tcp`.
    condition: Option<String>,
    node: &'a Value,
}

/// Tag of a value with several forms, and its values.
struct Tag<'a> {
    name: &'a str,
    values: Vec<&'a str>,
    is_required: bool,
}

impl Options {
    /// Returns all options, sorted by path.
    #[must_use]
    pub fn list(&self) -> Vec<OptionEntry> {
        let mut found = BTreeMap::new();
        self.list_fields(&[self.node()], "", 0, &mut found);
        found.into_values().collect()
    }

    /// Lists the fields of objects that have one of these nodes.
    fn list_fields(
        &self,
        nodes: &[&Value],
        prefix: &str,
        depth: usize,
        found: &mut BTreeMap<String, OptionEntry>,
    ) {
        let mut forms = Vec::new();
        let mut tags = Vec::new();
        for node in nodes {
            self.forms(node, None, &mut forms, &mut tags);
        }
        let objects: Vec<_> = forms
            .iter()
            .filter(|form| form.node["properties"].is_object())
            .collect();
        let fields = objects
            .iter()
            .filter_map(|form| form.node["properties"].as_object());
        let names: BTreeSet<&String> = fields.flat_map(serde_json::Map::keys).collect();
        for name in names
            .into_iter()
            .filter(|name| depth > 0 || *name != "type")
        {
            let own: Vec<_> = objects
                .iter()
                .filter_map(|form| form.node["properties"].get(name))
                .collect();
            let tag = tags.iter().find(|tag| tag.name == name);
            let is_required = |form: &&&Form<'_>| {
                let mut required = form.node["required"].as_array().into_iter().flatten();
                required.any(|required| *required == **name)
            };
            let required: Vec<_> = objects.iter().filter(is_required).collect();
            let requirement = if tag.is_some_and(|tag| !tag.is_required) || required.is_empty() {
                Requirement::Optional
            } else if required.len() == objects.len() {
                Requirement::Required
            } else {
                let conditions = required.iter().filter_map(|form| form.condition.clone());
                let conditions: BTreeSet<_> = conditions.collect();
                Requirement::RequiredWith(conditions.into_iter().collect())
            };
            let expects = match tag {
                Some(tag) => one_of(tag.values.iter().map(|value| (*value).to_owned())),
                None => self.expected(&own),
            };
            let path = format!("{prefix}{name}");
            let entry = OptionEntry {
                path: path.clone(),
                requirement,
                expects,
            };
            found.insert(path.clone(), entry);
            if depth < MAX_DEPTH {
                self.list_below(&own, &path, depth + 1, found);
            }
        }
    }

    /// Lists the fields below an option: of a mapping, of the items of a list, of the values of a mapping.
    fn list_below(
        &self,
        nodes: &[&Value],
        path: &str,
        depth: usize,
        found: &mut BTreeMap<String, OptionEntry>,
    ) {
        self.list_fields(nodes, &format!("{path}."), depth, found);
        let mut forms = Vec::new();
        for node in nodes {
            self.forms(node, None, &mut forms, &mut Vec::new());
        }
        for (keyword, suffix) in [("items", "[]."), ("additionalProperties", ".*.")] {
            let inner = forms.iter().filter_map(|form| form.node.get(keyword));
            let inner: Vec<_> = inner.filter(|node| node.is_object()).collect();
            if !inner.is_empty() {
                self.list_fields(&inner, &format!("{path}{suffix}"), depth, found);
            }
        }
    }

    /// Collects the alternative forms of a node, with references resolved.
    fn forms<'a>(
        &'a self,
        node: &'a Value,
        condition: Option<&str>,
        forms: &mut Vec<Form<'a>>,
        tags: &mut Vec<Tag<'a>>,
    ) {
        if let Some(node) = self.referenced(node) {
            return self.forms(node, condition, forms, tags);
        }
        if let (Some(tag), Some(variants)) = (node["tag"].as_str(), node["variants"].as_object()) {
            tags.push(Tag {
                name: tag,
                values: variants.keys().map(String::as_str).collect(),
                is_required: node["without"].is_null(),
            });
            for (name, variant) in variants {
                self.forms(variant, Some(&format!("{tag}: {name}")), forms, tags);
            }
            return;
        }
        if let Some(choices) = node["anyOf"].as_array() {
            for choice in choices {
                self.forms(choice, condition, forms, tags);
            }
            return;
        }
        forms.push(Form {
            condition: condition.map(str::to_owned),
            node,
        });
    }

    /// Describes the value that one of the nodes expects.
    fn expected(&self, nodes: &[&Value]) -> String {
        let mut forms = Vec::new();
        for node in nodes {
            self.forms(node, None, &mut forms, &mut Vec::new());
        }
        let mut kinds: Vec<String> = Vec::new();
        for form in forms {
            let kind = self.kind_of(form.node);
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds.join(", or ")
    }

    fn kind_of(&self, node: &Value) -> String {
        if let Some(values) = node["enum"].as_array() {
            let values = values.iter().map(|value| match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            });
            return one_of(values);
        }
        match node["type"].as_str() {
            Some("array") => match node.get("items").map(|items| self.expected(&[items])) {
                Some(items) if !items.is_empty() => format!("a list ({items})"),
                _ => "a list".to_owned(),
            },
            Some("object") => {
                let values = node.get("additionalProperties");
                let values = values.filter(|values| values.is_object());
                match values.map(|values| self.expected(&[values])) {
                    Some(values) if !values.is_empty() => format!("a mapping ({values})"),
                    _ => "a mapping".to_owned(),
                }
            }
            Some("integer") => bounded("an integer", node),
            Some("number") => bounded("a number", node),
            Some("boolean") => "a boolean".to_owned(),
            Some("string") => match node["form"].as_str() {
                Some(form) => format!("a string ({form})"),
                None if node["file"] == true => "a string (file)".to_owned(),
                None => "a string".to_owned(),
            },
            _ => "any value".to_owned(),
        }
    }
}

fn one_of(values: impl Iterator<Item = String>) -> String {
    let values: Vec<_> = values.collect();
    match &values[..] {
        [value] => format!("`{value}`"),
        _ => format!("one of {}", values.join(", ")),
    }
}

/// Adds the lower and upper limit, unless they are those of the Rust type.
fn bounded(noun: &str, node: &Value) -> String {
    let least = node["minimum"].as_i64();
    let most = node["maximum"]
        .as_u64()
        .filter(|most| *most < u64::from(u32::MAX));
    match (least, most) {
        (Some(least), Some(most)) => format!("{noun} from {least} to {most}"),
        (Some(least), None) => format!("{noun} of at least {least}"),
        (None, Some(most)) => format!("{noun} of at most {most}"),
        (None, None) => noun.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::catalogue::Catalogue;
    use crate::component::ComponentKind;

    use super::*;

    fn options(family: ComponentKind, kind: &str) -> BTreeMap<String, OptionEntry> {
        let catalogue = Catalogue::shipped();
        let entry = catalogue.entry(family, kind).expect("a type of Vector");
        let list = catalogue.options(entry).list().into_iter();
        list.map(|option| (option.path.clone(), option)).collect()
    }

    #[test]
    fn options_are_listed_with_requirement_and_expected_value() {
        let loki = options(ComponentKind::Sink, "loki");
        assert_eq!(loki["endpoint"].requirement, Requirement::Required);
        assert_eq!(loki["endpoint"].expects, "a string (URI)");
        assert_eq!(loki["labels"].expects, "a mapping (a string (template))");
        assert_eq!(loki["encoding.codec"].requirement, Requirement::Required);
        assert!(
            loki["encoding.codec"]
                .expects
                .starts_with("one of avro, cef")
        );
        assert_eq!(loki["batch.max_events"].requirement, Requirement::Optional);
        assert_eq!(loki["batch.max_events"].expects, "an integer of at least 0");
        assert_eq!(
            loki["encoding.csv.fields"].expects,
            "a list (a string (path))"
        );
        assert!(!loki.contains_key("type"));
    }

    #[test]
    fn an_option_that_only_one_form_requires_names_the_form() {
        let socket = options(ComponentKind::Source, "socket");
        assert_eq!(socket["mode"].requirement, Requirement::Required);
        assert_eq!(
            socket["mode"].expects,
            "one of tcp, udp, unix, unix_datagram, unix_stream"
        );
        let with = |names: &[&str]| {
            Requirement::RequiredWith(names.iter().map(|name| (*name).to_owned()).collect())
        };
        assert_eq!(
            socket["address"].requirement,
            with(&["mode: tcp", "mode: udp"])
        );
    }

    #[test]
    fn every_option_of_every_type_expects_a_described_value() {
        let catalogue = Catalogue::shipped();
        for family in ComponentKind::ALL {
            for kind in catalogue.kinds(family) {
                for (path, option) in options(family, kind) {
                    assert!(!option.expects.is_empty(), "{kind}: {path}");
                    assert!(path.matches('.').count() < MAX_DEPTH, "{kind}: {path}");
                }
            }
        }
    }
}
