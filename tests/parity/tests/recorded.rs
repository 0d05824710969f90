//! Comparison with recorded responses of an API server.

use lockstep_shared_validation::{CrdValidator, Validator};
use parity::Summary;
use parity::files::{read_cases, read_crd};
use std::path::Path;

/// Compares the engine with the recorded responses in one folder.
fn compare(folder: &str, cases: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../cases")
        .join(folder);
    let crd = read_crd(&folder.join("crd.json")).expect("the CRD is readable");
    let resource = CrdValidator::compile_served(&crd)
        .expect("the CRD compiles")
        .remove(0);
    assert_eq!(resource.version(), "v1");
    let mut summary = Summary::default();
    for case in read_cases(&folder.join("apiserver-1.36.jsonl")).expect("the cases are readable") {
        summary
            .count(&case, &resource)
            .expect("the case has a response");
    }
    assert_eq!(summary.cases, cases);
    assert!(summary.is_equal(), "{summary}");
}

#[test]
fn recorded_responses_agree_on_every_keyword_and_most_of_cel() {
    compare("probe", 841);
}

/// Field names that occur at two levels, within alternatives and within lists without keys, so that ratcheting with the
/// wrong old value is detected.
#[test]
fn recorded_responses_agree_on_ratcheting_of_nested_objects() {
    compare("ratcheting", 223);
}

/// Comparisons of values of every type with their old values, including values that CEL cannot represent.
#[test]
fn recorded_responses_agree_on_equality() {
    compare("equality", 262);
}

/// Fields that the scale subresource refers to.
#[test]
fn recorded_responses_agree_on_the_scale_subresource() {
    compare("scale", 87);
}

/// Bounds outside the range of their own type and format.
#[test]
fn recorded_responses_agree_on_bounds() {
    compare("bounds", 204);
}
