//! Client process that sends reviews to a server, on the second core.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};
use bench_harness::Review;

use crate::client::Measured;
use crate::servers::Running;

pub(crate) const WARM_UP_MS: u32 = 500;

/// Workload of one measurement.
#[derive(Clone, Copy)]
pub(crate) struct Workload {
    pub(crate) review: Review,
    pub(crate) connections: usize,
    /// If true, every request uses a new connection.
    pub(crate) new_connections: bool,
    /// If true, every review is different from all earlier ones.
    pub(crate) is_new: bool,
    /// Number of causes that the response must contain; 0 if the review must be allowed.
    pub(crate) causes: usize,
    pub(crate) measure_ms: u32,
}

/// Running client process.
pub(crate) struct LoadGenerator {
    process: Child,
    name: &'static str,
}

impl LoadGenerator {
    pub(crate) fn begin(
        server: &Running,
        workload: Workload,
        directory: &Path,
    ) -> anyhow::Result<Self> {
        let name = workload.review.name();
        let mut command = Command::new("taskset");
        command
            .args(["--cpu-list", "1"])
            .arg(std::env::current_exe()?)
            .arg("send")
            .arg(format!("--server={}", server.address))
            .arg("--ca")
            .arg(directory.join("ca.crt"))
            .arg("--body")
            .arg(directory.join(format!("{name}.json")))
            .arg(format!("--causes={}", workload.causes))
            .arg(format!("--connections={}", workload.connections))
            .arg(format!("--warm-up-ms={WARM_UP_MS}"))
            .arg(format!("--measure-ms={}", workload.measure_ms));
        if workload.new_connections {
            command.arg("--new-connections");
        }
        if workload.is_new {
            command.arg("--is-new");
        }
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let process = command.spawn().context("taskset")?;
        Ok(Self { process, name })
    }

    /// Waits for the client process and returns its measurement.
    pub(crate) fn end(self) -> anyhow::Result<Measured> {
        let output = self.process.wait_with_output()?;
        ensure!(
            output.status.success(),
            "{}: {}",
            self.name,
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}
