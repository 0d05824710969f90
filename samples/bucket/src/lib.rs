//! Sample operator: buckets of an object storage, which replicate to each other.

mod storage_api;

use std::time::Duration;

use async_trait::async_trait;
use kube::{Client, CustomResource, KubeSchema, ResourceExt};
use lockstep_controller::{
    FinalizeOutcome, FinalizeRequest, Leadership, OperatorCondition, ReconcileError,
    ReconcileOutput, Reconciler, Reference, SyncRequest, Watch, require_existing,
};
use lockstep_shared_validation::{
    Diagnostics, Rule, RuleContext, Severity, ValidatedResource, field, fields,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use crate::storage_api::{StorageApi, StoredBucket};

/// Interval at which changes that were made outside the cluster are looked for.
const RESYNC: Duration = Duration::from_mins(10);

/// Bucket of an object storage.
#[derive(CustomResource, KubeSchema, ValidatedResource, Clone, Debug, Deserialize, Serialize)]
#[kube(
    group = "storage.example.com",
    version = "v1",
    kind = "Bucket",
    namespaced
)]
#[kube(plural = "buckets", status = "BucketStatus")]
#[validated(example = example, rules = rules)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.bucketName == oldSelf.bucketName")
    .message("the name of a bucket cannot change [immutable-name]"))]
#[x_kube(validation = Rule::new("!has(self.replicateTo) || self.versioning")
    .message("replication needs versioning [replication-needs-versioning]"))]
pub struct BucketSpec {
    /// Name of the bucket.
    #[schemars(
        length(min = 3, max = 63),
        regex(pattern = "^[a-z0-9][a-z0-9-]*[a-z0-9]$")
    )]
    pub bucket_name: String,
    /// If true, earlier versions of the content are kept.
    #[serde(default)]
    pub versioning: bool,
    /// Name of the Bucket object in the same namespace to which the content is replicated, while it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicate_to: Option<String>,
}

/// State of the bucket.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BucketStatus {
    /// Name of the bucket that the content is replicated to.
    pub replicates_to: Option<String>,
}

fn example() -> Value {
    json!({"spec": {"bucketName": "backups", "versioning": true}})
}

fn rules() -> Vec<Rule<Bucket>> {
    vec![Rule {
        id: "replicates-to-itself",
        description: "A bucket must not replicate to itself.",
        severity: Severity::Error,
        reference: "https://docs.aws.amazon.com/AmazonS3/latest/userguide/replication.html",
        fields: fields!(Bucket, "spec.replicateTo"),
        validate: is_another,
    }]
}

fn is_another(context: &RuleContext<'_, Bucket>, diagnostics: &mut Diagnostics) {
    if let Some(target) = &context.object.spec.replicate_to
        && *target == context.object.name_any()
    {
        diagnostics.invalid(
            field!(Bucket, "spec.replicateTo"),
            target.clone(),
            "must be another bucket",
        );
    }
}

/// Operator of buckets.
pub struct Buckets {
    /// API of the object storage.
    pub api: StorageApi,
    /// Client for the API server.
    pub client: Client,
    /// Time until which this process is the leader.
    pub leadership: Leadership,
}

impl Buckets {
    /// Brings the bucket of an object to the desired state. Each call may be the last one of this process, so each is made
    /// only if its own property differs.
    async fn bring(
        &self,
        object: &Bucket,
        replication: Option<&str>,
    ) -> Result<(), ReconcileError> {
        let name = &object.spec.bucket_name;
        let owner = object.uid().unwrap_or_default();
        let stored = match self.api.get(name).await? {
            Some(stored) if stored.owner == owner => stored,
            Some(_) => {
                let message = format!(
                    "the bucket {name} belongs to another owner: delete it, or choose another name"
                );
                let error = ReconcileError::permanent("NameTaken", message);
                // Its owner may delete it there, which no watch reports.
                return Err(error.requeue_after(RESYNC));
            }
            None => {
                require_existing(&self.client, object).await?;
                self.leadership.require(self.api.timeout())?;
                self.api.create(name, &owner).await?;
                StoredBucket {
                    owner,
                    versioning: false,
                    replication: None,
                }
            }
        };
        let replicates = stored.replication.as_deref() == replication;
        // Replication ends before versioning, which it needs, and begins after it.
        if !replicates && replication.is_none() {
            self.leadership.require(self.api.timeout())?;
            self.api.set(name, "replication", &Value::Null).await?;
        }
        if stored.versioning != object.spec.versioning {
            self.leadership.require(self.api.timeout())?;
            self.api
                .set(name, "versioning", &object.spec.versioning.into())
                .await?;
        }
        if !replicates && let Some(target) = replication {
            self.leadership.require(self.api.timeout())?;
            self.api.set(name, "replication", &target.into()).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl Reconciler for Buckets {
    type Kind = Bucket;

    fn finalizer(&self) -> Option<&'static str> {
        Some("storage.example.com/bucket")
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::new::<Bucket>(|object| {
            let target = object["spec"]["replicateTo"].as_str();
            let reference = target.map(|target| Reference::Name(target.to_owned()));
            reference.into_iter().collect()
        })]
    }

    async fn reconcile(
        &self,
        request: &SyncRequest<'_, Bucket>,
    ) -> Result<ReconcileOutput, ReconcileError> {
        let object = request.parent();
        let target: Option<Bucket> = match &object.spec.replicate_to {
            Some(target) => request.related().get(target)?,
            None => None,
        };
        // A bucket can be deleted only when none replicates to it.
        let target = target.filter(|target| target.metadata.deletion_timestamp.is_none());
        let target = target.map(|target| target.spec.bucket_name);
        self.bring(object, target.as_deref()).await?;
        let is_missing = object.spec.replicate_to.is_some() && target.is_none();
        let status = json!({"replicatesTo": target});
        Ok(ReconcileOutput {
            status: status.as_object().cloned().unwrap_or_default(),
            conditions: vec![OperatorCondition {
                type_: "TargetFound",
                is_true: !is_missing,
                reason: if is_missing { "Missing" } else { "Found" },
                message: String::new(),
            }],
            requeue_after: RESYNC,
            ..ReconcileOutput::default()
        })
    }

    async fn finalize(
        &self,
        deleted: &FinalizeRequest<'_>,
    ) -> Result<FinalizeOutcome, ReconcileError> {
        let text = |pointer| {
            deleted
                .object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let name = text("/spec/bucketName");
        let stored = self.api.get(name).await?;
        if let Some(stored) = stored.filter(|stored| stored.owner == text("/metadata/uid")) {
            // Two buckets that replicate to each other would otherwise prevent each other's deletion.
            if stored.replication.is_some() {
                self.leadership.require(self.api.timeout())?;
                self.api.set(name, "replication", &Value::Null).await?;
            }
            self.leadership.require(self.api.timeout())?;
            self.api.delete(name).await?;
        }
        Ok(FinalizeOutcome::Done)
    }
}
