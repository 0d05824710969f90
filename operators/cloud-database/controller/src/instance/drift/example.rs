//! Spec that sets everything, and the changes that it demands, for tests.

use aws_sdk_rds::types::{DbInstance, Endpoint};
use lockstep_cloud_database_api::{ApplyChanges, CloudDatabaseSpec};
use serde_json::{Value, json};

use crate::instance::drift;
use crate::instance::modification::Modification;
use crate::instance::record::Record;

/// Returns a spec with a value for each setting. It allows no upgrade to another major version.
pub(crate) fn everything() -> Value {
    json!({
        "engine": "postgres",
        "engineVersion": "17.4",
        "instanceClass": "db.m5.large",
        "credentials": {"username": "app", "managed": {"kmsKey": "alias/passwords"}},
        "autoMinorVersionUpgrade": false,
        "engineLifecycleSupport": "open-source-rds-extended-support",
        "parameterGroup": "tuned",
        "optionGroup": "audited",
        "caCertificate": "rds-ca-rsa4096-g1",
        "iamAuthentication": true,
        "dedicatedLogVolume": true,
        "multiAz": true,
        "maintenanceWindow": "sun:05:00-sun:06:00",
        "port": 5433,
        "deletionProtection": true,
        "storage": {"type": "gp3", "sizeGib": 500, "maxSizeGib": 600, "iops": 14000, "throughputMibps": 700},
        "backup": {"retentionDays": 3, "window": "03:00-04:00"},
        "network": {"networkType": "DUAL", "customerOwnedIp": true, "securityGroups": ["sg-1"]},
        "monitoring": {
            "enhanced": {"intervalSeconds": 60, "roleArn": "arn:aws:iam::123456789012:role/m"},
            "performanceInsights": {"enabled": true, "retentionDays": 465, "kmsKey": "alias/insights"},
            "databaseInsights": "Advanced",
            "logExports": ["postgresql"],
        },
    })
}

/// Returns the changes of an instance that has nothing of a spec, which is allowed to upgrade it.
pub(crate) fn changes(spec: &Value, is_public: bool) -> Modification {
    let mut spec = spec.clone();
    let version = spec["engineVersion"].as_str().expect("a version");
    let major = version.split('.').next();
    spec["allowMajorVersionUpgrade"] = json!(major);
    let spec: CloudDatabaseSpec = serde_json::from_value(spec).expect("a spec");
    let instance = DbInstance::builder()
        .engine_version("16.4")
        .storage_type("gp2")
        .allocated_storage(100)
        .endpoint(Endpoint::builder().port(5_432).build())
        .auto_minor_version_upgrade(true)
        .copy_tags_to_snapshot(false)
        .network_type("IPV4")
        .customer_owned_ip_enabled(false)
        .publicly_accessible(is_public)
        .build();
    let enforced = drift::enforced_at_creation();
    let record = Record::default();
    drift::between(
        &spec,
        ApplyChanges::Immediately,
        &instance,
        &enforced,
        &record,
    )
}
