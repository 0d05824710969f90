//! What passes by the Rust rules alone, for who knows that the API server has just judged the rest.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::json;

use crate::accepted::Accepted;
use crate::canary;
use crate::candidate::Operation;
use crate::defaults::DynamicDefault;
use crate::kind::Kind;
use crate::rule::Subject;
use crate::typed::Typed;
use crate::written::{Places, Written, value};

/// What has to be looked at besides the rules, compiled once.
pub(crate) struct Passing {
    /// Defaults that depend on other fields, and the mark of a canary.
    of_object: Places,
    /// What the loop remembers, and the fields that it remembers.
    of_old: Places,
    fields: Vec<Remembered>,
}

/// A field that the loop remembers.
struct Remembered {
    name: String,
    /// Whether it has a default that the API server cannot fill.
    is_filled: bool,
}

impl Passing {
    pub(crate) fn new(defaults: &[DynamicDefault], transition_fields: &BTreeSet<String>) -> Self {
        let split = |name: &'static str| name.split('.').collect::<Vec<_>>();
        let canary = vec!["metadata", "annotations", canary::ANNOTATION];
        let status = [vec!["status", "accepted"], vec!["status", "conditions"]];
        let fields = transition_fields
            .iter()
            .map(|name| name.split('.').collect());
        let remembered = transition_fields.iter().map(|name| Remembered {
            name: name.clone(),
            is_filled: defaults.iter().any(|default| default.field == name),
        });
        let filled = defaults.iter().map(|default| split(default.field));
        Self {
            of_object: Places::of([canary].into_iter().chain(filled)),
            of_old: Places::of(status.into_iter().chain(fields)),
            fields: remembered.collect(),
        }
    }

    /// Whether an object is no canary and lacks no default that the API server cannot fill.
    pub(crate) fn is_complete(&self, object: Written<'_>) -> bool {
        let Ok(picked) = object.pick(&self.of_object) else {
            return false;
        };
        match picked.split_first() {
            Some((canary, defaults)) => {
                canary.is_none() && defaults.iter().all(|default| value(*default).is_some())
            }
            None => false,
        }
    }

    /// Whether an object has every default, and is what was last accepted of it as far as transitions are
    /// concerned: then the API server has judged them against the same as would be done here.
    fn is_as_accepted(&self, old: Written<'_>) -> bool {
        let Ok(picked) = old.pick(&self.of_old) else {
            return false;
        };
        let [accepted, conditions, values @ ..] = picked.as_slice() else {
            return false;
        };
        let values: Vec<_> = values.iter().map(|text| value(*text)).collect();
        let mut fields = self.fields.iter().zip(&values);
        if fields.any(|(field, value)| field.is_filled && value.is_none()) {
            return false;
        }
        let accepted = match value(*accepted) {
            Some(accepted) => Accepted::deserialize(accepted).ok(),
            None => match Accepted::of_status(&json!({ "conditions": value(*conditions) })) {
                None => return true,
                never => never,
            },
        };
        let Some(accepted) = accepted else {
            return false;
        };
        let mut fields = self.fields.iter().zip(&values);
        fields.all(|(field, value)| accepted.value(&field.name) == value.as_ref())
    }

    /// Whether the rules have nothing to say of an object, and whether nothing else would be said.
    pub(crate) fn passes<K: Kind>(
        &self,
        rules: &Typed<K>,
        object: Written<'_>,
        old: Option<Written<'_>>,
    ) -> bool {
        if !self.is_complete(object) || !old.is_none_or(|old| self.is_as_accepted(old)) {
            return false;
        }
        let Ok(object) = object.read::<K>() else {
            return false;
        };
        let operation = match old {
            Some(_) => Operation::Update,
            None => Operation::Create,
        };
        let Ok(old) = old.map(Written::read::<K>).transpose() else {
            return false;
        };
        rules.is_silent(&Subject {
            operation,
            object: &object,
            old: old.as_ref(),
        })
    }
}
