//! Input of the rules of one schema node.

use std::cell::OnceCell;

use ::cel::Context;
use ::cel::common::types::CelOptional;
use ::cel::common::value::Val;
use serde_json::Value;

use crate::cel::field_usage::FieldUsage;
use crate::cel::library;
use crate::cel::value::Conversion;
use crate::schema::Schema;

/// Value and its old value. The CEL variables are built once for all rules that use the same ones.
pub(crate) struct Activation<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) value: &'a Value,
    before: Option<&'a Value>,
    is_resource: bool,
    /// Fields that the rules read.
    reach: &'a FieldUsage,
    /// If true, any of the rules may read `oldSelf`.
    sees_old_self: bool,
    plain: OnceCell<Variables<'a>>,
    with_optional: OnceCell<Variables<'a>>,
}

/// CEL variables `self` and `oldSelf`.
pub(crate) struct Variables<'a> {
    pub(crate) context: Context<'a, 'a>,
    /// If true, `self` contains data that has no CEL value.
    is_broken: bool,
    /// If true, `oldSelf` contains such data.
    is_old_broken: bool,
}

impl Variables<'_> {
    /// Returns true if a rule can access data that has no CEL value. `sees_old_self` is true if the rule may
    /// read `oldSelf`.
    pub(crate) fn are_broken_for(&self, sees_old_self: bool) -> bool {
        self.is_broken || (self.is_old_broken && sees_old_self)
    }
}

impl<'a> Activation<'a> {
    pub(crate) fn new(
        schema: &'a Schema,
        value: &'a Value,
        before: Option<&'a Value>,
        is_resource: bool,
        reach: &'a FieldUsage,
        sees_old_self: bool,
    ) -> Self {
        Self {
            schema,
            value,
            before: before.filter(|before| !before.is_null()),
            is_resource,
            reach,
            sees_old_self,
            plain: OnceCell::new(),
            with_optional: OnceCell::new(),
        }
    }

    /// Returns the old value, unless there is none or it is null.
    pub(crate) fn before(&self) -> Option<&'a Value> {
        self.before
    }

    /// Returns true if there is an old value.
    pub(crate) fn is_change(&self) -> bool {
        self.before.is_some()
    }

    /// Returns the variables for a rule. `optional_old_self` is true if its `oldSelf` is an optional value.
    pub(crate) fn variables(&self, optional_old_self: bool) -> &Variables<'a> {
        if optional_old_self {
            self.with_optional.get_or_init(|| self.make(true))
        } else {
            self.plain.get_or_init(|| self.make(false))
        }
    }

    fn make(&self, is_optional: bool) -> Variables<'a> {
        let mut context = Context::with_env(library::environment());
        let conversion = Conversion::default();
        context.add_variable_as_val("self", self.as_cel(&conversion, self.value));
        let before = Conversion::default();
        if self.sees_old_self {
            let old = self.before.map(|old| self.as_cel(&before, old));
            let old: Option<Box<dyn Val + 'a>> = if is_optional {
                Some(Box::new(CelOptional::from(old)))
            } else {
                old
            };
            if let Some(old) = old {
                context.add_variable_as_val("oldSelf", old);
            }
        }
        Variables {
            context,
            is_broken: conversion.met_broken(),
            is_old_broken: before.met_broken(),
        }
    }

    fn as_cel(&self, conversion: &Conversion, value: &'a Value) -> Box<dyn Val + 'a> {
        if self.is_resource {
            conversion.of_resource(self.schema, value)
        } else {
            conversion.of_part(self.schema, value, self.reach)
        }
    }
}
