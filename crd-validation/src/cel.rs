//! CEL layer: evaluates the `x-kubernetes-validations` of the CRD as the API server does.

mod activation;
mod apiserver_panic;
mod ast;
mod check;
mod cost;
mod cost_instrumentation;
mod dyn_value;
mod equality;
mod escaping;
mod fast_form;
mod field_path;
mod field_usage;
mod identities;
#[expect(
    clippy::needless_pass_by_value,
    clippy::trivially_copy_pass_by_ref,
    reason = "the cel crate calls functions with values, and methods with references"
)]
mod library;
mod list_map;
mod map_key;
mod opaque;
#[expect(
    clippy::needless_pass_by_value,
    reason = "the cel crate calls functions with values"
)]
mod partial_eval;
mod presence;
mod program;
mod validator;
mod value;

use std::cell::OnceCell;

use serde_json::Value;

use crate::cel::activation::Activation;
use crate::cel::cost::Budget;
use crate::cel::program::Outcome;
use crate::correlation::{Correlation, Counterparts, Ratchet};
use crate::field::path::Cursor;
use crate::layer::{LayerContext, ValidationLayer};
use crate::report::Report;
use crate::schema::Schema;
use crate::violation::{Layer, Violation, fingerprint};

pub(crate) use crate::cel::escaping::{identifier, unescaped};
pub(crate) use crate::cel::program::CelRule;
pub(crate) use crate::cel::validator::CelValidator;

/// Validator for the CEL rules of the schema.
pub(crate) struct Cel;

impl ValidationLayer for Cel {
    fn validate(&self, case: &LayerContext<'_>, report: &mut Report<'_>) {
        let Some(rules) = case.cel else {
            return;
        };
        let root = case
            .old
            .map(|old| Correlation::new(case.schema, case.object, old));
        let mut walk = Walk {
            case,
            report,
            budget: Budget::new(),
            exhausted: false,
        };
        let location = Location {
            schema: case.schema,
            rules,
            value: case.object,
            before: case.before,
            ratchet: Ratchet::new(root),
        };
        walk.node(location, Cursor::Root);
    }
}

struct Walk<'a, 'r, 'k> {
    case: &'a LayerContext<'a>,
    report: &'r mut Report<'k>,
    budget: Budget,
    exhausted: bool,
}

/// Value with its schema and its old value.
#[derive(Clone, Copy)]
struct Location<'a> {
    schema: &'a Schema,
    rules: &'a CelValidator,
    value: &'a Value,
    /// Value of `oldSelf`.
    before: Option<&'a Value>,
    ratchet: Ratchet<'a>,
}

impl<'a> Walk<'a, '_, '_> {
    fn node(&mut self, location: Location<'a>, at: Cursor<'_>) {
        // Rules apply only to values that exist. A rule about null belongs to the parent.
        if location.value.is_null() || self.exhausted {
            return;
        }
        self.rules(location, at);
        match location.value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let is_root = matches!(at, Cursor::Root);
                    if is_root && name == "status" && self.case.has_status_subresource {
                        continue;
                    }
                    let own = location.schema.properties.get(name);
                    let below = match own {
                        Some(schema) => Some(schema).zip(location.rules.properties.get(name)),
                        None => {
                            let rules = location.rules.additional.as_deref();
                            location.schema.additional().zip(rules)
                        }
                    };
                    let Some((schema, rules)) = below else {
                        continue;
                    };
                    let below = Location {
                        schema,
                        rules,
                        value,
                        before: location
                            .before
                            .and_then(|before| before.as_object()?.get(name)),
                        ratchet: if is_root && matches!(name.as_str(), "apiVersion" | "kind") {
                            Ratchet::new(None)
                        } else {
                            location.ratchet.field(name)
                        },
                    };
                    let at = if own.is_some() {
                        at.child(name)
                    } else {
                        at.key(name)
                    };
                    self.node(below, at);
                }
            }
            Value::Array(items) => {
                let items_schema = location.schema.items.as_deref();
                let Some((schema, rules)) = items_schema.zip(location.rules.items.as_deref())
                else {
                    return;
                };
                let before = location
                    .before
                    .map(|before| Counterparts::new(location.schema, before));
                let correlated = location.ratchet.items();
                for (index, value) in items.iter().enumerate() {
                    let below = Location {
                        schema,
                        rules,
                        value,
                        before: before.as_ref().and_then(|before| before.of(value)),
                        ratchet: location.ratchet.item(correlated.as_ref(), index),
                    };
                    self.node(below, at.index(index));
                }
            }
            _ => {}
        }
    }

    fn rules(&mut self, location: Location<'a>, at: Cursor<'_>) {
        if location.rules.rules.is_empty() {
            return;
        }
        let is_resource = matches!(at, Cursor::Root);
        let activation = Activation::new(
            location.schema,
            location.value,
            location.before,
            is_resource,
            &location.rules.reach,
            location.rules.sees_old_self,
        );
        let inputs = OnceCell::new();
        // Every update changes the metadata, `managedFields` at least, so the API server never ratchets a rule on the
        // whole object.
        let can_be_ratcheted = !is_resource;
        for rule in &location.rules.rules {
            let (error, may_be_ratcheted) = match rule.evaluate(&activation, at, &mut self.budget) {
                Outcome::Holds => continue,
                Outcome::Error(error) => (error, can_be_ratcheted && !rule.uses_old_self),
                Outcome::Failed(error) => (error, false),
                Outcome::Exhausted(error) => {
                    self.exhausted = true;
                    (error, false)
                }
            };
            let violation = Violation {
                rule: rule.id.clone(),
                layer: Layer::Cel,
                at: error.path.clone(),
                error,
                inputs: may_be_ratcheted
                    .then(|| *inputs.get_or_init(|| fingerprint([location.value]))),
            };
            let ratcheted = may_be_ratcheted && location.ratchet.is_unchanged();
            self.report.deny_or_ratchet(violation, ratcheted);
            if self.exhausted {
                return;
            }
        }
    }
}
