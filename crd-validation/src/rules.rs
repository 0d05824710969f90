//! List of the rules that a CRD contains.

use serde_json::Value;

use crate::cel::CelValidator;
use crate::format::go_fmt;
use crate::schema::scale::Scale;
use crate::schema::{Additional, ListType, NumberFormat, Schema};
use crate::violation::Layer;

/// Rule of a CRD: one keyword of its schema, or one CEL rule.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CrdRule {
    /// Stable id, which the violations of the rule contain.
    pub id: String,
    /// Layer in which the rule is written.
    pub layer: Layer,
    /// Description of the rule: one sentence.
    pub description: String,
    /// Path of the schema node that contains the rule, such as `spec.sinks[].inputs`.
    pub at: String,
    /// Path of the field to which the rule applies. It differs from `at` if a CEL rule has a `fieldPath`.
    pub field: String,
    /// CEL expression; `None` for the schema.
    pub expression: Option<String>,
}

/// Returns the rules of one version of a CRD.
pub(crate) fn of_version(
    schema: &Schema,
    cel: Option<&CelValidator>,
    scale: Option<&Scale>,
) -> Vec<CrdRule> {
    let mut collector = Collector {
        entries: Vec::new(),
    };
    for (name, child) in schema.properties.iter() {
        // Users do not write `status`, and the API server itself validates the other three fields.
        if !matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "status") {
            let rules = cel.and_then(|cel| cel.properties.get(name));
            collector.node(child, rules, name);
        }
    }
    for name in &schema.required {
        collector.schema_rule(name, "required", format!("`{name}` is required."));
    }
    for (field, demand) in scale.iter().flat_map(|scale| scale.demands()) {
        collector.schema_rule(field, "scale", format!("`{field}` must be {demand}."));
    }
    collector
        .entries
        .sort_by(|a, b| (a.layer, &a.id).cmp(&(b.layer, &b.id)));
    collector.entries
}

struct Collector {
    entries: Vec<CrdRule>,
}

impl Collector {
    fn schema_rule(&mut self, field: &str, keyword: &str, sentence: String) {
        let id = format!("{field}/{keyword}");
        self.entries.push(CrdRule {
            id,
            layer: Layer::Schema,
            description: sentence,
            at: field.to_owned(),
            field: field.to_owned(),
            expression: None,
        });
    }

    fn node(&mut self, schema: &Schema, cel: Option<&CelValidator>, at: &str) {
        self.value(schema, at);
        for rule in cel.into_iter().flat_map(|cel| &cel.rules) {
            let sentence = rule
                .message
                .strip_suffix(&format!(" [{}]", rule.id))
                .unwrap_or(&rule.message);
            let field = match &rule.field_path {
                Some(below) => format!("{at}.{below}"),
                None => at.to_owned(),
            };
            self.entries.push(CrdRule {
                id: rule.id.clone(),
                layer: Layer::Cel,
                description: format!("`{field}`: {sentence}."),
                at: at.to_owned(),
                field,
                expression: Some(rule.source.clone()),
            });
        }
        for (name, child) in schema.properties.iter() {
            let rules = cel.and_then(|cel| cel.properties.get(name));
            self.node(child, rules, &format!("{at}.{name}"));
        }
        for name in &schema.required {
            let field = format!("{at}.{name}");
            self.schema_rule(&field, "required", format!("`{field}` is required."));
        }
        if let Some(child) = &schema.items {
            let rules = cel.and_then(|cel| cel.items.as_deref());
            self.node(child, rules, &format!("{at}[]"));
        }
        if let Additional::Of(child) = &schema.additional {
            let rules = cel.and_then(|cel| cel.additional.as_deref());
            self.node(child, rules, &format!("{at}[*]"));
        }
    }

    /// Adds the rules for the value of a schema node.
    fn value(&mut self, schema: &Schema, at: &str) {
        self.type_and_options(schema, at);
        self.bounds(schema, at);
        self.counts(schema, at);
        self.text(schema, at);
        self.items(schema, at);
        self.combination(schema, at);
    }

