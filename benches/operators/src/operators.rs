//! The compared operators: their builds, their installations and their processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use lockstep_envtest::{Cluster, Installation, Options, Process, free_port};
use serde_json::json;

use crate::names::{CONTROLLER_RUNTIME, KUBE_RS, LOCKSTEP};

/// Namespace of every operator. Only an operator has service accounts there.
pub(crate) const NAMESPACE: &str = "dns-record-system";

/// Maximum number of concurrent reconciliations of each operator.
const CONCURRENCY: usize = 8;

/// Operator with its built program.
pub(crate) struct Operator {
    pub(crate) name: &'static str,
    program: PathBuf,
}

/// Installed and running operator. It is killed when the value is dropped.
pub(crate) enum Running {
    Process(Process),
    Installation(Box<Installation>),
}

/// Builds the operators.
pub(crate) fn build() -> anyhow::Result<[Operator; 3]> {
    let module = "benches/operators/controller-runtime";
    Ok([
        Operator {
            name: LOCKSTEP,
            program: bench_harness::release("dns-record-lockstep")?,
        },
        Operator {
            name: KUBE_RS,
            program: bench_harness::release("dns-record-kube-rs")?,
        },
        Operator {
            name: CONTROLLER_RUNTIME,
            program: bench_harness::go(module, ".", "dns-record-controller-runtime")?,
        },
    ])
}

impl Operator {
    /// Installs the operator, with its own CRD and permissions, and starts it.
    pub(crate) async fn start(
        &self,
        cluster: &Cluster,
        dns_api: &str,
        resync: u64,
    ) -> anyhow::Result<Running> {
        let mut arguments = vec![
            format!("--dns-api-url={dns_api}"),
            format!("--max-concurrent-reconciles={CONCURRENCY}"),
        ];
        if self.name == LOCKSTEP {
            arguments.push(format!("--resync={resync}s"));
            return self.start_lockstep(cluster, arguments).await;
        }
        let files = bench_harness::root()
            .join("benches/operators")
            .join(self.name);
        let mut command = Command::new(&self.program);
        if self.name == KUBE_RS {
            let crd = Command::new(&self.program).arg("crd").output()?;
            let file = cluster.directory().join("crd.json");
            fs::write(&file, crd.stdout)?;
            apply(cluster, &file)?;
            command.arg("run").arg(format!("--resync-seconds={resync}"));
        } else {
            apply(cluster, &files.join("config/crd"))?;
            apply(cluster, &files.join("config/rbac"))?;
            command
                .arg(format!("--resync={resync}s"))
                .arg(format!("--metrics-bind-address=127.0.0.1:{}", free_port()))
                .arg(format!(
                    "--health-probe-bind-address=127.0.0.1:{}",
                    free_port()
                ))
                .arg(format!("--leader-election-namespace={NAMESPACE}"));
        }
        apply(cluster, &files.join("manifests.yaml"))?;
        let crd = "crd/dnsrecords.dns.example.com";
        cluster.run_kubectl(&["wait", "--for=create", crd])?;
        cluster.run_kubectl(&["wait", "--for=condition=Established", crd])?;
        let account = cluster.service_account_kubeconfig(NAMESPACE, "dns-record", None);
        command.args(arguments).env("KUBECONFIG", account.await?);
        let process = Process::start(self.name, &mut command, &cluster.logs())?;
        Ok(Running::Process(process))
    }

    async fn start_lockstep(
        &self,
        cluster: &Cluster,
        arguments: Vec<String>,
    ) -> anyhow::Result<Running> {
        let folder = cluster.directory().join("manifests");
        let written = Command::new(&self.program)
            .args(["manifests", "--no-webhook"])
            .arg(&folder)
            .output()?;
        ensure!(written.status.success(), "{written:?}");
        let options = Options {
            program: self.program.clone(),
            controller_env: Vec::new(),
            controller_args: arguments,
            controller_server: None,
        };
        let mut installation =
            Installation::apply_without_webhook(cluster, &folder, options).await?;
        installation.start_controller()?;
        Ok(Running::Installation(Box::new(installation)))
    }
}

impl Running {
    pub(crate) fn pid(&mut self) -> u32 {
        match self {
            Self::Process(process) => process.id(),
            Self::Installation(installation) => installation.controller().id(),
        }
    }

    /// Returns what the operator has printed.
    pub(crate) fn output(&self) -> String {
        match self {
            Self::Process(process) => process.output(),
            Self::Installation(installation) => installation.output(),
        }
    }
}

fn apply(cluster: &Cluster, path: &Path) -> anyhow::Result<()> {
    let path = path.to_string_lossy();
    cluster
        .run_kubectl(&["apply", "-f", &path])
        .with_context(|| path.clone().into_owned())?;
    Ok(())
}

/// Returns the rules of an audit policy that logs the calls of the operator. Renewals of its Lease are left out: their
/// number depends on the time and not on the objects.
pub(crate) fn audit_rules() -> serde_json::Value {
    json!([
        {"level": "None", "resources": [{"group": "coordination.k8s.io"}]},
        {"level": "Metadata", "userGroups": [format!("system:serviceaccounts:{NAMESPACE}")]},
    ])
}
