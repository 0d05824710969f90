//! Installation of Lockstep in a cluster: applies the manifests and starts the processes of one Pod with the arguments
//! of the Deployment.

mod kustomization;

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Secret, Service};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::error::Error;
use crate::pod::Container;
use crate::probe::Probe;
use crate::process::{Process, free_port};
use crate::wait::eventually;

/// Settings that differ from the Deployment because the processes run on this machine.
#[derive(Clone, Debug)]
pub struct Options {
    /// Path of the `lockstep` program.
    pub program: PathBuf,
    /// Additional environment variables of the controller, such as those for moto.
    pub controller_env: Vec<(String, String)>,
    /// Additional arguments of the controller.
    pub controller_args: Vec<String>,
    /// URL that the controller uses instead of that of the API server.
    pub controller_server: Option<String>,
}

/// Installed and running Lockstep.
pub struct Installation {
    options: Options,
    deployment: Value,
    keys: PathBuf,
    /// Directory with a folder in place of each mounted `ConfigMap`.
    config_maps: PathBuf,
    logs: PathBuf,
    kubeconfig: PathBuf,
    webhook_port: u16,
    webhook_health_port: u16,
    controller_health_port: u16,
    webhook: Option<Process>,
    controller: Option<Process>,
    /// Environment variables of the controller that override those for moto.
    aws_environment: Vec<(String, String)>,
}

impl Installation {
    /// Applies the manifests and routes the Service to this machine. Does not start any process.
    pub async fn apply(
        cluster: &Cluster,
        manifests: &Path,
        options: Options,
    ) -> Result<Self, Error> {
        let installation = Self::apply_without_webhook(cluster, manifests, options).await?;
        installation.route_service_here(cluster).await?;
        Ok(installation)
    }

    /// Applies manifests that contain a controller and no webhook. Does not start any process.
    pub async fn apply_without_webhook(
        cluster: &Cluster,
        manifests: &Path,
        options: Options,
    ) -> Result<Self, Error> {
        let (deployment, kubeconfig) =
            apply(cluster, manifests, options.controller_server.as_deref()).await?;
        let config_maps = cluster.directory().to_owned();
        let policy_folder = config_maps.join("policy");
        fs::create_dir_all(&policy_folder).map_err(Error::file(&policy_folder))?;
        Ok(Self {
            options,
            keys: cluster.directory().join("tls"),
            config_maps,
            logs: cluster.logs(),
            deployment,
            kubeconfig,
            webhook_port: free_port(),
            webhook_health_port: free_port(),
            controller_health_port: free_port(),
            webhook: None,
            controller: None,
            aws_environment: Vec::new(),
        })
    }

    /// Keeps the files of the processes in a directory of their own, so that they share none with those of another installation
    /// in the same cluster.
    pub fn with_files_in(mut self, directory: &Path) -> Result<Self, Error> {
        self.keys = directory.join("tls");
        directory.clone_into(&mut self.config_maps);
        self.logs = directory.join("logs");
        for folder in [&self.logs, &self.policy_folder()] {
            fs::create_dir_all(folder).map_err(Error::file(folder))?;
        }
        Ok(self)
    }

    /// Starts both processes and waits until the webhook is ready and fails closed. A process that ends, for example because
    /// of its arguments, is an error.
    pub async fn start(&mut self, cluster: &Cluster) -> Result<(), Error> {
        self.start_controller()?;
        self.start_webhook()?;
        tokio::select! {
            waited = Box::pin(self.wait_for_webhook(cluster)) => waited,
            ended = self.ended() => Err(ended),
        }
    }

    /// Waits until the webhook or the controller has ended on its own, and returns its exit status and last output.
    pub async fn ended(&self) -> Error {
        let end = async |process: &Option<Process>, command: &str| {
            let Some(process) = process else {
                return std::future::pending().await;
            };
            process.ended().await;
            let status = process.exit_status().map(|status| status.to_string());
            Error::Failed {
                command: command.to_owned(),
                output: format!("{}{}", status.unwrap_or_default(), process.tail()),
            }
        };
        tokio::select! {
            ended = end(&self.webhook, "webhook") => ended,
            ended = end(&self.controller, "controller") => ended,
        }
    }

    /// Starts the webhook process.
    pub fn start_webhook(&mut self) -> Result<(), Error> {
        let container = Container::of(&self.deployment, "webhook", "pod-0")?;
        let container = container.with_volumes_in(&self.config_maps, &self.keys);
        let mut command = Command::new(&self.options.program);
        command
            .args(container.args)
            .arg(format!(
                "--webhook-bind-address=127.0.0.1:{}",
                self.webhook_port
            ))
            .arg(format!(
                "--health-probe-bind-address=127.0.0.1:{}",
                self.webhook_health_port
            ))
            .arg("--shutdown-delay=0s")
            .env_clear()
            .envs(container.env);
        self.webhook = Some(Process::start("webhook", &mut command, &self.logs)?);
        Ok(())
    }

