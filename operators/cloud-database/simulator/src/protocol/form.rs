//! Form of a request → parameters, by the shapes of the model.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::fields::Fields;
use crate::model::{Kind, MEMBER, Model, Shape};
use crate::protocol::fault::Fault;

/// Fields of a form as a tree: `Tags.Tag.1.Key=a` is the leaf `a` below four names.
#[derive(Debug, Default)]
struct Tree {
    text: Option<String>,
    below: BTreeMap<String, Tree>,
}

/// Decoded form: the name of the operation, and its parameters before they are compared with the model.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) action: String,
    pub(crate) version: String,
    tree: Tree,
}

impl Form {
    /// Parses the body of a request.
    pub(crate) fn parse(body: &[u8]) -> Self {
        let mut tree = Tree::default();
        for (name, value) in form_urlencoded::parse(body) {
            let mut at = &mut tree;
            for part in name.split('.') {
                at = at.below.entry(part.to_owned()).or_default();
            }
            at.text = Some(value.into_owned());
        }
        let mut text = |name: &str| {
            let field = tree.below.remove(name);
            field.and_then(|field| field.text).unwrap_or_default()
        };
        Self {
            action: text("Action"),
            version: text("Version"),
            tree,
        }
    }

    /// Returns the parameters, if they have the shape that the model gives them.
    pub(crate) fn parameters(&self, model: &Model, input: &str) -> Result<Fields, Fault> {
        let shape = model.shape(input);
        structure(model, shape, &self.tree, "").map(Fields::from)
    }
}

fn structure(
    model: &Model,
    shape: &Shape,
    tree: &Tree,
    path: &str,
) -> Result<Map<String, Value>, Fault> {
    let mut members = Map::new();
    for (name, tree) in &tree.below {
        let path = join(path, name);
        let Some(member) = shape.members.get(name) else {
            return Err(Fault::new(
                "ValidationError",
                format!("Unknown parameter: {path}"),
            ));
        };
        let value = value(model, model.shape(member), tree, &path)?;
        members.insert(name.clone(), value);
    }
    let missing = shape.required.iter();
    let mut missing = missing.filter(|name| !members.contains_key(*name));
    match missing.next() {
        Some(name) => Err(Fault::missing(&join(path, name))),
        None => Ok(members),
    }
}

fn value(model: &Model, shape: &Shape, tree: &Tree, path: &str) -> Result<Value, Fault> {
    match shape.kind {
        Kind::Structure => structure(model, shape, tree, path).map(Value::Object),
        Kind::List => list(model, shape, tree, path),
        _ => scalar(shape, tree, path),
    }
}

/// Reads a list. A field without a value is an empty list.
fn list(model: &Model, shape: &Shape, tree: &Tree, path: &str) -> Result<Value, Fault> {
    let mut elements = BTreeMap::new();
    for (name, elements_tree) in &tree.below {
        if ![shape.element_name(), MEMBER].contains(&name.as_str()) {
            let path = join(path, name);
            return Err(Fault::new(
                "ValidationError",
                format!("Unknown parameter: {path}"),
            ));
        }
        for (index, element) in &elements_tree.below {
            let path = join(&join(path, name), index);
            let position: usize = index
                .parse()
                .map_err(|_| Fault::new("ValidationError", format!("{path} is not an index")))?;
            let element = value(model, model.shape(&shape.element), element, &path)?;
            elements.insert(position, element);
        }
    }
    Ok(elements.into_values().collect())
}

