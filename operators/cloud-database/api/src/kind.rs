//! CloudDatabase as a validated kind.

use lockstep_shared_validation::{
    CompileError, DynamicDefault, Rule, Ruleset, Settings, ValidatedResource, VersionMapping,
};
use serde_json::{Value, json};

use crate::engine::Engine;
use crate::references::CREATE;
use crate::spec::CloudDatabase;
use crate::versions::V1BETA1;
use crate::{crd, tenancy, validation};

const STORAGE: &str = "https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/CHAP_Storage.html";
const TAGS: &str = "https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_Tagging.html";
/// Reference of the rules on the Secret for applications.
const CONNECTION_SECRET: &str =
    "Lockstep's own: Secret that the controller creates for applications";
const SECRETS_MANAGER: &str =
    "https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/rds-secrets-manager.html";
const REPLICAS: &str = "https://docs.aws.amazon.com/AmazonRDS/latest/APIReference/API_CreateDBInstanceReadReplica.html";
const RESTORE: &str = "https://docs.aws.amazon.com/AmazonRDS/latest/APIReference/API_RestoreDBInstanceFromDBSnapshot.html";
const POINT_IN_TIME: &str = "https://docs.aws.amazon.com/AmazonRDS/latest/APIReference/API_RestoreDBInstanceToPointInTime.html";
const NAMES: &str = "https://kubernetes.io/docs/concepts/overview/working-with-objects/names/";

/// References for the rules in the CRD, by rule id or field path.
const SOURCES: &[(&str, &str)] = &[
    ("spec", CREATE),
    ("spec.connectionSecret", CONNECTION_SECRET),
    ("spec.connectionSecret.name", NAMES),
    ("spec.credentials.managed", SECRETS_MANAGER),
    ("spec.credentials.secretName", NAMES),
    (
        "spec.credentials.selectors",
        "https://kubernetes.io/docs/concepts/configuration/secret/",
    ),
    (
        "spec.deletionPolicy",
        "Lockstep's own: policy for the instance when the object is deleted",
    ),
    (
        "spec.adopt",
        "Lockstep's own: existing instance that the object takes over",
    ),
    (
        "spec.managementPolicy",
        "Lockstep's own: extent of the management of the instance",
    ),
    ("spec.replicaOf", REPLICAS),
    ("spec.restoreFrom", RESTORE),
    ("spec.restoreFrom.pointInTime", POINT_IN_TIME),
    (
        "adopt-immutable",
        "Lockstep's own: the instance of an object never changes",
    ),
    (
        "one-origin",
        "Lockstep's own: the origin of an instance is unambiguous",
    ),
    (
        "replica-final-snapshot",
        "https://docs.aws.amazon.com/AmazonRDS/latest/APIReference/API_DeleteDBInstance.html",
    ),
    ("replica-database-name", REPLICAS),
    ("replica-kms-key", REPLICAS),
    (
        "spec.encryption",
        "https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/Overview.Encryption.html",
    ),
    (
        "spec.network",
        "https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_VPC.WorkingWithRDSInstanceinaVPC.html",
    ),
    ("spec.storage", STORAGE),
    ("spec.tags", TAGS),
    (
        "credentials-exclusive",
        "Lockstep's own: one way to get the password",
    ),
    (
        "max-size-above-size",
        "https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_PIOPS.Autoscaling.html",
    ),
];

/// Compiles the ruleset of CloudDatabase.
pub fn ruleset() -> Result<Ruleset<CloudDatabase>, CompileError> {
    Ruleset::compile()
}

impl ValidatedResource for CloudDatabase {
    const GROUP: &'static str = "database.example.com";
    const VERSION: &'static str = "v1alpha1";
    const KIND: &'static str = "CloudDatabase";

    fn crd() -> Value {
        crd::crd()
    }

    fn example() -> Value {
        json!({"spec": {
            "engine": "postgres",
            "instanceClass": "db.t4g.micro",
            "storage": {"sizeGib": 20},
            "credentials": {"username": "app", "secretName": "example"},
        }})
    }

    fn rules() -> Vec<Rule<Self>> {
        validation::all()
    }

    fn settings() -> Option<Settings> {
        Some(tenancy::settings())
    }

    fn dynamic_defaults() -> Vec<DynamicDefault> {
        /// Returns the engine of an instance that is to be created empty. Any other one has a version and a port: a
        /// default would upgrade it to another major version, or restart it for another port.
        fn engine(object: &Value) -> Option<Engine> {
            const FROM_ELSEWHERE: [&str; 4] = [
                "/spec/adopt",
                "/spec/replicaOf",
                "/spec/restoreFrom",
                "/status/engineVersion",
            ];
            let is_set = |pointer: &&str| object.pointer(pointer).is_some_and(|it| !it.is_null());
            if FROM_ELSEWHERE.iter().any(is_set) {
                return None;
            }
            Engine::parse(object.pointer("/spec/engine")?.as_str()?)
        }
        vec![
            DynamicDefault {
                field: "spec.engineVersion",
                value: |object| Some(engine(object)?.default_version().into()),
            },
            DynamicDefault {
                field: "spec.port",
                value: |object| Some(engine(object)?.default_port().into()),
            },
        ]
    }

    fn additional_versions() -> Vec<VersionMapping> {
        vec![V1BETA1]
    }

    fn rule_references() -> Vec<(String, &'static str)> {
        let sources = SOURCES.iter();
        sources
            .map(|(name, page)| ((*name).to_owned(), *page))
            .collect()
    }

    fn transition_fields() -> &'static [&'static str] {
        &[
            "spec.adopt.identifier",
            "spec.credentials.username",
            "spec.deletionPolicy",
            "spec.deletionProtection",
            "spec.managementPolicy",
            "spec.replicaOf.identifier",
            "spec.replicaOf.name",
            "spec.restoreFrom.pointInTime.latest",
            "spec.restoreFrom.pointInTime.sourceInstance",
            "spec.restoreFrom.pointInTime.sourceResourceId",
            "spec.restoreFrom.pointInTime.time",
            "spec.restoreFrom.snapshot",
            "spec.storage.sizeGib",
        ]
    }
}
