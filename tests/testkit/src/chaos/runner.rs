//! Chaos test of an operator: its description by the author, and the trials of all seeds.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use lockstep_controller::Reconciler;
use lockstep_envtest::{Cluster, ClusterOptions, Components};
use lockstep_shared_validation::ValidatedResource;
use serde_json::{Map, Value};

use crate::chaos::expectations::{ActualState, BrokenInvariant, Expectations};
use crate::chaos::external_system::{ExternalSystem, NoExternalSystem};
use crate::chaos::failure::Failure;
use crate::chaos::process::Process;
use crate::chaos::trial::{Construct, Trial, TrialOptions};
use crate::install_crd;
use crate::namespace::TemporaryNamespace;

/// Number of seeds that run at the same time.
const CONCURRENT_SEEDS: usize = 4;

/// Number of trials of this process. Each gets a namespace of its own.
static TRIALS: AtomicU64 = AtomicU64::new(0);

type NewSystem = Box<dyn Fn() -> Arc<dyn ExternalSystem> + Send + Sync>;

/// Chaos test of one operator.
///
/// An author describes only what the operator has: without [`expected_resources`](Self::expected_resources), the external
/// system is to be empty, and without [`expected_owned`](Self::expected_owned) there are to be no owned objects.
pub struct Chaos<R> {
    operator: Box<Construct<R>>,
    new_system: NewSystem,
    expectations: Expectations,
    seeds: Range<u64>,
    concurrent_seeds: usize,
}

/// Result of a chaos test that found nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Number of seeds.
    pub seeds: u64,
    /// Number of faults of single calls.
    pub call_faults: u64,
    /// Number of reconciliations.
    pub reconciliations: u64,
    /// Duration of all seeds.
    pub duration: Duration,
}

/// Returns a chaos test of an operator. The function constructs its reconciler for a new process.
///
/// ```no_run
/// use lockstep_test::chaos::chaos;
/// use lockstep_controller::{
///     OwnedType, ReconcileError, SyncReconciler, SyncRequest, SyncResponse,
/// };
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use lockstep_shared_validation::ValidatedResource;
/// # use serde_json::{Value, json};
/// # #[derive(serde::Deserialize)]
/// # struct Note {}
/// # impl ValidatedResource for Note {
/// #     const GROUP: &'static str = "toys.example.com";
/// #     const VERSION: &'static str = "v1";
/// #     const KIND: &'static str = "Note";
/// #     fn crd() -> Value { json!({}) }
/// #     fn example() -> Value { json!({}) }
/// # }
///
/// fn config_map(object: &Value) -> Value {
///     json!({
///         "apiVersion": "v1", "kind": "ConfigMap",
///         "metadata": {"name": object["metadata"]["name"]},
///         "data": {"text": object["spec"]["text"]},
///     })
/// }
///
/// fn sync(request: &SyncRequest<'_, Note>) -> Result<SyncResponse, ReconcileError> {
///     SyncResponse::new().child(&config_map(request.raw_parent()))
/// }
///
/// # async fn test() {
/// chaos(|_process| SyncReconciler::new(sync).owns([OwnedType::namespaced::<ConfigMap>()]))
///     .specs(|random, _name| json!({"text": random.u32(..).to_string()}))
///     .expected_owned(|object| vec![config_map(object)])
///     .seeds(20)
///     .run()
///     .await;
/// # }
/// ```
pub fn chaos<R: Reconciler>(operator: impl Fn(&Process) -> R + Send + Sync + 'static) -> Chaos<R> {
    let example = R::Kind::example()["spec"].clone();
    Chaos {
        operator: Box::new(operator),
        new_system: Box::new(|| Arc::new(NoExternalSystem)),
        expectations: Expectations {
            spec: Box::new(move |_, _| example.clone()),
            external: Box::new(|_| Vec::new()),
            owned: Box::new(|_| Vec::new()),
            related: None,
            status: Box::new(|_| Value::Object(Map::new())),
            invariants: Vec::new(),
            secrets: Box::new(|_| Vec::new()),
        },
        seeds: 0..10,
        concurrent_seeds: CONCURRENT_SEEDS,
    }
}

