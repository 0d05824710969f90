//! Objects in a map instead of an API server, and their reconciliations.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use aws_sdk_rds::types::Tag;
use http::{Request, Response};
use k8s_openapi::ByteString;
use k8s_openapi::jiff::Timestamp;
use k8s_openapi::jiff::tz::TimeZone;
use kube::Client;
use kube::client::Body;
use lockstep_cloud_database_api::CloudDatabase;
use lockstep_controller::{
    Children, FinalizeOutcome, FinalizeRequest, Leadership, ReconcileError, ReconcileOutput,
    Reconciler, RelatedObjects, SuspendedRequest, SyncRequest,
};
use lockstep_shared_validation::{Policy, ValidatorRegistry};
use rds_simulator::Simulator;
use serde_json::{Value, json};

use crate::aws::access::Access;
use crate::aws::access_pool::AccessPool;
use crate::aws::metrics::{AwsRequestLabels, AwsRequests};
use crate::aws::rate_limits::RateLimits;
use crate::aws::rds_clients::RdsClients;
use crate::aws::rds_events::changed_instances::Owner;
use crate::aws::recent::tests::config_at;
use crate::instance::instance_reconciler::{InstanceReconciler, RdsConfig, Shared};
use crate::reconciler::CloudDatabaseReconciler;

/// Longer than any state of an instance, in simulated time.
const LONG: Duration = Duration::from_hours(1);

/// Stored objects, by path.
type Stored = Arc<Mutex<BTreeMap<String, Value>>>;

/// Reconciler with the objects in the namespace `shop`.
pub(super) struct Environment {
    pub(super) rds: Simulator,
    pub(super) reconciler: CloudDatabaseReconciler,
    stored: Stored,
    requests: AwsRequests,
    /// Policy of the installation.
    policy: Policy,
}

/// Returns a policy with a quota for all namespaces.
fn policy(quota: &Value) -> Policy {
    static VALIDATORS: LazyLock<ValidatorRegistry> = LazyLock::new(|| {
        let ruleset = lockstep_cloud_database_api::ruleset().expect("valid rules");
        ValidatorRegistry::default().register(Arc::new(ruleset))
    });
    let section = json!({"cloudDatabase": {"default": {"quota": quota}}});
    let policy = Policy::read(&json!({"settings": section}), &VALIDATORS);
    policy.expect("a valid policy")
}

/// Returns the time until it is Monday. Otherwise, the maintenance windows on Sundays open while a test advances the time, if it runs
/// on a Saturday.
fn until_monday(now: Timestamp) -> Duration {
    let day = now
        .to_zoned(TimeZone::UTC)
        .weekday()
        .to_monday_zero_offset();
    Duration::from_hours(24 * u64::from(7 - day.unsigned_abs()))
}

impl Environment {
    /// Starts a simulator whose time does not pass by itself.
    pub(super) async fn start() -> Self {
        Self::start_in_cluster(None).await
    }

    /// The same for a controller with a name of its cluster.
    pub(super) async fn start_in_cluster(name: Option<&str>) -> Self {
        let rds = Simulator::start().await.expect("a simulator");
        rds.advance(until_monday(rds.now()));
        Self::start_on(rds, name).await
    }

    /// Starts a reconciler of another cluster, with objects of its own, in the same account and region.
    pub(super) async fn in_another_cluster(&self, name: &str) -> Self {
        Self::start_on(self.rds.clone(), Some(name)).await
    }

