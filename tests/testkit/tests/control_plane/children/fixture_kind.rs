//! Kinds that list the desired children in their spec.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service, ServiceAccount};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use lockstep_controller::{
    Metrics, OwnedType, ReconcileError, SyncHandler, SyncReconciler, SyncRequest, SyncResponse,
    UpdateStrategy,
};
use lockstep_envtest::Cluster;
use lockstep_shared_validation::ValidatedResource;
use lockstep_test::{
    Call, DeterminismCheck, FaultInjector, RunningController, apply, cluster_with, install_crd,
    objects, operator, toy_crd,
};
use prometheus_client::registry::Registry;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Namespaced kind.
#[derive(Deserialize)]
pub struct Family {
    spec: Spec,
}

/// Cluster-scoped kind.
#[derive(Deserialize)]
pub struct Clan {
    spec: Spec,
}

/// Namespaced kind without a status subresource.
#[derive(Deserialize)]
pub struct Crowd {
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    #[serde(default)]
    children: Vec<Value>,
    /// Error that the handler returns instead of children.
    error: Option<String>,
}

fn crd(kind: &str, plural: &str, scope: &str, subresources: &Value) -> Value {
    let spec = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let status = json!({"type": "object", "properties": {"state": {"type": "string"}}});
    let mut crd = toy_crd(
        kind,
        plural,
        scope,
        &json!({"spec": spec, "status": status}),
    );
    crd["spec"]["versions"][0]["subresources"] = subresources.clone();
    crd
}

macro_rules! kind {
    ($type:ident, $plural:literal, $scope:literal, $subresources:tt) => {
        impl ValidatedResource for $type {
            const GROUP: &'static str = "toys.example.com";
            const VERSION: &'static str = "v1";
            const KIND: &'static str = stringify!($type);

            fn crd() -> Value {
                crd(stringify!($type), $plural, $scope, &json!($subresources))
            }

            fn example() -> Value {
                json!({"spec": {}})
            }
        }

        impl Parent for $type {
            fn spec(&self) -> &Spec {
                &self.spec
            }
        }
    };
}

trait Parent: ValidatedResource {
    fn spec(&self) -> &Spec;
}

kind!(Family, "families", "Namespaced", {"status": {}});
kind!(Clan, "clans", "Cluster", {"status": {}});
kind!(Crowd, "crowds", "Namespaced", {});

/// Handler that reports its errors in the status.
struct ErrorReporter;

#[derive(Debug)]
struct Upset(String);

impl std::fmt::Display for Upset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "upset: {}", self.0)
    }
}

impl std::error::Error for Upset {}

impl From<Upset> for ReconcileError {
    fn from(error: Upset) -> Self {
        Self::Permanent {
            reason: "Upset",
            message: error.to_string(),
        }
    }
}

#[derive(Serialize)]
struct State {
    state: String,
}

impl SyncHandler<Clan> for ErrorReporter {
    fn sync(&self, request: &SyncRequest<'_, Clan>) -> Result<SyncResponse, ReconcileError> {
        let spec = &request.parent().spec;
        let error = spec.error.clone().map(Upset);
        let state = error
            .as_ref()
            .map_or("fine".to_owned(), ToString::to_string);
        let response = SyncResponse::new().status(&State { state })?;
        match error {
            Some(error) => Ok(response.failed(error.into())),
            None => spec.children.iter().try_fold(response, SyncResponse::child),
        }
    }
}

fn sync<K: Parent>(request: &SyncRequest<'_, K>) -> Result<SyncResponse, ReconcileError> {
    let spec = request.parent().spec();
    if let Some(message) = spec.error.clone() {
        let reason = "AsAsked";
        return Err(ReconcileError::Permanent { reason, message });
    }
    let mut children = spec.children.iter();
    children.try_fold(SyncResponse::new(), SyncResponse::child)
}

fn types() -> [OwnedType; 7] {
    [
        OwnedType::namespaced::<ConfigMap>(),
        OwnedType::namespaced::<Deployment>(),
        OwnedType::namespaced::<Job>().update_strategy(UpdateStrategy::Recreate),
        OwnedType::namespaced::<Service>().update_strategy(UpdateStrategy::OnDelete),
        OwnedType::namespaced::<Secret>().update_strategy(UpdateStrategy::CreateOnly),
        OwnedType::namespaced::<ServiceAccount>().with_finalizer(),
        OwnedType::cluster_scoped::<PriorityClass>(),
    ]
}

/// Cluster with the three kinds and their controllers.
pub struct Toys {
    pub calls: FaultInjector,
    controllers: Vec<RunningController>,
    client: Client,
    pub cluster: Cluster,
}

impl Toys {
    pub async fn start() -> Self {
        let mut toys = Self::start_without_controllers().await;
        toys.start_controllers().await;
        toys
    }

    pub async fn start_without_controllers() -> Self {
        Self::on(cluster_with::<Family>().await).await
    }

