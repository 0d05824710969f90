//! Results and errors → XML, by the shapes of the model.

use std::io;

use quick_xml::Writer;
use quick_xml::events::BytesText;
use serde_json::Value;

use crate::model::{Kind, Model, Shape};
use crate::protocol::fault::Fault;

type Xml = Writer<Vec<u8>>;

/// Returns the XML of a result. A value that does not have its shape is an error: real clients would ignore it.
pub(crate) fn result(
    model: &Model,
    operation: &str,
    result: &Value,
    request_id: &str,
) -> io::Result<Vec<u8>> {
    let mut xml = Writer::new(Vec::new());
    xml.create_element(format!("{operation}Response"))
        .with_attribute(("xmlns", model.namespace.as_str()))
        .write_inner_content(|xml| {
            if let Some(output) = &model.operations[operation].output {
                xml.create_element(format!("{operation}Result"))
                    .write_inner_content(|xml| members(xml, model, model.shape(output), result))?;
            }
            let metadata = xml.create_element("ResponseMetadata");
            metadata.write_inner_content(|xml| text(xml, "RequestId", request_id))?;
            Ok(())
        })?;
    Ok(xml.into_inner())
}

/// Returns the XML of an error.
pub(crate) fn error(
    model: &Model,
    fault: &Fault,
    status: u16,
    request_id: &str,
) -> io::Result<Vec<u8>> {
    let mut xml = Writer::new(Vec::new());
    xml.create_element("ErrorResponse")
        .with_attribute(("xmlns", model.namespace.as_str()))
        .write_inner_content(|xml| {
            xml.create_element("Error").write_inner_content(|xml| {
                let cause = if status < 500 { "Sender" } else { "Receiver" };
                text(xml, "Type", cause)?;
                text(xml, "Code", &fault.code)?;
                text(xml, "Message", &fault.message)
            })?;
            text(xml, "RequestId", request_id)
        })?;
    Ok(xml.into_inner())
}

fn members(xml: &mut Xml, model: &Model, shape: &Shape, value: &Value) -> io::Result<()> {
    for (name, value) in value.as_object().into_iter().flatten() {
        let Some(member) = shape.members.get(name) else {
            return Err(io::Error::other(format!("the model has no member {name}")));
        };
        element(xml, model, name, model.shape(member), value)?;
    }
    Ok(())
}

fn element(
    xml: &mut Xml,
    model: &Model,
    name: &str,
    shape: &Shape,
    value: &Value,
) -> io::Result<()> {
    let printed = match (shape.kind, value) {
        (_, Value::Null) => return Ok(()),
        (Kind::Structure, Value::Object(_)) => {
            xml.create_element(name)
                .write_inner_content(|xml| members(xml, model, shape, value))?;
            return Ok(());
        }
        (Kind::List, Value::Array(elements)) => {
            xml.create_element(name).write_inner_content(|xml| {
                let inner = model.shape(&shape.element);
                elements
                    .iter()
                    .try_for_each(|it| element(xml, model, shape.element_name(), inner, it))
            })?;
            return Ok(());
        }
        (Kind::String | Kind::Timestamp, Value::String(text)) => text.clone(),
        (Kind::Boolean, Value::Bool(flag)) => flag.to_string(),
        (Kind::Integer | Kind::Long | Kind::Double, Value::Number(number)) => number.to_string(),
        (kind, value) => {
            let message = format!("{name} is {value} and not of kind {kind:?}");
            return Err(io::Error::other(message));
        }
    };
    text(xml, name, &printed)
}

fn text(xml: &mut Xml, name: &str, value: &str) -> io::Result<()> {
    xml.create_element(name)
        .write_text_content(BytesText::new(value))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_is_written_by_its_shape_with_special_characters_escaped() {
        let tags = json!({"TagList": [{"Key": "a", "Value": "<&>"}]});
        let xml = result(&Model::rds(), "ListTagsForResource", &tags, "1").expect("XML");
        assert_eq!(
            String::from_utf8(xml).expect("text"),
            "<ListTagsForResourceResponse xmlns=\"http://rds.amazonaws.com/doc/2014-10-31/\">\
             <ListTagsForResourceResult><TagList><Tag><Key>a</Key><Value>&lt;&amp;&gt;</Value></Tag>\
             </TagList></ListTagsForResourceResult>\
             <ResponseMetadata><RequestId>1</RequestId></ResponseMetadata>\
             </ListTagsForResourceResponse>"
        );
    }

    #[test]
    fn an_error_names_its_cause() {
        let xml = |status| {
            let fault = Fault::new("Code", "a < b");
            let xml = error(&Model::rds(), &fault, status, "1").expect("XML");
            String::from_utf8(xml).expect("text")
        };
        assert_eq!(
            xml(404),
            "<ErrorResponse xmlns=\"http://rds.amazonaws.com/doc/2014-10-31/\"><Error>\
             <Type>Sender</Type><Code>Code</Code><Message>a &lt; b</Message></Error>\
             <RequestId>1</RequestId></ErrorResponse>"
        );
        assert!(xml(503).contains("<Type>Receiver</Type>"));
    }

    #[test]
    fn a_result_that_does_not_have_its_shape_is_an_error() {
        for tags in [
            json!({"Tags": []}),
            json!({"TagList": "a"}),
            json!({"TagList": [{"Key": 1}]}),
        ] {
            let xml = result(&Model::rds(), "ListTagsForResource", &tags, "1");
            assert!(xml.is_err(), "{tags}");
        }
    }
}
