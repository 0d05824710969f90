//! Test environment: a cluster with Lockstep installed.

// Other test programs include this file, too: the path is the same in each.
#[path = "env/waits.rs"]
mod waits;

use std::path::PathBuf;
use std::process::Command;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_rds::config::Credentials;
use aws_sdk_rds::types::DbInstance;
use aws_smithy_http_client::Builder;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use kube::{Client, Config};
use lockstep_envtest::{
    Cluster, ClusterOptions, Components, Installation, Moto, Options, aws_environment, eventually,
};
use rds_simulator::Simulator;
use serde_json::{Value, json};

use crate::proxy::Proxy;

/// Namespace of the test objects.
pub const NAMESPACE: &str = "default";

/// Secret that the spec of every test database names.
pub const SECRET: &str = "credentials";

pub struct TestEnv {
    pub installation: Installation,
    pub rds: aws_sdk_rds::Client,
    pub cluster: Cluster,
    aws: Aws,
}

/// Simulation of AWS.
pub enum Aws {
    /// Simulates several services. Instances of RDS have no states and hardly any constraints.
    Moto(Moto),
    /// Simulates RDS with its states, constraints and errors.
    Simulator(Simulator),
}

impl Aws {
    fn endpoint(&self) -> String {
        match self {
            Self::Moto(moto) => moto.endpoint(),
            Self::Simulator(simulator) => simulator.endpoint(),
        }
    }

    /// Returns the access key of the test, whose calls the simulator distinguishes from those of the operator.
    fn access_key(&self) -> &'static str {
        match self {
            Self::Moto(_) => "testing",
            Self::Simulator(_) => Simulator::CONSOLE_ACCESS_KEY,
        }
    }
}

impl From<Moto> for Aws {
    fn from(moto: Moto) -> Self {
        Self::Moto(moto)
    }
}

impl From<Simulator> for Aws {
    fn from(simulator: Simulator) -> Self {
        Self::Simulator(simulator)
    }
}

/// Settings in which the environment of a test differs from the default.
#[derive(Default)]
pub struct EnvOptions {
    /// URL of a proxy in front of AWS.
    pub aws_endpoint: Option<String>,
    /// Additional environment variables of the controller, such as the endpoint of another service.
    pub controller_env: Vec<(String, String)>,
    /// URL of a proxy in front of the API server, for the controller.
    pub controller_server: Option<String>,
    /// Additional arguments of the controller.
    pub controller_args: Vec<String>,
    /// Kinds to install instead of the default ones.
    pub kinds: Option<&'static str>,
    /// Folder with manifests instead of those of the repository.
    pub manifests: Option<PathBuf>,
    /// Additional arguments of `lockstep manifests`.
    pub manifest_args: &'static [&'static str],
    /// If true, the cluster has the components for workloads, which it otherwise has only for other kinds than the
    /// default ones. `CloudDatabase` creates nothing but Secrets in the cluster, and each start of the components takes seconds.
    pub workloads: bool,
}

impl EnvOptions {
    async fn start_cluster(&self) -> Cluster {
        let components = if self.workloads || self.kinds.is_some() {
            Components::All
        } else {
            Components::ApiServer
        };
        let options = ClusterOptions {
            components,
            ..ClusterOptions::default()
        };
        Cluster::start_from(&options).await.expect("a cluster")
    }
}

impl TestEnv {
    /// Starts a cluster with Lockstep installed and running, on the simulator of RDS.
    pub async fn start() -> Self {
        Self::start_with(EnvOptions::default()).await
    }

    pub async fn start_with(options: EnvOptions) -> Self {
        let (env, _) = Self::start_on_simulator_with(options).await;
        env
    }

    /// Starts the same environment in a cluster that also has the controllers of namespaces and workloads.
    pub async fn start_with_workloads() -> Self {
        Self::start_with(EnvOptions {
            workloads: true,
            ..EnvOptions::default()
        })
        .await
    }

    /// Starts the same environment with moto, which needs more CPU time: each description of an instance takes it
    /// milliseconds.
    pub async fn start_on_moto() -> Self {
        Self::start_on_moto_with(EnvOptions::default()).await
    }

    pub async fn start_on_moto_with(options: EnvOptions) -> Self {
        let cluster = options.start_cluster().await;
        let moto = Moto::start().await.expect("moto");
        Self::install(cluster, moto, options).await
    }

