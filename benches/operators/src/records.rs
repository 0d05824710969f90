//! Objects that the operators reconcile.

use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use lockstep_envtest::Cluster;
use serde_json::json;

/// Times to live of the records, before and after the edit.
pub(crate) const TTLS: [u32; 2] = [300, 600];

/// Returns true if an object is ready with this time to live.
pub(crate) fn is_ready(object: &DynamicObject, ttl: u32) -> bool {
    let status = &object.data["status"];
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    object.data["spec"]["ttl"] == ttl
        && status["observedGeneration"].as_i64() == object.metadata.generation
        && conditions.any(|one| one["type"] == "Ready" && one["status"] == "True")
}

fn resource() -> ApiResource {
    let gvk = GroupVersionKind::gvk("dns.example.com", "v1", "DnsRecord");
    ApiResource::from_gvk_with_plural(&gvk, "dnsrecords")
}

/// Returns the objects of a cluster.
pub(crate) fn records(cluster: &Cluster) -> Api<DynamicObject> {
    Api::namespaced_with(cluster.client(), "default", &resource())
}

/// Returns an object before the edit.
pub(crate) fn object(name: &str) -> DynamicObject {
    DynamicObject::new(name, &resource()).data(json!({"spec": {
        "name": format!("{name}.example.com"), "type": "A", "ttl": TTLS[0], "values": ["192.0.2.1"],
    }}))
}