    /// Starts the controller process with the rights of its service account.
    pub fn start_controller(&mut self) -> Result<(), Error> {
        self.controller = Some(self.start_replica("pod-0", self.controller_health_port)?);
        Ok(())
    }

    /// Kills the controller process and starts it again with additional arguments.
    pub fn restart_controller_with(&mut self, more: &[&str]) -> Result<(), Error> {
        self.controller().kill();
        let args = &mut self.options.controller_args;
        args.extend(more.iter().map(|arg| (*arg).to_owned()));
        self.start_controller()
    }

    /// Kills the controller process and starts it again with another value of an option.
    pub fn restart_controller_with_value(
        &mut self,
        option: &str,
        value: &str,
    ) -> Result<(), Error> {
        let prefix = format!("{option}=");
        self.options
            .controller_args
            .retain(|arg| !arg.starts_with(&prefix));
        self.restart_controller_with(&[&format!("{prefix}{value}")])
    }

    /// Kills the controller process and starts it again with other AWS settings, such as `AWS_REGION`, instead of
    /// those for moto. They replace the settings of an earlier call.
    pub fn restart_controller_in_aws(&mut self, settings: &[(&str, &str)]) -> Result<(), Error> {
        self.controller().kill();
        let settings = settings.iter();
        self.aws_environment = settings
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        self.start_controller()
    }

    /// Starts the controller process of another replica.
    pub fn start_other_controller(&self, pod: &str) -> Result<Process, Error> {
        self.start_replica(pod, free_port())
    }

    fn start_replica(&self, pod: &str, health_port: u16) -> Result<Process, Error> {
        let container = Container::of(&self.deployment, "controller", pod)?;
        let container = container.with_volumes_in(&self.config_maps, &self.keys);
        let mut command = Command::new(&self.options.program);
        command
            .args(container.args)
            .arg(format!(
                "--health-probe-bind-address=127.0.0.1:{health_port}"
            ))
            .args(&self.options.controller_args)
            .env_clear()
            .envs(container.env)
            .envs(self.options.controller_env.iter().cloned())
            .envs(self.aws_environment.iter().cloned())
            .env("KUBECONFIG", &self.kubeconfig);
        let name = if pod == "pod-0" {
            "controller".to_owned()
        } else {
            format!("controller-{pod}")
        };
        Process::start(&name, &mut command, &self.logs)
    }

    /// Writes the policy that both processes read, atomically as the kubelet does.
    pub fn set_policy(&self, policy: &str) -> Result<(), Error> {
        let (fresh, policy_file) = (self.policy_folder().join("fresh"), self.policy_file());
        fs::write(&fresh, policy).map_err(Error::file(&fresh))?;
        fs::rename(&fresh, &policy_file).map_err(Error::file(&policy_file))
    }

    /// Removes the policy.
    pub fn remove_policy(&self) -> Result<(), Error> {
        let file = self.policy_file();
        fs::remove_file(&file).map_err(Error::file(&file))
    }

    /// Returns the folder that both processes read in place of a mounted `ConfigMap`. `name` is that of the volume. The
    /// folder may not exist.
    pub fn config_map_folder(&self, name: &str) -> PathBuf {
        self.config_maps.join(name)
    }

    fn policy_folder(&self) -> PathBuf {
        self.config_map_folder("policy")
    }

    fn policy_file(&self) -> PathBuf {
        self.policy_folder().join("policy.yaml")
    }

    /// Returns the webhook process.
    pub fn webhook(&mut self) -> &mut Process {
        self.webhook.as_mut().expect("the webhook has been started")
    }

    /// Returns the controller process.
    pub fn controller(&mut self) -> &mut Process {
        self.controller
            .as_mut()
            .expect("the controller has been started")
    }

    /// Returns the output of both processes.
    pub fn output(&self) -> String {
        let output =
            |process: &Option<Process>| process.as_ref().map(Process::output).unwrap_or_default();
        format!(
            "controller:\n{}webhook:\n{}",
            output(&self.controller),
            output(&self.webhook)
        )
    }

    /// Returns the port of the webhook.
    pub fn webhook_port(&self) -> u16 {
        self.webhook_port
    }

