//! Compilation of the JSON schema in a CRD.

use serde_json::{Map, Value};

use crate::cel;
use crate::compile_error::CompileError;
use crate::format::Format;
use crate::re2;
use crate::schema::{Additional, Bound, JsonType, ListType, NumberFormat, Pattern, Schema, join};

impl Schema {
    /// Compiles the schema of a version of a CRD.
    pub(crate) fn of_crd(crd: &Value, version: &str) -> Result<Self, CompileError> {
        let versions = crd
            .pointer("/spec/versions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let schema = versions
            .filter(|one| one["name"] == version)
            .find_map(|one| one.pointer("/schema/openAPIV3Schema"))
            .ok_or_else(|| CompileError::NoSchema {
                version: version.to_owned(),
            })?;
        Self::compile(schema, "")
    }

    /// Compiles one node. An unknown keyword has no effect, as in the API server, which drops it. A keyword of JSON Schema that
    /// the API server refuses in a CRD is an error.
    pub(crate) fn compile(node: &Value, at: &str) -> Result<Self, CompileError> {
        let fail = |problem: String| CompileError::Schema {
            at: printed(at),
            problem,
        };
        let fields = node
            .as_object()
            .ok_or_else(|| fail("must be an object".into()))?;
        let mut schema = Self::default();
        for (keyword, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
            let known = schema.shape(keyword, value, fields, at)?
                || schema.bound(keyword, value).map_err(fail)?
                || schema.alternative(keyword, value, at)?
                || is_annotation(keyword);
            if !known && REFUSED.contains(&keyword.as_str()) {
                return Err(fail(format!("keyword `{keyword}` is not supported")));
            }
        }
        schema.exclusive(fields);
        schema.keys_are_properties().map_err(fail)?;
        schema.read_format(fields).map_err(fail)?;
        let any = |own: bool, has: fn(&Schema) -> bool| {
            let additional = schema.additional();
            let items = schema.items.as_deref();
            let mut below = schema.properties.schemas().chain(additional).chain(items);
            own || below.any(has)
        };
        let has_rules = any(!schema.validations.is_empty(), |below| below.has_rules);
        let has_identities = any(schema.list_type != ListType::Atomic, |below| {
            below.has_identities
        });
        let has_embedded = any(schema.embedded, |below| below.has_embedded);
        schema.has_rules = has_rules;
        schema.has_identities = has_identities;
        schema.has_embedded = has_embedded;
        Ok(schema)
    }

    /// Rejects list keys that the items do not have, as the API server does.
    fn keys_are_properties(&self) -> Result<(), String> {
        let ListType::Map(keys) = &self.list_type else {
            return Ok(());
        };
        if keys.is_empty() {
            return Err("a list of type map needs `x-kubernetes-list-map-keys`".to_owned());
        }
        let has = |key: &String| {
            let items = self.items.as_ref();
            items.is_some_and(|items| items.properties.contains(key))
        };
        match keys.iter().find(|key| !has(key)) {
            Some(key) => Err(format!(
                "the list key `{key}` is not a property of the items"
            )),
            None => Ok(()),
        }
    }

    /// Compiles keywords for the type and structure of a value.
    fn shape(
        &mut self,
        keyword: &str,
        value: &Value,
        fields: &Map<String, Value>,
        at: &str,
    ) -> Result<bool, CompileError> {
        let fail = |problem: String| CompileError::Schema {
            at: printed(at),
            problem,
        };
        match keyword {
            "type" => {
                let json_type = value.as_str().and_then(JsonType::named);
                self.json_type =
                    Some(json_type.ok_or_else(|| fail(format!("unknown type {value}")))?);
            }
            "nullable" => self.nullable = value == true,
            "x-kubernetes-int-or-string" => self.int_or_string = value == true,
            "x-kubernetes-preserve-unknown-fields" => self.preserves_unknown = value == true,
            "x-kubernetes-embedded-resource" => self.embedded = value == true,
            "items" => {
                let items = Self::compile(value, &format!("{at}[]"))?;
                self.count_large_patterns(items.large_patterns)
                    .map_err(fail)?;
                self.items = Some(Box::new(items));
            }
            "properties" => {
                let properties = value.as_object().into_iter().flatten();
                let mut large = 0;
                let compiled = properties.map(|(name, property)| {
                    let mut child = Self::compile(property, &join(at, name))?;
                    large += child.large_patterns;
                    if large > MAX_LARGE_PATTERNS {
                        return Err(fail(too_many_large()));
                    }
                    child.identifier = cel::identifier(name);
                    let identifier = child.identifier.as_deref();
                    child.reserved_word = identifier.and_then(cel::unescaped).map(str::to_owned);
                    Ok((name.clone(), child))
                });
                self.properties = compiled.collect::<Result<_, CompileError>>()?;
                self.count_large_patterns(large).map_err(fail)?;
            }
            "additionalProperties" => {
                self.additional = match value {
                    Value::Bool(true) => Additional::Any,
                    Value::Bool(false) => Additional::Forbidden,
                    schema => {
                        let entry = Self::compile(schema, &format!("{at}[*]"))?;
                        self.count_large_patterns(entry.large_patterns)
                            .map_err(fail)?;
                        Additional::Of(Box::new(entry))
                    }
                };
            }
            "default" => self.default = Some(value.clone()),
            "x-kubernetes-list-type" => {
                self.list_type = match value.as_str() {
                    Some("set") => ListType::Set,
                    Some("map") => ListType::Map(
                        fields
                            .get("x-kubernetes-list-map-keys")
                            .map(strings)
                            .unwrap_or_default(),
                    ),
                    _ => ListType::Atomic,
                };
            }
            // Compiled after the whole schema: a rule is checked against the fields that it uses.
            "x-kubernetes-validations" => {
                self.validations = value.as_array().cloned().unwrap_or_default();
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Compiles keywords that limit a value.
    fn bound(&mut self, keyword: &str, value: &Value) -> Result<bool, String> {
        match keyword {
            "enum" => self.options = value.as_array().cloned().unwrap_or_default(),
            "minimum" => self.minimum = bound(value),
            "maximum" => self.maximum = bound(value),
            "multipleOf" => self.multiple_of = value.as_f64(),
            "minLength" => self.min_length = value.as_u64(),
            "maxLength" => self.max_length = value.as_u64(),
            "minItems" => self.min_items = value.as_u64(),
            "maxItems" => self.max_items = value.as_u64(),
            "uniqueItems" => self.unique_items = value == true,
            "minProperties" => self.min_properties = value.as_u64(),
            "maxProperties" => self.max_properties = value.as_u64(),
            "required" => self.required = strings(value),
            "pattern" => {
                let source = value.as_str().unwrap_or_default();
                if !source.is_empty() {
                    let (expression, is_large) =
                        re2::compile_pattern(source).map_err(|error| format!("pattern {error}"))?;
                    self.count_large_patterns(usize::from(is_large))?;
                    self.pattern = Some(Pattern {
                        source: source.to_owned(),
                        expression,
                    });
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Compiles `allOf`, `anyOf`, `oneOf` and `not`.
    fn alternative(
        &mut self,
        keyword: &str,
        value: &Value,
        at: &str,
    ) -> Result<bool, CompileError> {
        let mut large = 0;
        let mut compile = |value: &Value| {
            let schema = Self::compile(value, at)?;
            large += schema.large_patterns;
            if large > MAX_LARGE_PATTERNS {
                return Err(CompileError::Schema {
                    at: printed(at),
                    problem: too_many_large(),
                });
            }
            if schema.has_rules {
                return Err(CompileError::Schema {
                    at: printed(at),
                    problem: format!("`x-kubernetes-validations` is not allowed in `{keyword}`"),
                });
            }
            Ok(schema)
        };
        let mut all = || -> Result<Vec<_>, _> {
            let alternatives = value.as_array().into_iter().flatten();
            alternatives.map(&mut compile).collect()
        };
        match keyword {
            "allOf" => self.all_of = all()?,
            "anyOf" => self.any_of = all()?,
            "oneOf" => self.one_of = all()?,
            "not" => self.not = Some(Box::new(compile(value)?)),
            _ => return Ok(false),
        }
        self.count_large_patterns(large)
            .map_err(|problem| CompileError::Schema {
                at: printed(at),
                problem,
            })?;
        Ok(true)
    }

    /// Counts patterns below this node against the maximum of a CRD.
    fn count_large_patterns(&mut self, more: usize) -> Result<(), String> {
        self.large_patterns += more;
        if self.large_patterns > MAX_LARGE_PATTERNS {
            return Err(too_many_large());
        }
        Ok(())
    }

    fn exclusive(&mut self, fields: &Map<String, Value>) {
        for (keyword, bound) in [
            ("exclusiveMinimum", &mut self.minimum),
            ("exclusiveMaximum", &mut self.maximum),
        ] {
            if let Some(bound) = bound {
                bound.exclusive = fields.get(keyword).is_some_and(|value| value == true);
            }
        }
    }

    /// Compiles `format`, which has different meanings for strings and for numbers.
    fn read_format(&mut self, fields: &Map<String, Value>) -> Result<(), String> {
        let Some(name) = fields.get("format").filter(|format| !format.is_null()) else {
            return Ok(());
        };
        let name = name.as_str().ok_or("`format` must be a string")?;
        match self.json_type {
            _ if self.int_or_string => {}
            Some(JsonType::Integer) => {
                self.number_format = match name {
                    "int32" => Some(NumberFormat::Int32),
                    "int64" => Some(NumberFormat::Int64),
                    _ => None,
                };
            }
            Some(JsonType::Number) => {
                self.number_format = match name {
                    "float" => Some(NumberFormat::Float),
                    "double" => Some(NumberFormat::Double),
                    _ => None,
                };
            }
            None | Some(JsonType::String) => self.format = Format::named(name),
            Some(_) => {}
        }
        if self.format.is_some() || self.number_format.is_some() {
            name.clone_into(&mut self.format_name);
        }
        Ok(())
    }
}

/// Maximum number of patterns of a schema that take more memory than usual, as protection against malicious CRDs.
const MAX_LARGE_PATTERNS: usize = 2;

fn too_many_large() -> String {
    format!(
        "more than {MAX_LARGE_PATTERNS} patterns take more than 4 MiB each; shorten a repetition"
    )
}

/// Keywords that the API server refuses in a CRD.
const REFUSED: [&str; 6] = [
    "$ref",
    "additionalItems",
    "definitions",
    "dependencies",
    "id",
    "patternProperties",
];

/// Returns true for keywords that the API server knows.
pub(crate) fn is_known(keyword: &str) -> bool {
    let (mut schema, nothing) = (Schema::default(), Map::new());
    // A keyword whose value is wrong is known.
    schema
        .shape(keyword, &Value::Null, &nothing, "")
        .unwrap_or(true)
        || schema.bound(keyword, &Value::Null).unwrap_or(true)
        || schema
            .alternative(keyword, &Value::Null, "")
            .unwrap_or(true)
        || is_annotation(keyword)
        || REFUSED.contains(&keyword)
}

/// Returns true for keywords that do not affect validation or that are compiled together with another keyword.
fn is_annotation(keyword: &str) -> bool {
    matches!(
        keyword,
        "$schema"
            | "description"
            | "title"
            | "example"
            | "externalDocs"
            | "format"
            | "exclusiveMinimum"
            | "exclusiveMaximum"
            | "x-kubernetes-map-type"
            | "x-kubernetes-list-map-keys"
    )
}

fn printed(at: &str) -> String {
    if at.is_empty() {
        "the root".to_owned()
    } else {
        at.to_owned()
    }
}

fn bound(value: &Value) -> Option<Bound> {
    match value {
        Value::Number(value) => Some(Bound {
            value: value.clone(),
            exclusive: false,
        }),
        _ => None,
    }
}

fn strings(value: &Value) -> Vec<String> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| item.as_str().map(String::from))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_has_at_most_two_large_patterns() {
        let compile = |count: usize| {
            let large = json!({"type": "string", "pattern": r"^\p{L}{1,256}$"});
            let fields = (0..count).map(|index| (format!("f{index}"), json!({"items": large})));
            let fields: Map<_, _> = fields.collect();
            Schema::compile(&json!({"properties": fields}), "spec").err()
        };
        assert!(compile(2).is_none());
        let error = compile(3).map(|error| error.to_string());
        let expected =
            "schema at spec: more than 2 patterns take more than 4 MiB each; shorten a repetition";
        assert_eq!(error.as_deref(), Some(expected));
    }

    #[test]
    fn the_keys_of_a_list_are_properties_of_its_items() {
        let problem = |keys: Value, items: Value| {
            let schema = json!({
                "type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": keys, "items": items,
            });
            let compiled = Schema::compile(&schema, "spec.list");
            compiled
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default()
        };
        let items = || json!({"type": "object", "properties": {"name": {"type": "string"}}});
        assert_eq!(problem(json!(["name"]), items()), "");
        assert_eq!(
            problem(json!(["name", "port"]), items()),
            "schema at spec.list: the list key `port` is not a property of the items"
        );
        for keys in [json!([]), Value::Null] {
            assert_eq!(
                problem(keys, items()),
                "schema at spec.list: a list of type map needs `x-kubernetes-list-map-keys`"
            );
        }
        let any = json!({"type": "object", "additionalProperties": {"type": "string"}});
        assert!(problem(json!(["name"]), any).contains("is not a property"));
    }
}
