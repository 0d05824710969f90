//! Desired state of the objects of the sample.

use fastrand::Rng;
use sample_dns_record::{DnsRecord, config_map, desired};
use serde_json::{Value, json};

/// Returns a random valid spec. Objects with different names never want the same record.
pub fn spec(random: &mut Rng, object: &str) -> Value {
    let host = random.u32(..3);
    let types = [("alpha", "A"), ("bravo", "AAAA"), ("charlie", "CNAME")];
    let found = types.iter().find(|(name, _)| *name == object);
    let kind = found.map_or("TXT", |(_, kind)| *kind);
    let value = |random: &mut Rng| match kind {
        "A" => format!("192.0.2.{}", random.u8(..)),
        "AAAA" => format!("2001:db8::{}", random.u16(1..9_999)),
        "CNAME" => format!("target-{}.example.com", random.u16(..)),
        _ => format!("text {}", random.u16(..)),
    };
    let count = if kind == "CNAME" {
        1
    } else {
        random.usize(1..3)
    };
    let values: Vec<_> = (0..count).map(|_| value(random)).collect();
    let mut spec = json!({
        "name": format!("{object}-{host}.example.com"), "type": kind, "values": values,
    });
    if random.bool() {
        spec["ttl"] = random.u32(60..600).into();
    }
    spec
}

fn record(object: &Value) -> DnsRecord {
    serde_json::from_value(object.clone()).expect("the object is a DnsRecord")
}

/// Returns the record of an object.
pub fn resources(object: &Value) -> Vec<Value> {
    vec![serde_json::to_value(desired(&record(object))).expect("a record is JSON")]
}

/// Returns the `ConfigMap` of an object.
pub fn owned(object: &Value) -> Vec<Value> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    vec![config_map(name, &record(object).spec.name)]
}

/// Returns the status of an object.
pub fn status(object: &Value) -> Value {
    json!({"servedName": object["spec"]["name"]})
}
