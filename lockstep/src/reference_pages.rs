//! Tests that keep the generated pages of the documentation current. With `LOCKSTEP_UPDATE=1`, they write the pages.

mod custom_resources;
mod flags;

use std::path::Path;
use std::{env, fs};

use lockstep_cloud_database_api::CloudDatabase;
use lockstep_shared_validation::ValidatedResource;
use lockstep_vector_api::{
    ClusterVectorAggregator, ClusterVectorPipeline, Vector, VectorAggregator, VectorPipeline,
};
use serde_json::Value;

/// Fails unless a page has the given content.
fn keep_current(name: &str, content: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs")
        .join(name);
    if env::var_os("LOCKSTEP_UPDATE").is_some() {
        fs::write(path, content).expect("the page is written");
        return;
    }
    let committed = fs::read_to_string(path).unwrap_or_default();
    let same = committed == content;
    assert!(
        same,
        "docs/{name} is not current: run `LOCKSTEP_UPDATE=1 cargo test -p lockstep --bin lockstep reference_pages`"
    );
}

#[test]
fn the_page_of_the_command_line_is_current() {
    keep_current("flags.md", &flags::page(&crate::program().command()));
}

#[test]
fn the_page_of_the_custom_resources_is_current() {
    let kinds = [
        kind::<CloudDatabase>(),
        kind::<VectorPipeline>(),
        kind::<ClusterVectorPipeline>(),
        kind::<Vector>(),
        kind::<VectorAggregator>(),
        kind::<ClusterVectorAggregator>(),
    ];
    keep_current("crds.md", &custom_resources::page(&kinds));
}

/// Returns the CRD of a kind with the sources of its fields.
fn kind<K: ValidatedResource>() -> (Value, Vec<(String, &'static str)>) {
    (K::crd(), K::rule_references())
}
