//! Compiled CEL rules of a CRD, arranged as the schema is.

use std::collections::BTreeMap;

use crate::cel::field_usage::FieldUsage;
use crate::cel::program::CelRule;
use crate::compile_error::CompileError;
use crate::schema::{Schema, join};

/// Compiled rules of a schema node and of all nodes below it. Nodes without rules are left out.
pub(crate) struct CelValidator {
    /// Rules of the node itself.
    pub(crate) rules: Vec<CelRule>,
    /// Fields that the rules of the node read.
    pub(crate) reach: FieldUsage,
    /// If true, any rule of the node may read `oldSelf`.
    pub(crate) sees_old_self: bool,
    pub(crate) properties: BTreeMap<String, CelValidator>,
    pub(crate) items: Option<Box<CelValidator>>,
    pub(crate) additional: Option<Box<CelValidator>>,
}

impl CelValidator {
    /// Compiles the rules of a schema. Returns `None` if it has none.
    pub(crate) fn compile(schema: &Schema, at: &str) -> Result<Option<Self>, CompileError> {
        if !schema.has_rules {
            return Ok(None);
        }
        let mut properties = BTreeMap::new();
        for (name, child) in schema.properties.iter() {
            if let Some(child) = Self::compile(child, &join(at, name))? {
                properties.insert(name.clone(), child);
            }
        }
        let below = |child: Option<&Schema>, at: String| {
            let compiled = child.map(|child| Self::compile(child, &at)).transpose();
            compiled.map(|compiled| compiled.flatten().map(Box::new))
        };
        let additional = below(schema.additional(), format!("{at}[*]"))?;
        let items = below(schema.items.as_deref(), format!("{at}[]"))?;
        let mut reach = FieldUsage::default();
        let mut rules = Vec::new();
        for (index, rule) in schema.validations.iter().enumerate() {
            let mut rule = CelRule::compile(rule, schema, at, index)?;
            reach.merge(std::mem::take(&mut rule.reach));
            rules.push(rule);
        }
        Ok(Some(Self {
            sees_old_self: rules.iter().any(CelRule::sees_old_self),
            rules,
            reach,
            properties,
            items,
            additional,
        }))
    }

    /// Visits the rules of this node and of all nodes below it with the dotted path of each node. List items and
    /// map values have no path of their own and are skipped.
    pub(crate) fn visit_named<'a>(
        &'a self,
        schema: &'a Schema,
        name: &str,
        visit: &mut dyn FnMut(&str, &'a Schema, &'a CelRule),
    ) {
        for rule in &self.rules {
            visit(name, schema, rule);
        }
        for (field, rules) in &self.properties {
            if let Some(schema) = schema.properties.get(field) {
                rules.visit_named(schema, &join(name, field), visit);
            }
        }
    }
}