    async fn start_on(rds: Simulator, name: Option<&str>) -> Self {
        rds.set_speed(0.0);
        rds.set_quotas(|quotas| {
            quotas.instances = 1_000;
            quotas.storage = i64::MAX;
        });
        let stored = Stored::default();
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "s", "namespace": "shop", "uid": "s", "resourceVersion": "1"},
            "data": {"password": "Y29ycmVjdC1ob3JzZQ=="},
        });
        put(&stored, secret_path("s"), secret);
        let config = RdsConfig {
            not_found_grace_period: Duration::ZERO,
            ..RdsConfig::default()
        };
        let api = api_server(stored.clone());
        let requests = AwsRequests::default();
        let clients = clients_of(&rds.endpoint(), name, requests.clone()).await;
        let clients = clients.with_allowed_regions(vec!["us-east-1".to_owned()]);
        let reconciler = CloudDatabaseReconciler::new(api, clients, config, Default::default());
        let reconciler = reconciler.without_namespaces();
        Self {
            rds,
            reconciler,
            stored,
            requests,
            policy: policy(&json!({
                "instances": 10_000, "storageGib": 10_000_000, "provisionedIops": 10_000_000,
            })),
        }
    }

    /// Sets the quota of all namespaces.
    pub(super) fn set_quota(&mut self, quota: &Value) {
        self.policy = policy(quota);
    }

    /// Directs the calls to RDS to a port without a server.
    pub(super) async fn disconnect(&mut self) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        drop(listener);
        let endpoint = format!("http://{address}");
        let clients = clients_of(&endpoint, None, self.requests.clone()).await;
        let mut client = clients.default_client().await;
        client.copy_account(&self.instances().rds);
        let created =
            InstanceReconciler::new(self.reconciler.shared.clone(), Access::default(), client);
        self.reconciler.reconcilers = AccessPool::new();
        let (user, access) = (Owner::default(), Access::default());
        let reconcilers = &self.reconciler.reconcilers;
        reconcilers.add(&user, access, Arc::new(created));
    }

    /// Returns the reconciler of the objects, of which one was reconciled before.
    pub(super) fn instances(&self) -> Arc<InstanceReconciler> {
        let (user, access) = (Owner::default(), Access::default());
        let reconcilers = &self.reconciler.reconcilers;
        reconcilers.get(&user, &access).expect("a reconciliation")
    }

    /// Changes the settings, and forgets what was known of instances.
    pub(super) fn set(&mut self, edit: impl FnOnce(&mut Shared)) {
        edit(&mut self.reconciler.shared);
        self.reconciler.reconcilers = AccessPool::new();
    }

    /// Returns the number of requests for an operation that ended with a code.
    pub(super) fn requests(&self, operation: &str, code: &str) -> u64 {
        let labels = AwsRequestLabels::of_rds(operation, code);
        self.requests.get_or_create(&labels).get()
    }

    /// Stores an object with fields of its own, whose UID is its name.
    pub(super) fn store(&self, name: &str, fields: &Value) {
        let mut object = json!({
            "apiVersion": "database.example.com/v1alpha1", "kind": "CloudDatabase",
            "metadata": {"name": name, "namespace": "shop", "uid": name, "resourceVersion": "1"},
            "spec": {
                "engine": "postgres", "engineVersion": "16", "instanceClass": "db.t4g.micro",
                "storage": {"sizeGib": 20}, "credentials": {"username": "app", "secretName": "s"},
            },
            // The runtime writes it before the finalizer.
            "status": {"completeFor": name},
        });
        for (field, value) in fields.as_object().into_iter().flatten() {
            object["spec"][field] = value.clone();
        }
        self.lock().insert(path(name), object);
    }

    /// Stores a Namespace with the annotation that allows others to use its data.
    pub(super) fn share(&self, namespace: &str, with: &str) {
        self.annotate_namespace(
            namespace,
            &json!({"database.example.com/shared-with": with}),
        );
    }

    /// Stores the Namespace of the objects with the annotation that allows them to use sources without an owner or of another cluster.
    pub(super) fn allow_sources(&self, sources: &str) {
        self.annotate_namespace(
            "shop",
            &json!({"database.example.com/allowed-sources": sources}),
        );
    }

    /// Stores a Namespace with annotations.
    pub(super) fn annotate_namespace(&self, namespace: &str, annotations: &Value) {
        let namespace_object = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": namespace, "resourceVersion": "1", "annotations": annotations},
        });
        let path = format!("/api/v1/namespaces/{namespace}");
        self.lock().insert(path, namespace_object);
    }

    /// Takes a snapshot of an instance, with a tag of its own, and waits until it is available.
    pub(super) async fn take_snapshot(&self, id: &str, snapshot: &str) {
        let client = aws_sdk_rds::Client::new(&config_at(&self.rds.endpoint()).await);
        let call = client.create_db_snapshot().db_instance_identifier(id);
        let tag = Tag::builder().key("reason").value("migration").build();
        let call = call.db_snapshot_identifier(snapshot).tags(tag);
        let taken = call.send().await;
        taken.expect("a snapshot");
        self.rds.advance(LONG);
    }

    /// Changes an object.
    pub(super) fn edit(&self, name: &str, change: impl FnOnce(&mut Value)) {
        change(self.lock().get_mut(&path(name)).expect("the object"));
    }

    /// Returns an object.
    pub(super) fn object(&self, name: &str) -> Value {
        self.lock()[&path(name)].clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Value>> {
        self.stored.lock().expect("a lock")
    }

    /// Reconciles an object once, and stores the status fields of the result.
    pub(super) async fn reconcile(&self, name: &str) -> ReconcileOutput {
        let raw = self.object(name);
        let object: CloudDatabase = serde_json::from_value(raw.clone()).expect("a database");
        let request = SyncRequest::of(&object, &raw);
        let identity = self.reconciler.status_identity(&request).await;
        self.merge(name, identity.expect("an identity"));
        self.reconcile_identified(name).await
    }

    /// The same, without the first step of the runtime, which compares the identity with the one that is recorded.
    pub(super) async fn reconcile_identified(&self, name: &str) -> ReconcileOutput {
        self.reconcile_as(name, false).await
    }

    /// The same, as a user has requested it.
    pub(super) async fn reconcile_requested(&self, name: &str) -> ReconcileOutput {
        self.reconcile_as(name, true).await
    }

    async fn reconcile_as(&self, name: &str, is_requested: bool) -> ReconcileOutput {
        let raw = self.object(name);
        let object: CloudDatabase = serde_json::from_value(raw.clone()).expect("a database");
        let plain = SyncRequest::of(&object, &raw).with_policy(&self.policy);
        let request = if is_requested {
            plain.requested_by_user()
        } else {
            plain
        };
        let output = self.reconciler.reconcile(&request).await;
        let output = output.unwrap_or_else(|error| ReconcileOutput {
            error: Some(error),
            ..ReconcileOutput::default()
        });
        self.merge(name, output.status.clone());
        if output.error.is_none() {
            for child in &output.children {
                self.apply(name, child);
            }
        }
        output
    }

    /// Stores a Secret as the runtime does, which owns it.
    fn apply(&self, owner: &str, child: &Value) {
        let name = child["metadata"]["name"].as_str().expect("a name");
        let Some(texts) = child["stringData"].as_object() else {
            return;
        };
        let texts = texts.iter();
        let data: serde_json::Map<_, _> = texts
            .map(|(key, text)| {
                let bytes = text.as_str().expect("a text").as_bytes().to_vec();
                (key.clone(), json!(ByteString(bytes)))
            })
            .collect();
        let path = secret_path(name);
        let mut stored = self.lock();
        if stored
            .get(&path)
            .is_some_and(|it| it["data"] == json!(data))
        {
            return;
        }
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "data": data,
            "metadata": {
                "name": name, "namespace": "shop", "uid": name,
                "resourceVersion": (stored.len() + 1).to_string(),
                "annotations": child["metadata"]["annotations"],
                "ownerReferences": [{
                    "apiVersion": "database.example.com/v1alpha1", "kind": "CloudDatabase",
                    "name": owner, "uid": owner, "controller": true,
                }],
            },
        });
        stored.insert(path, secret);
    }

    /// Changes the password in the Secret of an author. The number distinguishes the versions of the Secret.
    pub(super) fn set_password(&self, password: &str, version: u32) {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {
                "name": "s", "namespace": "shop", "uid": "s",
                "resourceVersion": version.to_string(),
            },
            "data": {"password": ByteString(password.as_bytes().to_vec())},
        });
        put(&self.stored, secret_path("s"), secret);
    }

    /// Removes a Secret.
    pub(super) fn remove_secret(&self, name: &str) {
        self.lock().remove(&secret_path(name));
    }

    /// Returns a value of a Secret, if it exists.
    pub(super) fn secret(&self, name: &str, key: &str) -> Option<String> {
        let stored = self.lock();
        let value = stored.get(&secret_path(name))?["data"][key].clone();
        let bytes: ByteString = serde_json::from_value(value).ok()?;
        String::from_utf8(bytes.0).ok()
    }

    /// Reconciles an object, and once more if a change that can interrupt clients was only recorded, as the runtime does at
    /// once.
    pub(super) async fn reconcile_recorded(&self, name: &str) -> ReconcileOutput {
        let output = self.reconcile(name).await;
        let mut conditions = output.conditions.iter();
        if conditions.any(|condition| condition.message.contains("is requested next")) {
            return self.reconcile(name).await;
        }
        output
    }

    /// Reconciles an object a number of times, with some time in between.
    pub(super) async fn reconcile_repeatedly(&self, name: &str) -> ReconcileOutput {
        for _ in 0..8 {
            self.reconcile(name).await;
            self.rds.advance(LONG);
        }
        self.reconcile(name).await
    }

    /// Reconciles an object until its instance exists and is available.
    pub(super) async fn create(&self, name: &str, fields: &Value) -> String {
        self.store(name, fields);
        let mut last = None;
        for _ in 0..20 {
            let output = self.reconcile(name).await;
            self.rds.advance(LONG);
            let is_ready = output.readiness.as_ref().is_some_and(|it| it.ready);
            if is_ready && output.conditions[0].is_true {
                return format!("cdb-{name}");
            }
            last = Some(output);
        }
        panic!("{name} is not ready: {last:#?}");
    }

    /// Observes the instance of an invalid object, and stores the status fields of the result.
    pub(super) async fn observe_suspended(&self, name: &str) -> Option<ReconcileOutput> {
        let object = self.object(name);
        let request = SuspendedRequest {
            object: &object,
            last_validated: None,
            related: RelatedObjects::default(),
        };
        let output = self.reconciler.observe_suspended(&request).await?;
        self.merge(name, output.status.clone());
        Some(output)
    }

    /// Finalizes an object once, and stores the status fields of the result.
    pub(super) async fn finalize(&self, name: &str) -> Option<ReconcileOutput> {
        match self.finalization(name).await {
            FinalizeOutcome::Waiting(output) => Some(output),
            _ => None,
        }
    }

    /// The same, with the outcome.
    pub(super) async fn finalization(&self, name: &str) -> FinalizeOutcome {
        self.edit(name, |object| {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-02T03:04:05Z");
        });
        let object = self.object(name);
        let request = FinalizeRequest {
            object: &object,
            last_validated: None,
            is_valid: true,
            children: Children::default(),
            related: RelatedObjects::default(),
        };
        let outcome = Reconciler::finalize(&self.reconciler, &request).await;
        let outcome = outcome.expect("an outcome");
        if let FinalizeOutcome::Waiting(output) = &outcome {
            self.merge(name, output.status.clone());
        }
        outcome
    }

    fn merge(&self, name: &str, fields: serde_json::Map<String, Value>) {
        self.edit(name, |object| {
            for (field, value) in fields {
                object["status"][&field] = value;
            }
            // As a merge patch, which removes what is null.
            if let Some(status) = object["status"].as_object_mut() {
                status.retain(|_, value| !value.is_null());
            }
        });
    }

    /// Returns the parameters of the calls of an operation since the last question.
    pub(super) fn calls(&self, operation: &str) -> Vec<Value> {
        let calls = self.rds.calls(operation).into_iter();
        let calls = calls.map(|it| it.parameters).collect();
        self.rds.clear_journal();
        calls
    }
}