    /// Starts a cluster in which only controllers delete what an owner leaves.
    pub async fn start_without_garbage_collector() -> Self {
        let cluster = Cluster::start_without_workloads().await;
        let cluster = cluster.expect("the cluster starts");
        install_crd(&cluster.client(), Family::crd()).await;
        Self::on(cluster).await
    }

    async fn on(cluster: Cluster) -> Self {
        let client = cluster.client();
        install_crd(&client, Clan::crd()).await;
        install_crd(&client, Crowd::crd()).await;
        let calls = FaultInjector::default();
        Self {
            controllers: Vec::new(),
            calls,
            client,
            cluster,
        }
    }

    /// Starts all controllers, as a new process would.
    pub async fn start_controllers(&mut self) {
        for running in self.controllers.drain(..) {
            running.stop().await;
        }
        let client = self.calls.client(&self.cluster).await;
        let metrics = Metrics::register(&mut Registry::default());
        self.controllers = vec![
            run::<Family>(sync::<Family>, &client, &metrics),
            run::<Clan>(ErrorReporter, &client, &metrics),
            run::<Crowd>(sync::<Crowd>, &client, &metrics),
        ];
    }

    /// Starts a controller of Clans with other types of children.
    pub fn run_clans(
        client: &Client,
        metrics: &Metrics,
        types: impl IntoIterator<Item = OwnedType>,
    ) -> RunningController {
        let reconciler = SyncReconciler::new(ErrorReporter).owns(types);
        RunningController::start(operator(client.clone(), reconciler, metrics))
    }

    pub fn families(&self, namespace: &str) -> Api<DynamicObject> {
        objects::<Family>(self.client.clone(), Some(namespace))
    }

    pub fn crowds(&self) -> Api<DynamicObject> {
        objects::<Crowd>(self.client.clone(), Some("default"))
    }

    pub fn clans(&self) -> Api<DynamicObject> {
        objects::<Clan>(self.client.clone(), None)
    }

    /// Returns the API of a declared child type, in one namespace or, without one, at cluster scope.
    pub fn of(&self, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
        let declared = types();
        let mut types = declared.iter().map(OwnedType::api_resource);
        let resource = types
            .find(|resource| resource.kind == kind)
            .expect("the child type is declared");
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        }
    }

    /// Sets the desired children of an object in `default` and waits until the object is ready.
    pub async fn family(&self, name: &str, children: &[Value]) {
        self.apply("Family", name, &json!({"children": children}))
            .await;
        self.wait_for_condition(&self.families("default"), name, "Ready", "True")
            .await;
    }

    /// Creates or changes an object.
    pub async fn apply(&self, kind: &str, name: &str, spec: &Value) {
        let content = json!({"spec": spec});
        match kind {
            "Clan" => apply::<Clan>(&self.clans(), name, &content).await,
            "Crowd" => apply::<Crowd>(&self.crowds(), name, &content).await,
            _ => apply::<Family>(&self.families("default"), name, &content).await,
        }
    }

    /// Calls [`lockstep_test::wait_for_condition`].
    pub async fn wait_for_condition(
        &self,
        api: &Api<DynamicObject>,
        name: &str,
        type_: &str,
        status: &str,
    ) -> (String, String) {
        lockstep_test::wait_for_condition(api, name, type_, status).await
    }

    /// Calls [`lockstep_test::wait_until`].
    pub async fn wait_until(
        &self,
        api: &Api<DynamicObject>,
        name: &str,
        what: &str,
        is_so: impl Fn(Option<&DynamicObject>) -> bool,
    ) -> Option<DynamicObject> {
        lockstep_test::wait_until(api, name, what, is_so).await
    }

    /// Waits until the object no longer exists.
    pub async fn wait_until_deleted(&self, api: &Api<DynamicObject>, name: &str) {
        self.wait_until(api, name, "to be deleted", |found| found.is_none())
            .await;
    }

    /// Changes an object as another client.
    pub async fn change_as_other_client(
        &self,
        api: &Api<DynamicObject>,
        name: &str,
        patch: &Value,
    ) {
        let params = PatchParams {
            field_manager: Some("meddler".to_owned()),
            ..PatchParams::default()
        };
        let patched = api.patch(name, &params, &Patch::Merge(patch)).await;
        patched.expect("the API server stores the change");
    }

    /// Returns the writes of the controllers to children since the last call of this function.
    pub fn writes(&self) -> Vec<Call> {
        let writes = self.calls.take_writes().into_iter();
        let of_ours = |call: &Call| {
            ["families", "clans", "crowds"]
                .iter()
                .any(|ours| call.resource.starts_with(ours))
        };
        writes
            .filter(|call| !of_ours(call) && call.resource != "events")
            .collect()
    }
}

fn run<K: Parent>(
    handler: impl SyncHandler<K>,
    client: &Client,
    metrics: &Metrics,
) -> RunningController {
    let handler = SyncReconciler::<K, _>::new(DeterminismCheck(handler)).owns(types());
    RunningController::start(operator(client.clone(), handler, metrics))
}
