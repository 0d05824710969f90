//! What an API server said once.

use parity::Tally;
use parity::files::{read_cases, read_crd};
use shared_validation::{CrdValidator, Validator};
use std::path::Path;

/// Compares on the CRD and the cases in one folder.
fn compare(folder: &str, cases: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../cases")
        .join(folder);
    let crd = read_crd(&folder.join("crd.json")).expect("the CRD");
    let resource = CrdValidator::compile_served(&crd)
        .expect("it compiles")
        .remove(0);
    assert_eq!(resource.version(), "v1");
    let mut tally = Tally::default();
    for case in read_cases(&folder.join("apiserver-1.36.jsonl")).expect("the cases") {
        tally.count(&case, &resource).expect("an answered case");
    }
    assert_eq!(tally.cases, cases);
    assert!(tally.is_equal(), "{tally}");
}

#[test]
fn on_every_keyword_and_most_of_cel() {
    compare("probe", 841);
}

/// Names that stand at two levels, within alternatives and within lists without keys, so that what
/// is ratcheted by the wrong counterpart shows.
#[test]
fn on_changes_of_nested_objects() {
    compare("ratcheting", 223);
}

/// Values of every kind compared with what they were, among them such as have no value in CEL.
#[test]
fn on_equality() {
    compare("equality", 262);
}

/// What the scale subresource stands on.
#[test]
fn on_scale() {
    compare("scale", 87);
}

/// Bounds that their own type and format cannot hold.
#[test]
fn on_bounds() {
    compare("bounds", 204);
}