fn scalar(shape: &Shape, tree: &Tree, path: &str) -> Result<Value, Fault> {
    let Some(text) = tree.text.as_deref().filter(|_| tree.below.is_empty()) else {
        return Err(Fault::new(
            "ValidationError",
            format!("{path} must have a single value"),
        ));
    };
    let invalid = || Fault::value(format!("Invalid value for parameter {path}: {text}"));
    match shape.kind {
        Kind::Boolean => match text.to_ascii_lowercase().as_str() {
            "true" => Ok(true.into()),
            "false" => Ok(false.into()),
            _ => Err(invalid()),
        },
        Kind::Integer => text.parse::<i32>().map(Value::from).map_err(|_| invalid()),
        Kind::Long => text.parse::<i64>().map(Value::from).map_err(|_| invalid()),
        Kind::Double => text.parse::<f64>().map(Value::from).map_err(|_| invalid()),
        Kind::Timestamp => match text.parse::<jiff::Timestamp>() {
            Ok(time) => Ok(time.to_string().into()),
            Err(_) => Err(invalid()),
        },
        _ if !shape.values.is_empty() && !shape.values.iter().any(|value| value == text) => {
            let allowed = shape.values.join(", ");
            Err(Fault::new(
                "ValidationError",
                format!(
                    "1 validation error detected: Value '{text}' at '{path}' failed to satisfy constraint: Member must satisfy enum value set: [{allowed}]"
                ),
            ))
        }
        _ => Ok(text.into()),
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        return name.to_owned();
    }
    format!("{path}.{name}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn decode(body: &str) -> Result<Value, Fault> {
        let form = Form::parse(body.as_bytes());
        let model = Model::rds();
        let input = model.operations[&form.action].input.clone();
        form.parameters(&model, &input).map(Value::from)
    }

    #[test]
    fn lists_and_structures_are_read_by_their_shapes() {
        let body = "Action=AddTagsToResource&Version=2014-10-31&ResourceName=arn%3Aaws\
                    &Tags.Tag.2.Key=b&Tags.Tag.1.Key=a&Tags.Tag.1.Value=1+2";
        let expected = json!({
            "ResourceName": "arn:aws",
            "Tags": [{"Key": "a", "Value": "1 2"}, {"Key": "b"}],
        });
        assert_eq!(decode(body).expect("parameters"), expected);
        let body = "Action=RemoveTagsFromResource&ResourceName=a&TagKeys.member.1=x";
        let expected = json!({"ResourceName": "a", "TagKeys": ["x"]});
        assert_eq!(decode(body).expect("parameters"), expected);
        let body = "Action=ModifyDBInstance&DBInstanceIdentifier=a&VpcSecurityGroupIds=\
                    &AllocatedStorage=20&MultiAZ=true";
        let expected = json!({
            "DBInstanceIdentifier": "a", "VpcSecurityGroupIds": [], "AllocatedStorage": 20,
            "MultiAZ": true,
        });
        assert_eq!(decode(body).expect("parameters"), expected);
    }

    #[test]
    fn a_parameter_that_does_not_have_its_shape_is_an_error() {
        let code = |body: &str| decode(body).expect_err("an error").code;
        let modify = "Action=ModifyDBInstance&DBInstanceIdentifier=a";
        assert_eq!(code("Action=ModifyDBInstance"), "MissingParameter");
        for (parameter, expected) in [
            ("Size=20", "ValidationError"),
            ("AllocatedStorage=many", "InvalidParameterValue"),
            ("AllocatedStorage=5000000000", "InvalidParameterValue"),
            ("AllocatedStorage.1=20", "ValidationError"),
            ("MultiAZ=perhaps", "InvalidParameterValue"),
            ("VpcSecurityGroupIds.Group.1=sg-1", "ValidationError"),
            ("VpcSecurityGroupIds.member.first=sg-1", "ValidationError"),
            ("DatabaseInsightsMode=none", "ValidationError"),
        ] {
            assert_eq!(
                code(&format!("{modify}&{parameter}")),
                expected,
                "{parameter}"
            );
        }
        let restore = "Action=RestoreDBInstanceToPointInTime&TargetDBInstanceIdentifier=a";
        let restore = format!("{restore}&RestoreTime=yesterday");
        assert_eq!(code(&restore), "InvalidParameterValue");
    }
}
