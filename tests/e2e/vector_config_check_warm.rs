//! A Pod that keeps running checks configurations, as long as it can. There is no kubelet: the test runs the program of
//! that Pod, with the Secret's files and a script in place of Vector, and sets the status of the Pod.

use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use flate2::read::GzDecoder;
use futures::StreamExt;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use lockstep_envtest::{Process, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::env::{TestEnv, root};
use crate::running_vector::{AGENT, IMAGE, logs, object, start_without_nodes};
use crate::vector_exact::vector_decides;

/// Name of the objects of the validator.
const VALIDATOR: &str = "logs-agent-validator";

/// Selector of its Pods.
const SELECTOR: &str = "--selector=app.kubernetes.io/component=AgentValidator";

/// Selector of the Pods that check one configuration each.
const CHECKS: &str = "app.kubernetes.io/component=ConfigCheck";

fn agents(check: &Value) -> Value {
    object("Vector", "logs", &json!({"agent": {"configCheck": check}}))
}

/// Program of the Pod that keeps running, and its files.
pub struct Validator {
    folder: TempDir,
    ip: Ipv4Addr,
    pub process: Option<Process>,
}

impl Validator {
    /// Prepares a script that counts its runs, rejects some configurations and has the others validated.
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["credentials", "work"] {
            fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        let script = format!(
            "#!/bin/sh\n\
            case \"$1\" in --version) echo 'vector 0.48.0 (x86_64)'; exit;; generate-schema) cat '{0}/schema.json'; exit;; esac\n\
            echo x >> '{0}/runs'\n\
            for last; do :; done\n\
            second=$(grep -oh '[a-z]*__[a-z]*__second' \"$last\"/*.json | head -n 1)\n\
            test -n \"$second\" && echo \"x Sink \\\"$second\\\": no such file\" && exit 78\n\
            grep -q hunter22 \"$last\"/*.json && echo 'x the key hunter22 is too short' && exit 78\n\
            exec '{1}' vector validate --start --config-dir \"$last\"\n",
            folder.path().display(),
            env!("CARGO_BIN_EXE_lockstep")
        );
        let program = folder.path().join("vector");
        fs::write(&program, script).expect("a script");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("executable");
        // Other tests may run on this machine, and the port is fixed.
        let [.., high, low] = std::process::id().to_be_bytes();
        Self {
            folder,
            ip: Ipv4Addr::new(127, 1 + high % 250, low, 1),
            process: None,
        }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// Number of times that the script has run.
    fn runs(&self) -> usize {
        let runs = fs::read_to_string(self.path("runs"));
        runs.unwrap_or_default().lines().count()
    }

    fn write_credentials(&self, files: &[(&str, &[u8])]) {
        for (name, content) in files {
            fs::write(self.path("credentials").join(name), content).expect("a file");
        }
    }

    /// Waits for the Secret of the workload's validator, and writes its values.
    async fn write_credentials_of(&self, env: &TestEnv) {
        for (name, value) in env.credentials().await {
            self.write_credentials(&[(&name, &value)]);
        }
    }

    /// Starts the program, and waits until it listens.
    async fn start(&mut self) {
        self.process = None;
        let address = SocketAddr::from((self.ip, 8443));
        let mut command = Command::new(env!("CARGO_BIN_EXE_lockstep"));
        command
            .args(["vector", "serve-validation"])
            .arg(format!("--bind-address={address}"))
            .arg(argument("credentials", &self.path("credentials")))
            .arg(argument("work-dir", &self.path("work")))
            .arg(argument("vector", &self.path("vector")));
        let process = Process::start("validator", &mut command, self.folder.path());
        self.process = Some(process.expect("it starts"));
        let listens = eventually("the validator", async || {
            TcpStream::connect(address).await.ok().map(drop)
        });
        listens.await.expect("it listens");
    }
}

fn argument(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

impl TestEnv {
    /// Returns the values of the validator's Secret.
    async fn credentials(&self) -> Vec<(String, Vec<u8>)> {
        let found = eventually("the Secret of the validator", async || {
            let secret = self.get(&format!("secret/{VALIDATOR}"));
            let data = secret["data"].as_object()?.clone();
            let values = data.into_iter().map(|(name, value)| {
                let value: ByteString = serde_json::from_value(value).expect("Base64");
                (name, value.0)
            });
            Some(values.collect::<Vec<_>>())
        });
        found
            .await
            .unwrap_or_else(|error| self.fail(&error.to_string()))
    }

    /// Sets the status of the validator's Pod as a kubelet does whose probe has found it ready.
    async fn validator_is_ready(&self, ip: Ipv4Addr) {
        let found = eventually("the Pod of the validator", async || {
            let pods = self
                .kubectl(&["get", "pods", SELECTOR, "--output=name"])
                .ok()?;
            let mut names = pods.lines();
            names.next().map(str::to_owned)
        });
        let pod = found
            .await
            .unwrap_or_else(|error| self.fail(&error.to_string()));
        let ready = json!([{"type": "Ready", "status": "True"}]);
        let status =
            json!({"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "conditions": ready});
        self.patch_pod_status(&pod, &status);
    }

    async fn validator_state(&self, is_so: impl Fn(&Value) -> bool) {
        let mut last = Value::Null;
        let reported = eventually("the state of the validator", async || {
            last = self.get("vector/logs")["status"]["validator"].clone();
            is_so(&last).then_some(())
        });
        reported
            .await
            .unwrap_or_else(|error| self.fail(&format!("{error}: {last}")));
    }

    /// Returns the names of the Pods for one check that were created after a resource version.
    async fn checks_since(&self, version: &str) -> Vec<String> {
        let pods: Api<Pod> = Api::namespaced(self.cluster.client(), "default");
        // The API server sends all earlier events first.
        let params = WatchParams::default().labels(CHECKS).timeout(1);
        let events = pods.watch(&params, version).await.expect("a watch");
        let created = events.filter_map(async |event| match event {
            Ok(WatchEvent::Added(pod)) => Some(pod.name_any()),
            _ => None,
        });
        created.collect().await
    }

    async fn pods_version(&self) -> String {
        let pods: Api<Pod> = Api::namespaced(self.cluster.client(), "default");
        let list = pods.list(&ListParams::default().limit(1)).await;
        list.expect("a list")
            .metadata
            .resource_version
            .expect("a version")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_keeps_running_checks_pipelines_as_long_as_it_can() {
    let image = format!("--vector-migration-image={IMAGE}");
    let mut env = start_without_nodes(&[&image]).await;
    let mut validator = Validator::new();
    let workload = agents(&json!({"mode": "Pod", "warm": true}));
    env.apply(&workload);
    let is_waiting = |state: &Value| state.as_str().is_some_and(|it| it.contains("Deployment"));
    env.validator_state(is_waiting).await;
    // Vector runs without it.
    env.condition_of(&env.objects(&workload), "logs", "Ready", "True")
        .await;
    let credentials = env.credentials().await;
    for (name, value) in &credentials {
        validator.write_credentials(&[(name, value)]);
    }
    validator.start().await;
    env.validator_is_ready(validator.ip).await;
    env.validator_state(|state| state == "Ready").await;

    let version = env.pods_version().await;
    pipelines_are_checked(&env).await;
    assert_eq!(env.checks_since(&version).await, [""; 0]);
    let runs = validator.runs();
    assert_eq!(runs, 3, "each configuration is checked once");

    vector_decides(&mut env, &mut validator).await;

    // Nothing listens. Pods do the checks.
    let runs = validator.runs();
    env.apply(&object("VectorPipeline", "app", &logs("third")));
    a_pod_checks(&env, "third").await;

    // After a restart of the controller, nothing is checked again. A server with another token is not the validator.
    validator.write_credentials(&[("token", b"another")]);
    validator.start().await;
    env.installation
        .restart_controller_with(&[])
        .expect("restarted");
    env.apply(&object("VectorPipeline", "app", &logs("fourth")));
    a_pod_checks(&env, "fourth").await;
    assert_eq!(validator.runs(), runs);

    another_certificate_is_not_trusted(&mut env, &mut validator, &credentials).await;
    assert_eq!(validator.runs(), runs);

    env.apply(&agents(&json!({"mode": "Pod"})));
    let gone = eventually("the deletion of the validator", async || {
        let kinds = ["deployment", "secret", "networkpolicy"];
        let mut left = kinds
            .iter()
            .map(|kind| env.get(&format!("{kind}/{VALIDATOR}")));
        left.all(|it| it.is_null()).then_some(())
    });
    gone.await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    env.validator_state(Value::is_null).await;
    a_catalogue_is_learned(&env, &mut validator).await;
}

/// The workload gets a validator until its image has printed the schema.
async fn a_catalogue_is_learned(env: &TestEnv, validator: &mut Validator) {
    validator.process = None;
    let packed = root().join("operators/vector/catalogue/vector-0.57/schema.json.gz");
    let mut schema = Vec::new();
    let read = GzDecoder::new(fs::File::open(packed).expect("the schema")).read_to_end(&mut schema);
    read.expect("gzip");
    fs::write(validator.path("schema.json"), schema).expect("a file");
    let policy = "settings: {vector: {catalogue: Learn}}\n";
    env.installation.set_policy(policy).expect("a policy");
    let image = json!({"image": "registry.example/vector:0.48.0"});
    env.apply(&object("Vector", "logs", &json!({"agent": image})));
    validator.write_credentials_of(env).await;
    validator.start().await;
    env.validator_is_ready(validator.ip).await;
    let learned = eventually("the learned catalogue", async || {
        let arguments = [
            "get",
            "configmap/lockstep-vector-catalogues",
            "--namespace=lockstep-system",
            "--output=json",
        ];
        let config_map: Value = serde_json::from_str(&env.kubectl(&arguments).ok()?).ok()?;
        let content = config_map["binaryData"]["0.48.json.gz"].clone();
        serde_json::from_value::<ByteString>(content).ok()
    });
    let learned = learned
        .await
        .unwrap_or_else(|error| env.fail(&format!("{error}\n{}", env.statuses())));
    env.validator_state(Value::is_null).await;
    let state = async |is_so: &dyn Fn(&Value) -> bool| {
        let mut last = Value::Null;
        let reported = eventually("the state of the catalogue", async || {
            last = env.get("vector/logs")["status"].clone();
            is_so(&last).then_some(())
        });
        reported
            .await
            .unwrap_or_else(|error| env.fail(&format!("{error}: {last:#}")));
    };
    state(&|status| {
        let state = status["catalogue"].as_str();
        state.is_some_and(|it| it.contains("is in the ConfigMap lockstep-vector-catalogues"))
            && status["warnings"].to_string().contains("[vector-version]")
    })
    .await;
    // As the kubelet does.
    let folder = env.installation.config_map_folder("vector-catalogues");
    fs::create_dir(&folder).expect("a folder");
    let unfinished = folder.join("unfinished");
    fs::write(&unfinished, learned.0).expect("a file");
    fs::rename(unfinished, folder.join("0.48.json.gz")).expect("a file");
    // Its programs are compiled by a newer VRL.
    state(&|status| {
        let warnings = status["warnings"].to_string();
        status["catalogue"].is_null() && warnings.contains("compiled here by VRL")
    })
    .await;
}

/// Changes pipelines in ways that Vector accepts and rejects.
async fn pipelines_are_checked(env: &TestEnv) {
    env.apply(&object("VectorPipeline", "app", &logs("first")));
    env.runs_sink("default__app__first").await;
    env.apply(&object("VectorPipeline", "app", &logs("second")));
    let message = "Vector rejects the configuration: x Sink \"second\": no such file";
    env.reports("app", Some(1), Some(message)).await;
    assert!(env.configuration(AGENT.0, AGENT.1)["sinks"]["default__app__first"].is_object());

    env.apply(
        &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "api-keys"},
        "stringData": {"key": "hunter22"}}),
    );
    let mut keyed = logs("out");
    keyed["secret"] = json!({"api": {"type": "kubernetes_secret", "name": "api-keys"}});
    keyed["sinks"]["out"] = json!({
        "type": "datadog_logs", "inputs": ["in"], "default_api_key": "SECRET[api.key]",
    });
    env.apply(&object("VectorPipeline", "keyed", &keyed));
    let message = "Vector rejects the configuration: x the key *** is too short";
    env.reports("keyed", None, Some(message)).await;
    env.kubectl(&["delete", "vectorpipeline/keyed"])
        .expect("deleted");
}

/// Waits for the Pod that checks the configuration with a sink, and ends it.
async fn a_pod_checks(env: &TestEnv, sink: &str) {
    let pod = env.check_pod("a Pod for the check").await;
    let id = format!("default__app__{sink}");
    assert!(env.configuration(&pod, AGENT.1)["sinks"][&id].is_object());
    env.end_pod(&pod, 0, "");
    env.runs_sink(&id).await;
    env.no_checks().await;
}

/// The controller trusts exactly the certificate in the Secret.
async fn another_certificate_is_not_trusted(
    env: &mut TestEnv,
    validator: &mut Validator,
    credentials: &[(String, Vec<u8>)],
) {
    let name = "vector-validator".to_owned();
    let other = rcgen::generate_simple_self_signed([name]).expect("a certificate");
    let (certificate, key) = (other.cert.pem(), other.signing_key.serialize_pem());
    let token = credentials.iter().find(|(name, _)| name == "token");
    let token = &token.expect("a token").1;
    let files = [
        ("tls.crt", certificate.as_bytes()),
        ("tls.key", key.as_bytes()),
        ("token", token.as_slice()),
    ];
    validator.write_credentials(&files);
    validator.start().await;
    env.installation
        .restart_controller_with(&[])
        .expect("restarted");
    env.apply(&object("VectorPipeline", "app", &logs("fifth")));
    a_pod_checks(env, "fifth").await;
}