    /// Starts the same environment with moto, and a proxy that records every call to AWS.
    pub async fn start_behind_proxy() -> (Self, Proxy) {
        let cluster = EnvOptions::default().start_cluster().await;
        let moto = Moto::start().await.expect("moto");
        let proxy = Proxy::before_aws(&moto).await;
        let options = EnvOptions {
            aws_endpoint: Some(proxy.url()),
            ..EnvOptions::default()
        };
        (Box::pin(Self::install(cluster, moto, options)).await, proxy)
    }

    /// Starts the same environment, and returns the simulator.
    pub async fn start_on_simulator() -> (Self, Simulator) {
        Self::start_on_simulator_with(EnvOptions::default()).await
    }

    pub async fn start_on_simulator_with(options: EnvOptions) -> (Self, Simulator) {
        let simulator = Simulator::start().await.expect("a simulator");
        let all_features = [
            "--adopt=*",
            "--restore-snapshot=*",
            "--restore-instance=*",
            "--replicate=*",
            "--managed-passwords",
            "--monitoring-role=*",
            "--kms-key=*",
        ];
        simulator.set_policy(Simulator::ACCESS_KEY, &iam_policy(&all_features));
        let cluster = options.start_cluster().await;
        let env = Self::install(cluster, simulator.clone(), options);
        (Box::pin(env).await, simulator)
    }

    /// Returns the moto server of an environment that has started with it.
    pub fn moto(&self) -> &Moto {
        match &self.aws {
            Aws::Moto(moto) => moto,
            Aws::Simulator(_) => panic!("the environment has no moto server"),
        }
    }

    /// Returns the environment variables that lead a process to the simulated AWS.
    pub fn aws_environment(&self) -> Vec<(String, String)> {
        aws_environment(&self.aws.endpoint())
    }

    /// Returns true if the database exists in the API server.
    pub async fn has_database(&self, name: &str) -> bool {
        let found = self.databases().get_opt(name).await;
        found.expect("a response").is_some()
    }

    /// Installs Lockstep in a running cluster.
    pub async fn install(cluster: Cluster, aws: impl Into<Aws>, options: EnvOptions) -> Self {
        let aws = aws.into();
        let quick = [
            "--rds-poll-interval=200ms",
            "--rds-resync-period=600ms",
            "--rds-not-found-grace-period=200ms",
            "--rds-qps=1000",
        ];
        // Tests of other subjects have no calls of it in the journal.
        let refresh = "--rds-catalogue-refresh-interval";
        let has_refresh = options
            .controller_args
            .iter()
            .any(|it| it.starts_with(refresh));
        let no_refresh = (!has_refresh).then(|| format!("{refresh}=0s"));
        let start_options = Options {
            program: env!("CARGO_BIN_EXE_lockstep").into(),
            controller_env: {
                let endpoint = options.aws_endpoint.unwrap_or_else(|| aws.endpoint());
                let mut environment = aws_environment(&endpoint);
                environment.extend(options.controller_env);
                environment
            },
            controller_args: quick
                .map(String::from)
                .into_iter()
                .chain(no_refresh)
                .chain(options.controller_args)
                .collect(),
            controller_server: options.controller_server,
        };
        let manifests = match (options.manifests, options.kinds) {
            (Some(manifests), _) => manifests,
            (None, Some(kinds)) => write_manifests(&cluster, kinds, options.manifest_args),
            (None, None) => root().join("manifests/config"),
        };
        let mut installation = Installation::apply(&cluster, &manifests, start_options)
            .await
            .expect("manifests");
        installation
            .start(&cluster)
            .await
            .expect("the webhook and the controller start");
        Installation::allow_secrets(&cluster, NAMESPACE)
            .await
            .expect("a RoleBinding");
        if options.kinds.is_some_and(|kinds| kinds.contains("Vector")) {
            allow_workloads(&cluster, NAMESPACE);
        }
        let rds = rds_as(aws.access_key(), &aws.endpoint(), Simulator::REGION).await;
        let env = Self {
            installation,
            rds,
            cluster,
            aws,
        };
        env.make_secret(
            SECRET,
            &json!({"username": "app", "password": "correct-horse"}),
        )
        .await;
        env
    }

    /// Sets a policy with which a namespace can have thousands of databases.
    pub fn raise_quota(&self) {
        let quota = json!({
            "instances": 100_000, "storageGib": 100_000_000, "provisionedIops": 1_000_000_000,
        });
        let section = json!({"cloudDatabase": {"default": {"quota": quota}}});
        let policy = json!({"settings": section}).to_string();
        let set = self.installation.set_policy(&policy);
        set.expect("a policy");
    }

