//! Paths of fields in an object.

use serde_json::{Value, json};

/// Segment of a path at which a field cannot be set.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WrongSegment {
    pub(crate) segment: String,
    /// Problem of the segment, and its solution.
    pub(crate) problem: String,
}

impl WrongSegment {
    fn new(segment: &str, problem: impl Into<String>) -> Self {
        Self {
            segment: segment.to_owned(),
            problem: problem.into(),
        }
    }
}

/// Returns the segments of a path, such as `spec.items.0.name`, or as errors print it, `spec.items[0].name` and
/// `metadata.labels[example.com/name]`.
///
/// # Errors
///
/// A segment is empty, or a bracket is not closed.
pub(crate) fn segments(path: &str) -> Result<Vec<String>, WrongSegment> {
    let mut segments = Vec::new();
    let mut rest = path;
    loop {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let name = &rest[..end];
        if name.is_empty() {
            return Err(WrongSegment::new(
                name,
                "is empty; write the name of a field",
            ));
        }
        segments.push(name.to_owned());
        rest = &rest[end..];
        while let Some(index) = rest.strip_prefix('[') {
            let Some((index, after)) = index.split_once(']') else {
                return Err(WrongSegment::new(rest, "has no `]`"));
            };
            segments.push(index.to_owned());
            rest = after;
        }
        if rest.is_empty() {
            return Ok(segments);
        }
        rest = rest
            .strip_prefix('.')
            .ok_or_else(|| WrongSegment::new(rest, "must begin with `.` or `[`"))?;
    }
}

/// Sets a field of an object, and creates the objects and lists that contain it. A list gets one more item if the segment is
/// its length.
///
/// # Errors
///
/// A value on the path has no such field or item. The object may be changed then.
pub(crate) fn set(object: &mut Value, path: &[String], value: Value) -> Result<(), WrongSegment> {
    let mut at = object;
    for segment in path {
        if at.is_null() {
            *at = if segment == "0" { json!([]) } else { json!({}) };
        }
        at = match at {
            Value::Object(fields) => fields.entry(segment.as_str()).or_insert(Value::Null),
            Value::Array(items) => item(items, segment)?,
            other => {
                let problem = format!(
                    "is a field of the value {other}, which has no fields; set the whole value"
                );
                return Err(WrongSegment::new(segment, problem));
            }
        };
    }
    *at = value;
    Ok(())
}

/// Returns an item of a list: one that exists, or the next one.
fn item<'a>(items: &'a mut Vec<Value>, segment: &str) -> Result<&'a mut Value, WrongSegment> {
    let length = items.len();
    let index = segment.parse::<usize>().map_err(|_| {
        WrongSegment::new(
            segment,
            format!("is a field of a list; write the number of an item, from 0 to {length}"),
        )
    })?;
    if index > length {
        let problem = format!("is beyond the end of the list; the next item is {length}");
        return Err(WrongSegment::new(segment, problem));
    }
    if index == length {
        items.push(Value::Null);
    }
    Ok(&mut items[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(mut object: Value, path: &str, value: Value) -> Result<Value, String> {
        let text = |wrong: WrongSegment| format!("{}: {}", wrong.segment, wrong.problem);
        let path = segments(path).map_err(text)?;
        set(&mut object, &path, value).map_err(text)?;
        Ok(object)
    }

    #[test]
    fn a_path_is_read_in_both_forms() {
        for (path, expected) in [
            ("spec.items.0.name", &["spec", "items", "0", "name"][..]),
            ("spec.items[0].name", &["spec", "items", "0", "name"]),
            ("spec.a[0][1]", &["spec", "a", "0", "1"]),
            (
                "metadata.labels[example.com/a]",
                &["metadata", "labels", "example.com/a"],
            ),
        ] {
            assert_eq!(segments(path).expect("a path"), expected);
        }
        for path in ["", "spec.", "spec..a", ".spec", "spec.a[0", "spec.a[0]b"] {
            assert!(segments(path).is_err(), "{path}");
        }
    }

    #[test]
    fn a_field_of_an_item_is_set() {
        let object = || json!({"list": [{"x": 1, "y": 2}, {"x": 3}], "text": "a"});
        for (path, list) in [
            ("list.0.x", json!([{"x": 9, "y": 2}, {"x": 3}])),
            ("list[1].x", json!([{"x": 1, "y": 2}, {"x": 9}])),
            ("list.2.x", json!([{"x": 1, "y": 2}, {"x": 3}, {"x": 9}])),
            ("list.1", json!([{"x": 1, "y": 2}, 9])),
        ] {
            let expected = Ok(json!({"list": list, "text": "a"}));
            assert_eq!(changed(object(), path, json!(9)), expected, "{path}");
        }
        for (path, expected) in [
            (
                "list.3.x",
                "3: is beyond the end of the list; the next item is 2",
            ),
            (
                "list.x",
                "x: is a field of a list; write the number of an item, from 0 to 2",
            ),
            (
                "list.-1.x",
                "-1: is a field of a list; write the number of an item, from 0 to 2",
            ),
            (
                "text.size.x",
                "size: is a field of the value \"a\", which has no fields; set the whole value",
            ),
        ] {
            let error = changed(object(), path, json!(9));
            assert_eq!(error, Err(expected.to_owned()));
        }
    }

    #[test]
    fn what_contains_the_field_is_created() {
        let set = |path: &str| changed(json!({"none": null, "map": {}}), path, json!(9));
        let expected = json!({"none": {"x": 9}, "map": {}});
        assert_eq!(set("none.x"), Ok(expected));
        let expected = json!({"none": null, "map": {"0": 9}});
        assert_eq!(set("map.0"), Ok(expected));
        let expected = json!({"none": null, "map": {}, "new": [{"x": 9}]});
        assert_eq!(set("new.0.x"), Ok(expected));
    }
}