async fn clients_of(
    endpoint: &str,
    cluster_name: Option<&str>,
    requests: AwsRequests,
) -> RdsClients {
    let config = config_at(endpoint).await;
    let limits = RateLimits::unlimited();
    let cluster_name = cluster_name.map(str::to_owned);
    RdsClients::of(config, Leadership::always(), limits, cluster_name, requests)
}

fn put(stored: &Stored, path: String, object: Value) {
    stored.lock().expect("a lock").insert(path, object);
}

fn secret_path(name: &str) -> String {
    format!("/api/v1/namespaces/shop/secrets/{name}")
}

fn path(name: &str) -> String {
    format!("/apis/database.example.com/v1alpha1/namespaces/shop/clouddatabases/{name}")
}

fn api_server(stored: Stored) -> Client {
    let server = tower::service_fn(move |request: Request<Body>| {
        let found = {
            let stored = stored.lock().expect("a lock");
            let path = request.uri().path();
            let found = stored.get(path).cloned();
            found.or_else(|| {
                path.ends_with("/clouddatabases")
                    .then(|| list(&stored, path))
            })
        };
        let missing = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "message": "",
            "reason": "NotFound",
        });
        let (code, body) = found.map_or((404, missing), |it| (200, it));
        let body = Body::from(body.to_string().into_bytes());
        let response = Response::builder().status(code).body(body);
        async { Ok::<_, std::io::Error>(response.expect("an answer")) }
    });
    Client::new(server, "shop")
}

