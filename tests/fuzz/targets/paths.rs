//! Field paths and errors can be printed for any text, always in the same way, and a path is within its ancestors.

#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use lockstep_shared_validation::{FieldError, FieldPath, aggregate};
use serde_json::Value;

#[derive(Arbitrary, Debug)]
enum Step<'a> {
    Child(&'a str),
    Index(usize),
    Key(&'a str),
}

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    root: &'a str,
    steps: Vec<Step<'a>>,
    text: &'a str,
    float: f64,
    integer: i64,
    unsigned: u64,
    detail: &'a str,
    supported: Vec<String>,
}

fuzz_target!(|input: Input<'_>| {
    let mut path = FieldPath::new(input.root);
    let mut ancestors = vec![path.clone()];
    for step in &input.steps {
        path = match step {
            Step::Child(name) => path.child(name),
            Step::Index(index) => path.index(*index),
            Step::Key(key) => path.key(key),
        };
        for ancestor in &ancestors {
            assert!(
                path.is_descendant_of(ancestor.as_str()),
                "{path:?} is not within {ancestor:?}"
            );
        }
        assert_eq!(FieldPath::new(path.as_str()), path);
        ancestors.push(path.clone());
    }
    assert!(path.is_descendant_of(path.as_str()));
    errors_print(&path, &input);
});

fn errors_print(path: &FieldPath, input: &Input<'_>) {
    let at = || path.clone();
    let values = [
        Value::Null,
        input.text.into(),
        input.float.into(),
        input.integer.into(),
        input.unsigned.into(),
        vec![input.text].into(),
        [(input.text, input.float)].into_iter().collect(),
    ];
    let mut errors = vec![
        FieldError::invalid_hidden(at(), input.detail),
        FieldError::required(at(), input.detail),
        FieldError::forbidden(at(), input.detail),
        FieldError::too_long(at(), input.unsigned),
        FieldError::too_short(at(), input.detail),
        FieldError::too_few(at(), input.steps.len(), input.detail),
        FieldError::too_many(at(), input.steps.len(), input.unsigned),
        FieldError::internal(at(), input.detail),
    ];
    for value in values {
        // A printed value must not break a line of a log. A string is quoted without any ASCII control character. In
        // lists and objects, JSON does not escape DEL and the characters above it, here as in Go.
        let shown = FieldError::not_found(FieldPath::root(), value.clone()).to_string();
        let breaks = |c: char| c.is_ascii_control() && (c < ' ' || value.is_string());
        assert!(!shown.contains(breaks), "{shown:?}");
        errors.extend([
            FieldError::not_found(at(), value.clone()),
            FieldError::duplicate(at(), value.clone()),
            FieldError::type_invalid(at(), value.clone(), input.detail),
            FieldError::not_supported(at(), value.clone(), &input.supported),
            FieldError::invalid(at(), value, input.detail),
        ]);
    }
    for error in &errors {
        let printed = error.to_string();
        assert_eq!(printed, format!("{path}: {}", error.body()));
        assert_eq!(printed, error.clone().to_string());
    }
    let once = aggregate(&errors, false);
    assert_eq!(once, aggregate(errors.iter().chain(&errors), false));
}