    pub fn databases(&self) -> Api<DynamicObject> {
        self.objects(&database("any"))
    }

    /// API client for the kind of the given object.
    pub fn objects(&self, like: &Value) -> Api<DynamicObject> {
        let resource = resource_of(like);
        if is_in_no_namespace(like) {
            return Api::all_with(self.cluster.client(), &resource);
        }
        let namespace = like["metadata"]["namespace"].as_str().unwrap_or(NAMESPACE);
        Api::namespaced_with(self.cluster.client(), namespace, &resource)
    }

    pub async fn make_secret(&self, name: &str, data: &Value) {
        let secret = json!({"metadata": {"name": name}, "stringData": data});
        let secrets: Api<k8s_openapi::api::core::v1::Secret> =
            Api::namespaced(self.cluster.client(), NAMESPACE);
        let secret = serde_json::from_value(secret).expect("a Secret");
        secrets
            .create(&PostParams::default(), &secret)
            .await
            .expect("the Secret is created");
    }

    /// Runs `kubectl apply` on an object. Returns its standard output, or its standard error if it fails.
    pub fn kubectl_apply(&self, object: &Value) -> Result<String, String> {
        let path = self.cluster.directory().join(format!(
            "apply-{}.json",
            object["metadata"]["name"].as_str().unwrap_or("x")
        ));
        std::fs::write(&path, object.to_string()).expect("a file");
        self.kubectl(&["apply", "-f", &path.to_string_lossy()])
    }

    pub fn kubectl(&self, args: &[&str]) -> Result<String, String> {
        let output = self
            .cluster
            .kubectl()
            .args(args)
            .output()
            .expect("kubectl runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            Ok(text(&output.stdout))
        } else {
            Err(text(&output.stderr))
        }
    }

    /// Metrics that a process serves.
    pub async fn metrics(&self, url: &str) -> String {
        let client = Client::try_from(Config::new(url.parse().expect("a URL"))).expect("a client");
        let request = http::Request::get("/metrics")
            .body(Vec::new())
            .expect("a request");
        client.request_text(request).await.expect("metrics")
    }

    /// Removes the schema from the CRD, so that the API server stores any object.
    pub async fn empty_crd(&self) {
        let mut probe = database("probe");
        probe["spec"]["port"] = json!("no number");
        self.empty_crd_of("clouddatabases.database.example.com", &probe)
            .await;
    }

