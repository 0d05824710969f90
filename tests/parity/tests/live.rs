//! Random objects, judged by the engine and by an API server.

use std::path::Path;

use parity::Tally;
use parity::files::read_crd;
use parity::live::{self, Extent};
use shared_validation::{CrdValidator, Validator};

/// Compares on the CRD in a file below the repository's root.
async fn compare(file: &str, seed: u64) {
    println!("seed {seed}; LOCKSTEP_SEED=N makes other objects");
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(file);
    let crd = read_crd(&path).expect("the CRD");
    let resource = CrdValidator::compile_served(&crd)
        .expect("it compiles")
        .remove(0);
    let extent = Extent {
        objects: 1500,
        changes: 500,
        seed,
    };
    let cases = live::ask(&crd, resource.version(), extent, &resource).await;
    let mut tally = Tally::default();
    for case in cases.expect("answers") {
        tally.count(&case, &resource).expect("an answered case");
    }
    assert!(
        (1..tally.cases).contains(&tally.refused),
        "{} refused",
        tally.refused
    );
    assert!(tally.is_equal(), "{tally}");
    println!("{} cases", tally.cases);
}

/// Everything that the schema language has, and most of CEL.
#[tokio::test(flavor = "multi_thread")]
async fn on_random_objects_of_a_crd_with_every_keyword() {
    compare("tests/cases/probe/crd.json", parity::seed()).await;
}

/// The kind that people use.
#[tokio::test(flavor = "multi_thread")]
async fn on_random_databases() {
    compare("manifests/crd-clouddatabases.yaml", parity::seed()).await;
}
