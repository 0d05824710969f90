//! Layer 2: the `x-kubernetes-validations` of the CRD, evaluated as the API server evaluates them.

mod convert;
mod library;
mod rule;

use std::sync::Arc;

use ::cel::{Context, Env};
use serde_json::Value;

use crate::field_path::Cursor;
use crate::rule::Layer;
use crate::ruleset::{Case, LayerJudge, Report};
use crate::schema::Schema;
use crate::transition::Pair;
use crate::verdict::Violation;

pub(crate) use rule::CelRule;

/// Judges by the CEL rules that the schema carries.
pub(crate) struct Cel {
    environment: Arc<Env>,
}

impl Cel {
    pub(crate) fn new() -> Self {
        Self {
            environment: library::environment(),
        }
    }

    fn node(&self, schema: &Schema, pair: Pair<'_>, at: Cursor<'_>, report: &mut Report) {
        // A rule judges values that are there; whether a nullable one is null is its parent's matter.
        if pair.new.is_null() {
            return;
        }
        if !schema.rules.is_empty() {
            self.rules(schema, pair, at, report);
        }
        match pair.new {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let Some(child) = schema.field(name) else {
                        continue;
                    };
                    if matches!((at, name.as_str()), (Cursor::Root, "metadata" | "status")) {
                        continue;
                    }
                    let below = if schema.properties.contains_key(name) {
                        at.child(name)
                    } else {
                        at.key(name)
                    };
                    self.node(child, pair.field(name, value), below, report);
                }
            }
            Value::Array(items) => {
                let Some(child) = &schema.items else { return };
                for (index, item) in items.iter().enumerate() {
                    self.node(child, pair.item(schema, item), at.index(index), report);
                }
            }
            _ => {}
        }
    }

    fn rules(&self, schema: &Schema, pair: Pair<'_>, at: Cursor<'_>, report: &mut Report) {
        let before = pair.before.filter(|before| !before.is_null());
        let mut context = Context::with_env(Arc::clone(&self.environment));
        context.add_variable_from_value("self", convert::value(schema, pair.new));
        if let Some(before) = before {
            context.add_variable_from_value("oldSelf", convert::value(schema, before));
        }
        for rule in &schema.rules {
            // A transition rule says nothing about a value that was not there before.
            if rule.uses_old_self && before.is_none() {
                continue;
            }
            if let Some(error) = rule.judge(&context, pair.new, at) {
                let violation = Violation {
                    rule: rule.id.clone(),
                    layer: Layer::Cel,
                    error,
                };
                report.add(violation, !rule.uses_old_self && pair.is_unchanged());
            }
        }
    }
}

impl LayerJudge for Cel {
    fn judge(&self, case: &Case<'_>, report: &mut Report) {
        let pair = Pair::new(case.object, case.old, case.before);
        self.node(case.schema, pair, Cursor::Root, report);
    }
}