    fn type_and_options(&mut self, schema: &Schema, at: &str) {
        if schema.int_or_string {
            self.schema_rule(
                at,
                "type",
                format!("`{at}` must be an integer or a string."),
            );
        } else if let Some(json_type) = schema.json_type {
            let name = json_type.as_str();
            let article = if name.starts_with(['a', 'i', 'o']) {
                "an"
            } else {
                "a"
            };
            self.schema_rule(at, "type", format!("`{at}` must be {article} {name}."));
        }
        if !schema.options.is_empty() {
            let text = |option: &Value| {
                option
                    .as_str()
                    .map_or_else(|| go_fmt::json(option), String::from)
            };
            let options: Vec<_> = schema
                .options
                .iter()
                .map(|option| format!("`{}`", text(option)))
                .collect();
            self.schema_rule(
                at,
                "enum",
                format!("`{at}` must be one of {}.", options.join(", ")),
            );
        }
    }

    fn bounds(&mut self, schema: &Schema, at: &str) {
        let bounds = [
            (
                "minimum",
                schema.minimum.as_ref(),
                "greater than",
                "at least",
            ),
            ("maximum", schema.maximum.as_ref(), "less than", "at most"),
        ];
        for (keyword, bound, strictly, inclusive) in bounds {
            if let Some(bound) = bound {
                let relation = if bound.exclusive { strictly } else { inclusive };
                let limit = go_fmt::plain_number(&bound.value);
                self.schema_rule(at, keyword, format!("`{at}` must be {relation} {limit}."));
            }
        }
        if let Some(factor) = schema.multiple_of {
            self.schema_rule(
                at,
                "multipleOf",
                format!("`{at}` must be a multiple of {factor}."),
            );
        }
    }

    fn counts(&mut self, schema: &Schema, at: &str) {
        let counts = [
            ("minLength", schema.min_length, "at least", "characters"),
            ("maxLength", schema.max_length, "at most", "characters"),
            ("minItems", schema.min_items, "at least", "items"),
            ("maxItems", schema.max_items, "at most", "items"),
            (
                "minProperties",
                schema.min_properties,
                "at least",
                "entries",
            ),
            ("maxProperties", schema.max_properties, "at most", "entries"),
        ];
        for (keyword, limit, relation, unit) in counts {
            if let Some(limit) = limit {
                self.schema_rule(
                    at,
                    keyword,
                    format!("`{at}` must have {relation} {limit} {unit}."),
                );
            }
        }
    }

    fn text(&mut self, schema: &Schema, at: &str) {
        if let Some(pattern) = &schema.pattern {
            self.schema_rule(
                at,
                "pattern",
                format!("`{at}` must match `{}`.", pattern.source),
            );
        }
        if schema.format.is_some()
            || matches!(
                schema.number_format,
                Some(NumberFormat::Int32 | NumberFormat::Float)
            )
        {
            self.schema_rule(
                at,
                "format",
                format!("`{at}` must have the format `{}`.", schema.format_name),
            );
        }
    }

    fn items(&mut self, schema: &Schema, at: &str) {
        if schema.unique_items {
            self.schema_rule(
                at,
                "uniqueItems",
                format!("`{at}` must not contain duplicate items."),
            );
        }
        match &schema.list_type {
            ListType::Atomic => {}
            ListType::Set => {
                self.schema_rule(
                    &format!("{at}[]"),
                    "x-kubernetes-list-type",
                    format!("`{at}` must not contain duplicate items."),
                );
            }
            ListType::Map(keys) => {
                let keys = keys.join("`, `");
                let sentence = format!("No two items of `{at}` may have the same `{keys}`.");
                self.schema_rule(&format!("{at}[]"), "x-kubernetes-list-type", sentence);
            }
        }
    }

    fn combination(&mut self, schema: &Schema, at: &str) {
        let alternatives = [
            ("allOf", schema.all_of.is_empty(), "all"),
            ("anyOf", schema.any_of.is_empty(), "at least one"),
            ("oneOf", schema.one_of.is_empty(), "exactly one"),
            ("not", schema.not.is_none(), "none"),
        ];
        for (keyword, absent, how_many) in alternatives {
            if !absent {
                self.schema_rule(
                    at,
                    keyword,
                    format!("`{at}` must match {how_many} of its `{keyword}` schemas."),
                );
            }
        }
    }
}