impl<R: Reconciler> Chaos<R> {
    /// Sets the simulator of the external system. Each seed gets a new one.
    #[must_use]
    pub fn external<S: ExternalSystem>(
        mut self,
        new: impl Fn() -> S + Send + Sync + 'static,
    ) -> Self {
        self.new_system = Box::new(move || Arc::new(new()));
        self
    }

    /// Sets the random valid specs: of the object with this name. Objects with different names must not want the same
    /// resource. Default: the spec of the example of the kind, which never changes.
    #[must_use]
    pub fn specs(mut self, spec: impl Fn(&mut Rng, &str) -> Value + Send + Sync + 'static) -> Self {
        self.expectations.spec = Box::new(spec);
        self
    }

    /// Sets the resources that the external system has for an object. An actual resource may have further fields.
    #[must_use]
    pub fn expected_resources(
        mut self,
        of: impl Fn(&Value) -> Vec<Value> + Send + Sync + 'static,
    ) -> Self {
        self.expectations.external = Box::new(of);
        self
    }

    /// Sets the owned objects of an object. An actual owned object may have further fields.
    #[must_use]
    pub fn expected_owned(
        mut self,
        of: impl Fn(&Value) -> Vec<Value> + Send + Sync + 'static,
    ) -> Self {
        self.expectations.owned = Box::new(of);
        self
    }

    /// Sets the objects to which an object refers, such as a `ConfigMap` that its spec names. Other clients create, change,
    /// delete and restore them, before and after the object. The function gets the object with its name, namespace and spec.
    /// Each call returns the same names and kinds for it, and the contents may be random.
    ///
    /// If owned objects depend on the contents, compare them with an [`invariant`](Self::invariant):
    /// [`ActualState::related`] has the current ones.
    #[must_use]
    pub fn related(
        mut self,
        of: impl Fn(&mut Rng, &Value) -> Vec<Value> + Send + Sync + 'static,
    ) -> Self {
        self.expectations.related = Some(Box::new(of));
        self
    }

    /// Sets the status fields and conditions of an object in its desired state. `Ready` and `observedGeneration` are checked
    /// anyway.
    #[must_use]
    pub fn expected_status(mut self, of: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        self.expectations.status = Box::new(of);
        self
    }

    /// Adds a property of everything that exists, whenever the desired state is to be reached: for what neither the object
    /// alone determines nor the other properties cover, such as a password that is in a Secret and in the external system.
    #[must_use]
    pub fn invariant(
        mut self,
        holds: impl Fn(&ActualState) -> Result<(), BrokenInvariant> + Send + Sync + 'static,
    ) -> Self {
        self.expectations.invariants.push(Box::new(holds));
        self
    }

    /// Sets the values that belong to an object and must be in no status, Event or owned object other than a Secret.
    #[must_use]
    pub fn secrets(mut self, of: impl Fn(&Value) -> Vec<String> + Send + Sync + 'static) -> Self {
        self.expectations.secrets = Box::new(of);
        self
    }

    /// Sets the number of seeds.
    #[must_use]
    pub fn seeds(mut self, count: u64) -> Self {
        self.seeds = 0..count;
        self
    }

