//! Values that the schema of the chart rejects. The cases are in `wrong-values.yaml`.

use serde_json::json;

use super::{documents, template};

#[test]
fn wrong_values_are_rejected_with_the_name_of_the_field() {
    let cases = documents(include_str!("wrong-values.yaml")).remove(0);
    for case in cases.as_array().expect("a list") {
        let (values, field) = (&case["values"], case["field"].as_str());
        let error = template("lockstep", values).expect_err(&values.to_string());
        assert!(
            error.contains("don't meet the specifications of the schema")
                && error.contains(field.expect("a field")),
            "{values}: {error}"
        );
    }
    let error = template("lockstep-crds", &json!({"crds": {"keep": true}}));
    let error = error.expect_err("the value belongs to the other chart");
    assert!(error.contains("crds"), "{error}");
}
