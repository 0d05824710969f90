//! What an API server said once, about every keyword of the schema language and most of CEL.

use parity::Tally;
use parity::files::{read_cases, read_crd};
use shared_validation::{CustomResource, Judge};
use std::path::Path;

#[test]
fn the_engine_says_what_the_api_server_said() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cases/probe");
    let crd = read_crd(&folder.join("crd.json")).expect("the CRD");
    let resource = CustomResource::compile_served(&crd)
        .expect("it compiles")
        .remove(0);
    assert_eq!(resource.version(), "v1");
    let mut tally = Tally::default();
    for case in read_cases(&folder.join("apiserver-1.36.jsonl")).expect("the cases") {
        tally.count(&case, &resource).expect("an answered case");
    }
    assert_eq!(tally.cases, 712);
    assert!(tally.is_equal(), "{tally}");
}
