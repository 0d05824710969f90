//! Every rule of a kind, whatever its layer, as one list.

use serde_json::Value;

use crate::go;
use crate::rule::{Layer, Severity};
use crate::schema::{Additional, ListType, NumberFormat, Schema};
use crate::structural::Scale;

/// One rule, explained.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleInfo {
    /// Stable; what errors, metrics and policies name.
    pub id: String,
    /// The layer that it is written in.
    pub layer: Layer,
    /// What a violation does, unless a policy says otherwise.
    pub severity: Severity,
    /// What it demands, in one sentence.
    pub description: String,
    /// Where it comes from.
    pub reference: String,
    /// The fields that it is about, as `spec.sinks[].inputs`.
    pub fields: Vec<String>,
    /// What is written, for a rule in CEL.
    pub expression: Option<String>,
}

/// Where the rules of a CRD come from, by the id of a rule or the beginning of a field's path. The
/// longest that fits counts.
pub(crate) type Sources = &'static [(&'static str, &'static str)];

/// The rules that stand in one version of a CRD.
pub(crate) fn of_version(
    schema: &Schema,
    scale: Option<&Scale>,
    sources: Sources,
) -> Vec<RuleInfo> {
    let mut collector = Collector {
        sources,
        entries: Vec::new(),
    };
    for (name, child) in &schema.properties {
        // Neither is the author's to break.
        if !matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "status") {
            collector.node(child, name);
        }
    }
    for name in &schema.required {
        collector.schema_rule(name, "required", format!("`{name}` is there."));
    }
    for (field, demand) in scale.iter().flat_map(|scale| scale.demands()) {
        collector.schema_rule(field, "scale", format!("`{field}` is {demand}."));
    }
    collector
        .entries
        .sort_by(|a, b| (a.layer, &a.id).cmp(&(b.layer, &b.id)));
    collector.entries
}

struct Collector {
    sources: Sources,
    entries: Vec<RuleInfo>,
}

impl Collector {
    fn source(&self, id: &str, field: &str) -> String {
        let fits = |name: &str| {
            let rest = field.strip_prefix(name);
            name == id || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let found = self.sources.iter().filter(|(name, _)| fits(name));
        let best = found.max_by_key(|(name, _)| (*name == id, name.len()));
        best.map_or_else(
            || "the CRD's schema".to_owned(),
            |(_, source)| (*source).to_owned(),
        )
    }

    fn schema_rule(&mut self, field: &str, keyword: &str, sentence: String) {
        let id = format!("{field}/{keyword}");
        self.entries.push(RuleInfo {
            reference: self.source(&id, field),
            id,
            layer: Layer::Schema,
            severity: Severity::Error,
            description: sentence,
            fields: vec![field.to_owned()],
            expression: None,
        });
    }

    fn node(&mut self, schema: &Schema, at: &str) {
        self.value(schema, at);
        for rule in &schema.rules {
            let sentence = rule
                .message
                .strip_suffix(&format!(" [{}]", rule.id))
                .unwrap_or(&rule.message);
            let field = match &rule.field_path {
                Some(below) => format!("{at}.{below}"),
                None => at.to_owned(),
            };
            self.entries.push(RuleInfo {
                reference: self.source(&rule.id, at),
                id: rule.id.clone(),
                layer: Layer::Cel,
                severity: Severity::Error,
                description: format!("`{field}` {sentence}."),
                fields: vec![field],
                expression: Some(rule.source.clone()),
            });
        }
        for (name, child) in &schema.properties {
            self.node(child, &format!("{at}.{name}"));
        }
        for name in &schema.required {
            let field = format!("{at}.{name}");
            self.schema_rule(&field, "required", format!("`{field}` is there."));
        }
        if let Some(child) = &schema.items {
            self.node(child, &format!("{at}[]"));
        }
        if let Additional::Of(child) = &schema.additional {
            self.node(child, &format!("{at}[*]"));
        }
    }

    /// What a node demands of its value.
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
            self.schema_rule(at, "type", format!("`{at}` is an integer or a string."));
        } else if let Some(json_type) = schema.json_type {
            let name = json_type.as_str();
            let article = if name.starts_with(['a', 'i', 'o']) {
                "an"
            } else {
                "a"
            };
            self.schema_rule(at, "type", format!("`{at}` is {article} {name}."));
        }
        if !schema.options.is_empty() {
            let text = |option: &Value| {
                option
                    .as_str()
                    .map_or_else(|| go::json(option), String::from)
            };
            let options: Vec<_> = schema
                .options
                .iter()
                .map(|option| format!("`{}`", text(option)))
                .collect();
            self.schema_rule(
                at,
                "enum",
                format!("`{at}` is one of {}.", options.join(", ")),
            );
        }
    }

    fn bounds(&mut self, schema: &Schema, at: &str) {
        let bounds = [
            ("minimum", schema.minimum.as_ref(), "above", "at least"),
            ("maximum", schema.maximum.as_ref(), "below", "at most"),
        ];
        for (keyword, bound, strictly, inclusive) in bounds {
            if let Some(bound) = bound {
                let relation = if bound.exclusive { strictly } else { inclusive };
                let limit = go::plain_number(&bound.value);
                self.schema_rule(at, keyword, format!("`{at}` is {relation} {limit}."));
            }
        }
        if let Some(factor) = schema.multiple_of {
            self.schema_rule(
                at,
                "multipleOf",
                format!("`{at}` is a multiple of {factor}."),
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
                    format!("`{at}` has {relation} {limit} {unit}."),
                );
            }
        }
    }

    fn text(&mut self, schema: &Schema, at: &str) {
        if let Some(pattern) = &schema.pattern {
            self.schema_rule(
                at,
                "pattern",
                format!("`{at}` matches `{}`.", pattern.source),
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
                format!("`{at}` has the format `{}`.", schema.format_name),
            );
        }
    }

    fn items(&mut self, schema: &Schema, at: &str) {
        if schema.unique_items {
            self.schema_rule(at, "uniqueItems", format!("`{at}` repeats no item."));
        }
        match &schema.list_type {
            ListType::Atomic => {}
            ListType::Set => {
                self.schema_rule(
                    &format!("{at}[]"),
                    "x-kubernetes-list-type",
                    format!("`{at}` repeats no item."),
                );
            }
            ListType::Map(keys) => {
                let keys = keys.join("`, `");
                let sentence = format!("No two items of `{at}` have the same `{keys}`.");
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
                    format!("`{at}` fits {how_many} of its `{keyword}` schemas."),
                );
            }
        }
    }
}