/// Returns the objects below a path.
fn list(stored: &BTreeMap<String, Value>, path: &str) -> Value {
    let items = stored.iter().filter(|(name, _)| name.starts_with(path));
    let items: Vec<_> = items.map(|(_, object)| object).collect();
    json!({
        "apiVersion": "database.example.com/v1alpha1", "kind": "CloudDatabaseList", "metadata": {},
        "items": items,
    })
}

/// Kind, reason and message of an error, without the variants that wrap it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) is_stalled: bool,
    pub(super) reason: &'static str,
    pub(super) message: String,
    /// Time after which the call is repeated, if it is set.
    pub(super) again_after: Option<Duration>,
    pub(super) is_inconclusive: bool,
}

impl Told {
    /// Returns the error of a result, which must have one.
    pub(super) fn of(output: &ReconcileOutput) -> Self {
        let error = output.error.as_ref();
        Self::by(error.unwrap_or_else(|| panic!("an error is expected: {output:?}")))
    }

    fn by(error: &ReconcileError) -> Self {
        match error {
            ReconcileError::RequeueAfter { after, error } => {
                let inner = Self::by(error);
                Self {
                    again_after: inner.again_after.or(Some(*after)),
                    ..inner
                }
            }
            ReconcileError::Inconclusive(error) => Self {
                is_inconclusive: true,
                ..Self::by(error)
            },
            error => Self {
                is_stalled: matches!(error, ReconcileError::Permanent { .. }),
                reason: error.reason(),
                message: error.to_string(),
                again_after: None,
                is_inconclusive: false,
            },
        }
    }
}