    /// Returns the URL of the health checks and metrics of the webhook.
    pub fn webhook_health_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.webhook_health_port)
    }

    /// Returns the URL of the health checks and metrics of the controller.
    pub fn controller_health_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.controller_health_port)
    }

    /// Waits until both webhook configurations contain the CA of the current serving certificate and the failure
    /// policy is `Fail`.
    pub async fn wait_for_webhook(&self, cluster: &Cluster) -> Result<(), Error> {
        let probe = Probe::of(Ipv4Addr::LOCALHOST, self.webhook_health_port)?;
        eventually("the webhook to become ready", async || {
            probe.is_ready().await.then_some(())
        })
        .await
        .map_err(|error| {
            let tail =
                |process: &Option<Process>| process.as_ref().map(Process::tail).unwrap_or_default();
            error.with_hint(&format!(
                "{}{}",
                tail(&self.webhook),
                tail(&self.controller)
            ))
        })?;
        let authority = json!(self.authority(cluster).await?);
        let what = "the caBundle to be injected";
        wait_for_webhooks(cluster, &WEBHOOK_CONFIGURATIONS, what, |webhook| {
            webhook["clientConfig"]["caBundle"] == authority
        })
        .await?;
        wait_until_fail_closed(cluster).await
    }

    /// Returns the CA of the current serving certificate, as PEM.
    pub async fn webhook_authority(&self, cluster: &Cluster) -> Result<Vec<u8>, Error> {
        Ok(self
            .authority(cluster)
            .await?
            .map(|ca| ca.0)
            .unwrap_or_default())
    }

    /// Returns the CA of the current serving certificate, if it has been issued. As JSON it is a caBundle.
    async fn authority(&self, cluster: &Cluster) -> Result<Option<ByteString>, Error> {
        let namespace = self.deployment["metadata"]["namespace"]
            .as_str()
            .unwrap_or_default();
        let args = Container::of(&self.deployment, "controller", "pod-0")?.args;
        let secret = args
            .iter()
            .find_map(|arg| arg.strip_prefix("--tls-secret="));
        let secrets: Api<Secret> = Api::namespaced(cluster.client(), namespace);
        let secret = secrets.get(secret.unwrap_or_default()).await?;
        Ok(secret.data.unwrap_or_default().remove("ca.crt"))
    }

    /// Lets the controller read and write the Secrets of a namespace, as an administrator of the namespace does it.
    pub async fn allow_secrets(cluster: &Cluster, namespace: &str) -> Result<(), Error> {
        let bindings: Api<RoleBinding> = Api::namespaced(cluster.client(), namespace);
        let name = "lockstep-secret-editor";
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": "lockstep", "namespace": "lockstep-system"}],
        });
        let params = PatchParams::apply("administrator");
        bindings
            .patch(name, &params, &Patch::Apply(&binding))
            .await?;
        Ok(())
    }

    /// Removes both webhook configurations, so that the API server no longer calls the webhook.
    pub fn remove_webhook_configurations(&self, cluster: &Cluster) -> Result<(), Error> {
        for kind in WEBHOOK_CONFIGURATIONS {
            cluster.run_kubectl(&["delete", &kind.to_lowercase(), "--all"])?;
        }
        Ok(())
    }

    async fn route_conversions_here(&self, cluster: &Cluster) -> Result<(), Error> {
        let crds = crds(cluster);
        let pointer = "/spec/conversion/webhook/clientConfig/service/port";
        let port = json!({"port": self.webhook_port});
        let patch = Patch::Merge(json!({
            "spec": {"conversion": {"webhook": {"clientConfig": {"service": port}}}},
        }));
        for crd in crds.list(&ListParams::default()).await? {
            if crd.data.pointer(pointer).is_some() {
                let name = crd.metadata.name.unwrap_or_default();
                crds.patch(&name, &PatchParams::default(), &patch).await?;
            }
        }
        Ok(())
    }

    /// Sets the port of all webhooks of a configuration, again if another client changes the configuration meanwhile.
    async fn route_webhooks_here(
        &self,
        configurations: &Api<DynamicObject>,
        name: &str,
    ) -> Result<(), Error> {
        loop {
            let mut configuration = configurations.get(name).await?;
            let webhooks = configuration.data["webhooks"].as_array_mut();
            for webhook in webhooks.into_iter().flatten() {
                webhook["clientConfig"]["service"]["port"] = json!(self.webhook_port);
            }
            let params = PostParams::default();
            match configurations.replace(name, &params, &configuration).await {
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                replaced => return Ok(replaced.map(drop)?),
            }
        }
    }

    /// Routes the Service to this machine. No kube-proxy runs here: the Service becomes an alias of `localhost`, and
    /// the configurations get the real port of the webhook. The API server still verifies the host name of the
    /// Service.
    async fn route_service_here(&self, cluster: &Cluster) -> Result<(), Error> {
        let patch = Patch::Merge(json!({
            "spec": {"type": "ExternalName", "externalName": "localhost", "clusterIP": null, "clusterIPs": null, "selector": null},
        }));
        let mut reference = None;
        for kind in WEBHOOK_CONFIGURATIONS {
            let api: Api<DynamicObject> = Api::all_with(cluster.client(), &admission(kind));
            for configuration in api.list(&ListParams::default()).await? {
                reference =
                    Some(configuration.data["webhooks"][0]["clientConfig"]["service"].clone());
                let name = configuration.metadata.name.unwrap_or_default();
                self.route_webhooks_here(&api, &name).await?;
            }
        }
        self.route_conversions_here(cluster).await?;
        let reference = reference.ok_or_else(|| {
            Error::Manifest("the manifests contain no webhook configuration".to_owned())
        })?;
        let text = |name: &str| reference[name].as_str().unwrap_or_default().to_owned();
        let services: Api<Service> = Api::namespaced(cluster.client(), &text("namespace"));
        services
            .patch(&text("name"), &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }
}

