//! Validation of random objects by the engine and by an API server.

use std::path::Path;

use lockstep_shared_validation::{CrdValidator, Validator};
use parity::Summary;
use parity::files::read_crd;
use parity::live::{self, Extent};

/// Returns true if the API server is older than the engine: `tests/parity/matrix` says so.
fn is_older() -> bool {
    std::env::var_os("LOCKSTEP_OLDER_APISERVER").is_some()
}

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
    let recorded = live::record_responses(&crd, resource.version(), extent).await;
    let recorded = recorded.expect("the API server responds");
    let mut summary = Summary::default();
    for case in recorded.cases {
        summary
            .count(&case, &recorded.validator)
            .expect("the case has a response");
    }
    assert!(
        (1..summary.cases).contains(&summary.rejected),
        "{} cases rejected: some must be rejected, and some accepted",
        summary.rejected
    );
    if is_older() {
        // The other differences are printed; docs/kubernetes-versions.md explains them.
        assert_eq!(summary.wrong_accepts, 0, "{summary}");
    } else {
        assert!(summary.is_equal(), "{summary}");
        assert_eq!(recorded.left_out, [""; 0]);
    }
    // The last line is the summary. The lines before are differences in the wording of errors.
    let summary = summary.to_string();
    let summary = summary.lines().last().unwrap_or_default();
    let left_out = recorded.left_out.len();
    println!("{file}: {summary}; {left_out} rules left out");
}

/// A CRD with what public CRDs have and generated ones lack: reserved words as fields, a list that preserves unknown fields, a
/// counted class of Unicode, and a keyword that the API server drops.
#[tokio::test(flavor = "multi_thread")]
async fn the_engine_agrees_with_the_api_server_on_constructs_of_public_crds() {
    compare("tests/cases/ecosystem/crd.json", parity::seed()).await;
}

/// A CRD with every schema keyword and most of CEL.
#[tokio::test(flavor = "multi_thread")]
async fn the_engine_agrees_with_the_api_server_on_random_objects_of_a_crd_with_every_keyword() {
    compare("tests/cases/probe/crd.json", parity::seed()).await;
}

/// The CRD of a shipped kind.
#[tokio::test(flavor = "multi_thread")]
async fn the_engine_agrees_with_the_api_server_on_random_databases() {
    compare("manifests/config/crds/clouddatabases.yaml", parity::seed()).await;
}
