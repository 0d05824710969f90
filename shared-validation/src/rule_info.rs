//! List of all rules of a kind, from all layers.

use crd_validation::CrdRule;

use crate::rule::{Layer, Rule, Severity};

/// Description of one rule.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RuleInfo {
    /// Stable id, used in errors, metrics and policies.
    pub id: String,
    /// Layer in which the rule is written.
    pub layer: Layer,
    /// Severity of a violation, unless a policy sets another action.
    pub severity: Severity,
    /// Description of the rule: one sentence.
    pub description: String,
    /// Source of the rule, usually a URL.
    pub reference: String,
    /// Fields to which the rule applies, such as `spec.sinks[].inputs`.
    pub fields: Vec<String>,
    /// CEL expression; `None` for other layers.
    pub expression: Option<String>,
}

/// Sources of the rules of a CRD, by rule id or by prefix of the field path. The longest match takes
/// precedence.
pub(crate) type Sources = [(String, &'static str)];

impl RuleInfo {
    /// Creates the description of a rule of a CRD.
    pub(crate) fn of_crd(rule: CrdRule, sources: &Sources) -> Self {
        Self {
            reference: source(sources, &rule.id, &rule.at),
            id: rule.id,
            layer: rule.layer.into(),
            severity: Severity::Error,
            description: rule.description,
            fields: vec![rule.field],
            expression: rule.expression,
        }
    }

    /// Creates the description of a rule in Rust.
    pub(crate) fn of_rust<K>(rule: &Rule<K>) -> Self {
        let fields = rule.fields.iter();
        Self {
            id: rule.id.to_owned(),
            layer: Layer::Rust,
            severity: rule.severity,
            description: rule.description.to_owned(),
            reference: rule.reference.to_owned(),
            fields: fields.map(|field| (*field).to_owned()).collect(),
            expression: None,
        }
    }
}

fn source(sources: &Sources, id: &str, field: &str) -> String {
    let fits = |name: &String| {
        let rest = field.strip_prefix(name.as_str());
        name == id || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let found = sources.iter().filter(|(name, _)| fits(name));
    let best = found.max_by_key(|(name, _)| (name == id, name.len()));
    best.map_or_else(
        || "the CRD's schema".to_owned(),
        |(_, source)| (*source).to_owned(),
    )
}
