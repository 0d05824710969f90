//! Output of `vector generate-schema`, as far as it is used here.

use anyhow::{Context, bail};
use serde_json::{Map, Value};

/// Schema of a whole configuration.
pub(crate) struct Schema {
    definitions: Map<String, Value>,
    /// Properties of the root: components and global options.
    pub(crate) globals: Map<String, Value>,
}

/// Component kind: the definitions with the shared options and with the list of all types.
pub(crate) struct Family {
    outer: &'static str,
    all: &'static str,
}

pub(crate) const SOURCES: Family = Family {
    outer: "vector::config::source::SourceOuter",
    all: "vector::sources::Sources",
};
pub(crate) const TRANSFORMS: Family = Family {
    outer: "vector::config::transform::TransformOuter<alloc::string::String>",
    all: "vector::transforms::Transforms",
};
pub(crate) const SINKS: Family = Family {
    outer: "vector::config::sink::SinkOuter<alloc::string::String>",
    all: "vector::sinks::Sinks",
};

impl Schema {
    pub(crate) fn new(mut schema: Value) -> anyhow::Result<Self> {
        let Value::Object(definitions) = schema["definitions"].take() else {
            bail!("the schema has no `definitions`: is it the output of `vector generate-schema`?");
        };
        let mut globals = Map::new();
        for part in schema["allOf"].as_array().into_iter().flatten() {
            let properties = part["properties"].as_object().cloned();
            globals.extend(properties.unwrap_or_default());
        }
        Ok(Self {
            definitions,
            globals,
        })
    }

    pub(crate) fn definition(&self, name: &str) -> anyhow::Result<&Value> {
        let definition = self.definitions.get(name);
        definition.with_context(|| format!("the schema has no definition `{name}`"))
    }

    /// Returns the options that all components of a kind share.
    pub(crate) fn shared(&self, family: &Family) -> anyhow::Result<&Value> {
        Ok(&self.definition(family.outer)?["allOf"][0])
    }

    /// Returns every type of a component kind, with its own part of the schema.
    pub(crate) fn types(&self, family: &Family) -> anyhow::Result<Vec<(&str, &Value)>> {
        let all = self.definition(family.all)?["oneOf"].as_array();
        let all = all.with_context(|| format!("`{}` lists no types", family.all))?;
        let mut types = Vec::new();
        for one in all {
            let name = one.pointer("/allOf/1/properties/type/const");
            let name = name.and_then(Value::as_str);
            let name =
                name.with_context(|| format!("`{}` lists an entry without a type", family.all))?;
            types.push((name, &one["allOf"][0]));
        }
        Ok(types)
    }
}

/// Returns the name of the definition that a reference points to.
pub(crate) fn target(node: &Value) -> Option<&str> {
    node["$ref"].as_str()?.strip_prefix("#/definitions/")
}
