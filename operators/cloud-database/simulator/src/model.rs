//! Service models: the operations of RDS and STS that the simulator answers, with the shapes of their parameters and
//! results and with the errors that each operation documents.
//!
//! The files are a subset of the models of botocore. The test `model` writes them and compares them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Model of a service.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Origin of the model, with its version.
    pub source: String,
    /// Version of the API, which each request names.
    pub api_version: String,
    /// XML namespace of the answers.
    pub namespace: String,
    /// Operations, by name.
    pub operations: BTreeMap<String, Operation>,
    /// HTTP statuses of the errors, by code.
    pub errors: BTreeMap<String, u16>,
    /// Shapes, by name.
    pub shapes: BTreeMap<String, Shape>,
}

/// Operation of a service.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    /// Name of the shape of the parameters.
    pub input: String,
    /// Name of the shape of the result, if the operation has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Codes of the documented errors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
}

/// Type of a parameter, of a result, or of a part of one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Shape {
    /// Kind of the shape.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// Names of the shapes of the members of a structure.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub members: BTreeMap<String, String>,
    /// Names of the members that a structure must have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
    /// Name of the shape of the elements of a list.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub element: String,
    /// Name that the elements of a list have in requests and answers, if it is not `member`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub element_name: String,
    /// Allowed values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// If true, the value must not be printed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sensitive: bool,
}

/// Kind of a shape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Members with names.
    #[default]
    Structure,
    /// Elements.
    List,
    /// Text.
    String,
    /// Number without fraction.
    Integer,
    /// Number without fraction, of 64 bits.
    Long,
    /// Number.
    Double,
    /// `true` or `false`.
    Boolean,
    /// Time, written as in RFC 3339.
    Timestamp,
}

/// Name of the elements of a list whose shape sets no other name.
pub(crate) const MEMBER: &str = "member";

impl Model {
    /// Returns the model of RDS.
    pub fn rds() -> Self {
        parse(include_str!("../model/rds.json"))
    }

    /// Returns the model of STS.
    pub fn sts() -> Self {
        parse(include_str!("../model/sts.json"))
    }

    /// Returns the shape with a name.
    pub fn shape(&self, name: &str) -> &Shape {
        let shape = self.shapes.get(name);
        shape.unwrap_or_else(|| panic!("the model has no shape {name}"))
    }
}

fn parse(text: &str) -> Model {
    serde_json::from_str(text).expect("the committed models are valid")
}

impl Shape {
    /// Returns the name of the elements of a list in requests and answers.
    pub(crate) fn element_name(&self) -> &str {
        if self.element_name.is_empty() {
            MEMBER
        } else {
            &self.element_name
        }
    }
}