    /// Removes the schema from a CRD and waits until the API server admits `probe`, which violates the schema.
    pub async fn empty_crd_of(&self, name: &str, probe: &Value) {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let patch = json!([{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": schema}]);
        self.kubectl(&[
            "patch",
            "crd",
            name,
            "--type=json",
            "--patch",
            &patch.to_string(),
        ])
        .expect("the CRD is patched");
        let objects = self.objects(probe);
        let mut probe: DynamicObject = serde_json::from_value(probe.clone()).expect("an object");
        probe.metadata.name = Some("probe".to_owned());
        let params = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        eventually("the removal of the schema", async || {
            objects.create(&params, &probe).await.ok()
        })
        .await
        .unwrap_or_else(|error| self.fail(&error.to_string()));
    }

    /// Instances in RDS.
    pub async fn instances(&self) -> Vec<DbInstance> {
        let pages = self.rds.describe_db_instances().into_paginator();
        let instances = pages.items().send().collect::<Result<Vec<_>, _>>();
        instances.await.expect("RDS answers")
    }

    /// Fails the test, and prints the output of the processes.
    pub fn fail(&self, why: &str) -> ! {
        panic!("{why}\n{}", self.installation.output())
    }
}

/// The kinds of Vector, with their plurals.
pub const VECTOR: [(&str, &str); 5] = [
    ("VectorPipeline", "vectorpipelines"),
    ("ClusterVectorPipeline", "clustervectorpipelines"),
    ("Vector", "vectors"),
    ("VectorAggregator", "vectoraggregators"),
    ("ClusterVectorAggregator", "clustervectoraggregators"),
];

/// API resource of an object's kind; `CloudDatabase` if the kind is not one of the others.
pub fn resource_of(object: &Value) -> ApiResource {
    let vector = "observability.kaasops.io";
    let (group, kind, plural) = match object["kind"].as_str() {
        Some("Echo") => ("demo.example.com", "Echo", "echoes"),
        Some(kind) if kind.contains("Vector") => {
            let (_, plural) = VECTOR
                .into_iter()
                .find(|(known, _)| *known == kind)
                .expect("a kind");
            (vector, kind, plural)
        }
        _ => ("database.example.com", "CloudDatabase", "clouddatabases"),
    };
    let gvk = GroupVersionKind::gvk(group, "v1alpha1", kind);
    ApiResource::from_gvk_with_plural(&gvk, plural)
}

/// Returns true if the kind of the object is cluster-scoped.
pub fn is_in_no_namespace(object: &Value) -> bool {
    let kind = object["kind"].as_str();
    kind.is_some_and(|kind| kind.starts_with("Cluster"))
}

/// Allows workloads in a namespace that collect data of other namespaces, as an administrator of the cluster does it.
pub fn allow_workloads(cluster: &Cluster, namespace: &str) {
    let mark = "lockstep.dev/vector-workloads=allowed";
    let annotated = cluster.run_kubectl(&["annotate", "--overwrite", "namespace", namespace, mark]);
    annotated.expect("an annotation");
}

/// Writes the manifests for kinds other than the default ones.
fn write_manifests(cluster: &Cluster, kinds: &str, more: &[&str]) -> PathBuf {
    let folder = cluster.directory().join("manifests");
    let written = Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .arg("manifests")
        .arg(format!("--kinds={kinds}"))
        .args(more)
        .arg(&folder)
        .output()
        .expect("the program runs");
    assert!(
        written.status.success(),
        "{}",
        String::from_utf8_lossy(&written.stderr)
    );
    folder
}

/// Field of the validating webhook in the cluster's configuration.
pub fn validating_webhook(cluster: &Cluster, field: &str) -> String {
    let kind = "validatingwebhookconfiguration";
    let path = format!("jsonpath={{.webhooks[0].{field}}}");
    let read = cluster.run_kubectl(&["get", kind, "lockstep", "-o", &path]);
    read.expect("the configuration")
}

/// Condition of an object.
pub fn condition(object: &DynamicObject, type_: &str) -> Option<Condition> {
    let conditions = object.data.pointer("/status/conditions")?.as_array()?;
    let found = conditions
        .iter()
        .find(|condition| condition["type"] == type_)?;
    serde_json::from_value(found.clone()).ok()
}

/// A valid database.
pub fn database(name: &str) -> Value {
    json!({
        "apiVersion": "database.example.com/v1alpha1",
        "kind": "CloudDatabase",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "engine": "postgres",
            "engineVersion": "16.9",
            "instanceClass": "db.t4g.micro",
            "storage": {"sizeGib": 100},
            "credentials": {"username": "app", "secretName": SECRET},
            "deletionPolicy": "Delete",
        },
    })
}

/// Valid database about which no rule warns: its instance is deleted after a final snapshot.
pub fn database_without_warning(name: &str) -> Value {
    let mut object = database(name);
    object["spec"]["deletionPolicy"] = json!("Snapshot");
    object
}

/// Returns the permissions that users are to give to a controller that may use these resources of others.
pub fn iam_policy(options: &[&str]) -> Value {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_lockstep"));
    let output = command.arg("iam-policy").args(options).output();
    let output = output.expect("lockstep runs");
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Root folder of the repository.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Runs `lockstep check` on a file and returns the validation result as JSON.
pub fn check(arguments: &[&str], file: &std::path::Path) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(["check", "--output", "json"])
        .args(arguments)
        .arg(file)
        .output()
        .expect("`lockstep check` runs");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "{error}: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

/// RDS client for a region.
pub async fn rds(endpoint: &str, region: &'static str) -> aws_sdk_rds::Client {
    rds_as("testing", endpoint, region).await
}

/// SQS client for a region.
pub async fn sqs(endpoint: &str, region: &'static str) -> aws_sdk_sqs::Client {
    aws_sdk_sqs::Client::new(&aws("testing", endpoint, region).await)
}

pub async fn rds_as(access_key: &str, endpoint: &str, region: &'static str) -> aws_sdk_rds::Client {
    aws_sdk_rds::Client::new(&aws(access_key, endpoint, region).await)
}

async fn aws(access_key: &str, endpoint: &str, region: &'static str) -> SdkConfig {
    let config = aws_config::defaults(BehaviorVersion::latest())
        .http_client(Builder::new().build_http())
        .region(Region::new(region))
        .credentials_provider(Credentials::new(access_key, "testing", None, None, "tests"))
        .endpoint_url(endpoint);
    config.load().await
}