    /// Runs a single seed: that of a failure.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seeds = seed..seed + 1;
        self
    }

    /// Sets the number of seeds that run at the same time. Default: 4. Seeds of a cluster-scoped kind run one after the other.
    #[must_use]
    pub fn concurrent_seeds(mut self, count: usize) -> Self {
        self.concurrent_seeds = count;
        self
    }

    /// Runs all seeds on a control plane of their own, and returns what they did.
    ///
    /// It consists of etcd and kube-apiserver. The test deletes the owned objects of deleted owners, as the garbage collector
    /// does, and reports each owned Deployment, `StatefulSet`, `DaemonSet`, `ReplicaSet`, Job, Pod and `PersistentVolumeClaim` as
    /// rolled out, completed, ready or bound.
    ///
    /// # Panics
    ///
    /// If a property is broken. The message is that of the [`Failure`].
    pub async fn run(self) -> Summary {
        let ran = self.try_run().await;
        ran.unwrap_or_else(|failure| panic!("{failure}"))
    }

    /// Runs all seeds as [`run`](Self::run) does, and stops at the first failure.
    ///
    /// # Errors
    ///
    /// The first broken property.
    ///
    /// # Panics
    ///
    /// If the control plane does not start, or refuses the CRD, a generated spec or a related object, or if the rules of the kind
    /// do not compile.
    pub async fn try_run(self) -> Result<Summary, Box<Failure>> {
        // They need controllers that this control plane does not have: the first refuses Pods, and the second keeps deleted
        // PersistentVolumeClaims.
        const PLUGINS: &str =
            "--disable-admission-plugins=ServiceAccount,StorageObjectInUseProtection";
        let options = ClusterOptions {
            apiserver_args: vec![PLUGINS.to_owned()],
            components: Components::ApiServer,
            ..ClusterOptions::default()
        };
        let cluster = Cluster::start_from(&options).await;
        let cluster = cluster.expect("the control plane starts");
        install_crd(&cluster.client(), R::Kind::crd()).await;
        self.all_seeds(&cluster.client(), true).await
    }

    /// Runs all seeds on a control plane that has the CRD of the kind, and stops at the first failure. The status of owned
    /// workloads is the business of its controllers: to become ready, they also need a node.
    ///
    /// # Errors
    ///
    /// The first broken property.
    pub async fn check(self, client: &Client) -> Result<Summary, Box<Failure>> {
        self.all_seeds(client, false).await
    }

    async fn all_seeds(self, client: &Client, rolls_out: bool) -> Result<Summary, Box<Failure>> {
        let started = Instant::now();
        let is_namespaced = R::Kind::crd()["spec"]["scope"] != "Cluster";
        let concurrent = if is_namespaced {
            self.concurrent_seeds
        } else {
            1
        };
        let expectations = Arc::new(self.expectations);
        let (operator, new_system) = (&*self.operator, &self.new_system);
        let trials = stream::iter(self.seeds).map(|seed| {
            let expectations = Arc::clone(&expectations);
            Box::pin(async move {
                let namespace = if is_namespaced {
                    Some(new_namespace(client, seed).await)
                } else {
                    None
                };
                let options = TrialOptions {
                    seed,
                    client: client.clone(),
                    namespace,
                    operator,
                    system: new_system(),
                    expectations,
                    rolls_out,
                };
                trial(options).await
            })
        });
        let all: Vec<Summary> = trials.buffer_unordered(concurrent).try_collect().await?;
        let mut summary = Summary::default();
        for one in all {
            summary.seeds += 1;
            summary.call_faults += one.call_faults;
            summary.reconciliations += one.reconciliations;
        }
        summary.duration = started.elapsed();
        Ok(summary)
    }
}

async fn new_namespace(client: &Client, seed: u64) -> String {
    let number = TRIALS.fetch_add(1, Ordering::SeqCst);
    let name = format!("chaos-{seed}-{number}");
    TemporaryNamespace::make(client.clone(), &name).await;
    name
}

async fn trial<R: Reconciler>(options: TrialOptions<'_, R>) -> Result<Summary, Box<Failure>> {
    let mut trial = Trial::start(options).await;
    trial.run_disruptions().await?;
    trial.run_calm_phases().await?;
    trial.process.stop().await;
    Ok(Summary {
        call_faults: trial.state.faults.injected(),
        reconciliations: trial.state.reconciliations().values().sum(),
        ..Summary::default()
    })
}
