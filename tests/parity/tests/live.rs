//! Validation of random objects by the engine and by an API server.

use std::path::Path;

use parity::Summary;
use parity::files::read_crd;
use parity::live::{self, Extent};
use shared_validation::{CrdValidator, Validator};

/// Compares both on random objects of the CRD in a file of the repository.
async fn compare(file: &str, seed: u64) {
    println!("seed {seed}; set LOCKSTEP_SEED=N for other objects");
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(file);
    let crd = read_crd(&path).expect("the CRD is readable");
    let resource = CrdValidator::compile_served(&crd)
        .expect("the CRD compiles")
        .remove(0);
    let extent = Extent {
        objects: 1500,
        changes: 500,
        seed,
    };
    let cases = live::ask(&crd, resource.version(), extent, &resource).await;
    let mut tally = Summary::default();
    for case in cases.expect("the API server responds") {
        tally
            .count(&case, &resource)
            .expect("the case has a response");
    }
    assert!(
        (1..tally.cases).contains(&tally.refused),
        "{} cases rejected: some must be rejected, and some accepted",
        tally.refused
    );
    assert!(tally.is_equal(), "{tally}");
    println!("{} cases compared", tally.cases);
}

/// A CRD with every schema keyword and most of CEL.
#[tokio::test(flavor = "multi_thread")]
async fn the_engine_agrees_with_the_api_server_on_random_objects_of_a_crd_with_every_keyword() {
    compare("tests/cases/probe/crd.json", parity::seed()).await;
}

/// The CRD of a shipped kind.
#[tokio::test(flavor = "multi_thread")]
async fn the_engine_agrees_with_the_api_server_on_random_databases() {
    compare("manifests/config/crd-clouddatabases.yaml", parity::seed()).await;
}