/// Applies the manifests and returns their Deployment and a kubeconfig of its service account.
pub(crate) async fn apply(
    cluster: &Cluster,
    manifests: &Path,
    server: Option<&str>,
) -> Result<(Value, PathBuf), Error> {
    let file = manifests.join("deployment.yaml");
    let text = fs::read_to_string(&file).map_err(Error::file(&file))?;
    let deployment: Value = serde_saphyr::from_str(&text)
        .map_err(|error| Error::Manifest(format!("{}: {error}", file.display())))?;
    // An installation without CRDs of its own has none of the first two.
    for base in ["crds", "crd-protection", "."] {
        let base = manifests.join(base);
        if base.is_dir() {
            kustomization::apply(&cluster.client(), &base).await?;
        }
    }
    wait_until_established(cluster).await?;
    let namespace = deployment["metadata"]["namespace"]
        .as_str()
        .unwrap_or_default();
    let account = deployment
        .pointer("/spec/template/spec/serviceAccountName")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let kubeconfig = cluster
        .service_account_kubeconfig(namespace, account, server)
        .await?;
    Ok((deployment, kubeconfig))
}

const WEBHOOK_CONFIGURATIONS: [&str; 2] = [
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

fn crds(cluster: &Cluster) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    Api::all_with(cluster.client(), &ApiResource::from_gvk(&gvk))
}

/// Waits until the API server has accepted the names of all CRDs. `kubectl wait` fails if a CRD has no condition yet.
async fn wait_until_established(cluster: &Cluster) -> Result<(), Error> {
    let is_established = |crd: &DynamicObject| {
        let conditions = crd.data["status"]["conditions"].as_array();
        conditions
            .into_iter()
            .flatten()
            .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
    };
    eventually("the CRDs to be established", async || {
        let crds = crds(cluster).list(&ListParams::default()).await.ok()?;
        crds.iter().all(is_established).then_some(())
    })
    .await
}

fn admission(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(
        "admissionregistration.k8s.io",
        "v1",
        kind,
    ))
}

/// Waits until the validating webhook fails closed (`failurePolicy: Fail`).
pub async fn wait_until_fail_closed(cluster: &Cluster) -> Result<(), Error> {
    let validating = ["ValidatingWebhookConfiguration"];
    wait_for_webhooks(
        cluster,
        &validating,
        "the failure policy to become `Fail`",
        |webhook| webhook["failurePolicy"] == "Fail",
    )
    .await
}

/// Waits until configurations of these kinds contain at least one webhook and all their webhooks satisfy a predicate.
async fn wait_for_webhooks(
    cluster: &Cluster,
    kinds: &[&str],
    what: &str,
    is_so: impl Fn(&Value) -> bool,
) -> Result<(), Error> {
    eventually(what, async || {
        let mut configurations = Vec::new();
        for kind in kinds {
            let api: Api<DynamicObject> = Api::all_with(cluster.client(), &admission(kind));
            configurations.extend(api.list(&ListParams::default()).await.ok()?);
        }
        let webhooks = configurations
            .iter()
            .flat_map(|c| c.data["webhooks"].as_array().into_iter().flatten());
        let webhooks: Vec<_> = webhooks.collect();
        (!webhooks.is_empty() && webhooks.into_iter().all(&is_so)).then_some(())
    })
    .await
}
