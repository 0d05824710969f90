//! The two compared operators, as processes.

use std::env;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use anyhow::{Context, bail};
use kube::{Client, Config};
use lockstep_envtest::free_port;

/// Maximum number of concurrent reconciliations of each operator.
const CONCURRENCY: usize = 8;

/// Operator program and its command line.
pub(crate) struct Implementation {
    /// Name of the operator, which is also the user agent of its calls.
    pub(crate) name: &'static str,
    program: PathBuf,
    arguments: &'static [&'static str],
}

/// Returns the operator of this program, built on the controller of Lockstep.
pub(crate) fn lockstep() -> anyhow::Result<Implementation> {
    Ok(Implementation {
        name: "lockstep",
        program: env::current_exe()?,
        arguments: &["operate"],
    })
}

/// Returns the same operator, built on controller-runtime.
pub(crate) fn controller_runtime() -> anyhow::Result<Implementation> {
    Ok(Implementation {
        name: "controller-runtime",
        program: bench_harness::go(
            "benches/controller/peer",
            ".",
            "controller-runtime-operator",
        )?,
        arguments: &[],
    })
}

/// Running operator. It is killed when the value is dropped.
pub(crate) struct Running {
    child: Child,
    metrics: Client,
}

impl Implementation {
    pub(crate) fn start(&self, kubeconfig: &Path, logs: &Path) -> anyhow::Result<Running> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let log = File::create(logs.join(format!("{}.log", self.name)))?;
        let child = Command::new(&self.program)
            .args(self.arguments)
            .arg(format!("--listen={address}"))
            .arg(format!("--concurrency={CONCURRENCY}"))
            .env("KUBECONFIG", kubeconfig)
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| self.program.display().to_string())?;
        let metrics = Client::try_from(Config::new(format!("http://{address}").parse()?))?;
        Ok(Running { child, metrics })
    }
}

impl Running {
    pub(crate) fn new(child: Child, metrics: Client) -> Self {
        Self { child, metrics }
    }

    /// Returns the number of completed reconciliations and of queued or active objects, once the metrics are available.
    pub(crate) async fn reconciliations(&mut self) -> anyhow::Result<Option<(u64, u64)>> {
        if let Some(status) = self.child.try_wait()? {
            bail!("the operator ended unexpectedly: {status}");
        }
        let request = http::Request::get("/metrics").body(Vec::new())?;
        let Ok(text) = self.metrics.request_text(request).await else {
            return Ok(None);
        };
        let sum = |name: &str| {
            let lines = text.lines().filter(|line| line.starts_with(name));
            let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
            // The values are counts.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let sum = values.sum::<f64>() as u64;
            sum
        };
        let waiting = sum("workqueue_depth{") + sum("controller_runtime_active_workers{");
        Ok(Some((sum("controller_runtime_reconcile_total{"), waiting)))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
