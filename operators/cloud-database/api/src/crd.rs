//! `CustomResourceDefinition` of CloudDatabase.

use kube::CustomResourceExt;
use lockstep_shared_validation::with_standard_fields;
use serde_json::Value;

use crate::spec::CloudDatabase;
use crate::versions::V1BETA1;

/// Returns the CRD.
pub(crate) fn crd() -> Value {
    let crd = serde_json::to_value(CloudDatabase::crd()).expect("a CRD is JSON");
    let mut crd = with_standard_fields(crd);
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] =
        "A managed relational database: an AWS RDS instance.".into();
    V1BETA1.add_to(&mut crd);
    crd
}
