//! Reviews as an API server sends them.

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde_json::{Value, json};

use crate::admission_review::{ObjectType, review};
use crate::pipeline_bodies;

/// Review with a known response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Review {
    /// CREATE of a minimal object.
    Small,
    /// UPDATE of an object that was created by `kubectl apply`, with all fields that the API server adds: 5 KB.
    Typical,
    /// UPDATE of such an object with long annotations: 200 KB.
    Large,
    /// CREATE of an object that is denied with ten causes.
    Denied,
    /// CREATE of a Vector pipeline with three components.
    Pipeline,
    /// CREATE of a Vector pipeline with fifty components.
    LargePipeline,
}

const DATABASE: ObjectType = ObjectType {
    group: "database.example.com",
    kind: "CloudDatabase",
    resource: "clouddatabases",
};

impl Review {
    /// All reviews.
    pub const ALL: [Self; 6] = [
        Self::Small,
        Self::Typical,
        Self::Large,
        Self::Denied,
        Self::Pipeline,
        Self::LargePipeline,
    ];

    /// Returns the name by which results list the review.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Typical => "typical",
            Self::Large => "large",
            Self::Denied => "denied",
            Self::Pipeline => "3 components",
            Self::LargePipeline => "50 components",
        }
    }

    /// Returns the review as the API server sends it.
    pub fn body(self) -> Value {
        match self {
            Self::Small => review(DATABASE, "CREATE", &object(&json!({})), None),
            Self::Typical => change(0),
            Self::Large => change(96_000),
            Self::Denied => review(DATABASE, "CREATE", &broken(), None),
            Self::Pipeline => pipeline_bodies::typical(),
            Self::LargePipeline => pipeline_bodies::large(),
        }
    }

    /// Writes the review into a file of a folder, which has its name.
    pub fn write(self, directory: &Path) -> anyhow::Result<()> {
        let path = directory.join(format!("{}.json", self.name()));
        fs::write(&path, self.body().to_string()).with_context(|| path.display().to_string())
    }
}

fn object(more: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "database.example.com/v1alpha1",
        "kind": "CloudDatabase",
        "metadata": {
            "name": "orders",
            "namespace": "shop",
            "uid": "0d6a2f43-32a5-4f8e-9a0e-4e1f7a3d9b55",
            "generation": 3,
            "creationTimestamp": "2026-01-05T10:00:00Z",
        },
        "spec": {
            "engine": "postgres",
            "engineVersion": "16.9",
            "instanceClass": "db.r6g.large",
            "storage": {"type": "gp3", "sizeGib": 500, "maxSizeGib": 1000, "iops": 12000, "throughputMibps": 500},
            "databaseName": "orders",
            "credentials": {
                "username": "orders_owner",
                "secretName": "orders-database",
                "selectors": {"username": "username", "password": "password"},
            },
            "multiAz": true,
            "backup": {"retentionDays": 14, "window": "02:00-03:00", "copyTagsToSnapshot": true},
            "network": {"subnetGroup": "databases", "securityGroups": ["sg-0123456789abcdef0"], "publiclyAccessible": false},
            "encryption": {"enabled": true},
            "maintenanceWindow": "sun:04:00-sun:05:00",
            "port": 5432,
            "deletionProtection": true,
            "deletionPolicy": "Snapshot",
            "applyChanges": "Immediately",
            "managementPolicy": "Manage",
            "tags": {"team": "orders", "cost-center": "4711", "environment": "production"},
        },
    });
    if let (Some(fields), Some(more)) = (object.as_object_mut(), more.as_object()) {
        fields.extend(more.clone());
    }
    object
}

/// Returns an object with ten errors from all three layers.
fn broken() -> Value {
    let mut object = object(&json!({}));
    object["spec"]["storage"] =
        json!({"type": "io2", "sizeGib": 20, "maxSizeGib": 21, "throughputMibps": 1});
    object["spec"]["credentials"]["username"] = json!("user");
    object["spec"]["backup"]["window"] = json!("02:00-02:10");
    object["spec"]["maintenanceWindow"] = json!("sun:02:05-sun:02:15");
    object
}

/// Returns an UPDATE of one field, with `more` bytes of annotations in each of the two objects.
fn change(more: usize) -> Value {
    let applied = object(&json!({})).to_string();
    let metadata = |resource_version: &str| {
        let mut metadata = object(&json!({}))["metadata"].clone();
        metadata["resourceVersion"] = json!(resource_version);
        metadata["labels"] =
            json!({"app.kubernetes.io/name": "orders", "app.kubernetes.io/part-of": "shop"});
        metadata["annotations"] = json!({
            "kubectl.kubernetes.io/last-applied-configuration": applied,
            "example.com/notes": "x".repeat(more),
        });
        metadata["finalizers"] = json!(["database.example.com/finalizer"]);
        metadata["managedFields"] = managed_fields();
        metadata
    };
    let status = json!({
        "phase": "available",
        "observedGeneration": 3,
        "endpoint": {"host": "cdb-0d6a2f43.eu-central-1.rds.amazonaws.com", "port": 5432},
        "conditions": [condition("Ready", "Available"), condition("Valid", "AllRulesKept")],
        "lastValidated": {"generation": 3, "values": {
            "spec.credentials.username": "orders_owner",
            "spec.databaseName": "orders",
            "spec.deletionPolicy": "Snapshot",
            "spec.deletionProtection": true,
            "spec.engine": "postgres",
            "spec.encryption.enabled": true,
            "spec.engineVersion": "16.9",
            "spec.network.subnetGroup": "databases",
            "spec.port": 5432,
            "spec.storage.sizeGib": 500,
        }},
    });
    let old = object(&json!({"metadata": metadata("81231"), "status": status}));
    let mut new = object(&json!({"metadata": metadata("81231"), "status": status}));
    new["spec"]["storage"]["sizeGib"] = json!(600);
    review(DATABASE, "UPDATE", &new, Some(&old))
}

fn condition(type_: &str, reason: &str) -> Value {
    json!({
        "type": type_, "status": "True", "reason": reason, "message": "", "observedGeneration": 3,
        "lastTransitionTime": "2026-01-05T10:05:00Z",
    })
}

fn managed_fields() -> Value {
    let fields = [
        "engine",
        "instanceClass",
        "storage",
        "credentials",
        "backup",
        "multiAz",
        "port",
        "tags",
    ];
    let spec: serde_json::Map<_, _> = fields
        .iter()
        .map(|field| (format!("f:{field}"), json!({})))
        .collect();
    json!([
        {
            "manager": "kubectl-client-side-apply", "operation": "Update", "time": "2026-01-05T10:00:00Z",
            "apiVersion": "database.example.com/v1alpha1", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:annotations": {".": {}}}, "f:spec": spec},
        },
        {
            "manager": "lockstep", "operation": "Update", "subresource": "status", "time": "2026-01-05T10:05:00Z",
            "apiVersion": "database.example.com/v1alpha1", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:status": {"f:conditions": {}, "f:endpoint": {}, "f:phase": {}}},
        },
    ])
}
