//! Servers under test: how they are built, started on one core, and observed through `/proc`.

use std::env;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use bench_harness::usage::{self, Memory};

use crate::crd_status::{self, CrdStatusWriter};

/// Time limit for a server to accept connections and to become idle.
const DEADLINE: Duration = Duration::from_secs(30);

/// Interval of the CPU time checks. CPU time has a resolution of hundredths of a second.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Server program and its command line.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    path: PathBuf,
    arguments: fn(u16, &Path) -> Vec<String>,
    /// If true, the server validates objects instead of only responding.
    validates: bool,
    /// Number of causes in the response to the review that is invalid in every layer.
    pub(crate) causes: usize,
    /// If true, the CRD status file reports that the CRD is current while the server runs.
    is_vouched_for: bool,
}

/// Running server.
pub(crate) struct Running {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) start_up: Duration,
    _vouching: Option<CrdStatusWriter>,
}

/// Returns the webhook with all three layers.
pub(crate) fn lockstep() -> anyhow::Result<Program> {
    Ok(Program {
        name: "lockstep",
        path: bench_harness::lockstep()?,
        arguments: |port, directory| {
            vec![
                "webhook".to_owned(),
                format!("--webhook-bind-address=127.0.0.1:{port}"),
                "--health-probe-bind-address=127.0.0.1:0".to_owned(),
                format!("--cert-dir={}", directory.display()),
                format!(
                    "--crd-status-file={}",
                    crd_status::file(directory).display()
                ),
            ]
        },
        validates: true,
        causes: 10,
        is_vouched_for: false,
    })
}

/// Returns the webhook next to a controller that reports the CRD as current: what the API server has validated
/// already is not validated again.
pub(crate) fn lockstep_vouched_for() -> anyhow::Result<Program> {
    Ok(Program {
        name: "lockstep, CRD known",
        is_vouched_for: true,
        ..lockstep()?
    })
}

/// Returns a controller-runtime webhook with ten of the rules that only a webhook can enforce.
pub(crate) fn controller_runtime() -> anyhow::Result<Program> {
    Ok(Program {
        name: "controller-runtime",
        path: bench_harness::go("benches/webhook/peer", ".", "controller-runtime")?,
        arguments: |port, keys| {
            vec![
                format!("--port={port}"),
                format!("--cert-dir={}", keys.display()),
            ]
        },
        validates: true,
        causes: 4,
        is_vouched_for: false,
    })
}

/// Returns a controller-runtime webhook with all rules that only a webhook can enforce, and the catalogue of RDS.
pub(crate) fn controller_runtime_all_rules() -> anyhow::Result<Program> {
    Ok(Program {
        name: "controller-runtime, all rules",
        arguments: |port, keys| {
            let catalogue =
                bench_harness::root().join("operators/cloud-database/catalogue/shipped.json");
            vec![
                format!("--port={port}"),
                format!("--cert-dir={}", keys.display()),
                "--rules=all".to_owned(),
                format!("--catalogue={}", catalogue.display()),
            ]
        },
        ..controller_runtime()?
    })
}

/// Returns the baseline server of this program, which parses the objects without validation.
pub(crate) fn baseline() -> anyhow::Result<Program> {
    Ok(Program {
        name: "baseline",
        path: env::current_exe()?,
        arguments: |port, keys| {
            vec![
                "baseline".to_owned(),
                format!("--webhook-bind-address=127.0.0.1:{port}"),
                format!("--cert-dir={}", keys.display()),
            ]
        },
        validates: false,
        causes: 0,
        is_vouched_for: false,
    })
}

/// Returns the baseline server in its mode that only skips over the objects.
pub(crate) fn scan() -> anyhow::Result<Program> {
    let baseline = baseline()?;
    Ok(Program {
        name: "scan",
        arguments: |port, keys| {
            vec![
                "baseline".to_owned(),
                format!("--webhook-bind-address=127.0.0.1:{port}"),
                format!("--cert-dir={}", keys.display()),
                "--pass-over".to_owned(),
            ]
        },
        ..baseline
    })
}

impl Program {
    /// Returns true if the server validates all layers, so that it must deny any invalid object.
    pub(crate) fn validates_all_layers(&self) -> bool {
        self.validates && !self.is_vouched_for
    }

    /// Starts the server on the first core and waits until it accepts connections.
    pub(crate) fn start(&self, keys: &Path) -> anyhow::Result<Running> {
        let port = free_port()?;
        let crd_status_writer = self
            .is_vouched_for
            .then(|| CrdStatusWriter::begin(keys))
            .transpose()?;
        let started = Instant::now();
        let mut child = Command::new("taskset")
            .args(["--cpu-list", "0"])
            .arg(&self.path)
            .args((self.arguments)(port, keys))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("taskset")?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        while TcpStream::connect(address).is_err() {
            if let Some(status) = child.try_wait()? {
                bail!("{} ended unexpectedly: {status}", self.name);
            }
            ensure!(
                started.elapsed() < DEADLINE,
                "{} does not accept connections",
                self.name
            );
            std::thread::sleep(Duration::from_micros(500));
        }
        Ok(Running {
            child,
            address,
            start_up: started.elapsed(),
            _vouching: crd_status_writer,
        })
    }
}

impl Running {
    /// Waits until the CPU time no longer increases, that is, until the work after start-up is finished.
    pub(crate) fn wait_until_idle(&self) -> anyhow::Result<()> {
        let started = Instant::now();
        let mut before = self.cpu()?;
        loop {
            std::thread::sleep(POLL_INTERVAL);
            let now = self.cpu()?;
            if now <= before {
                return Ok(());
            }
            ensure!(
                started.elapsed() < DEADLINE,
                "the server does not become idle"
            );
            before = now;
        }
    }

    /// Returns the memory.
    pub(crate) fn memory(&self) -> anyhow::Result<Memory> {
        usage::memory(self.child.id())
    }

    /// Returns the memory of each child process in MiB.
    pub(crate) fn children(&self) -> anyhow::Result<Vec<f64>> {
        let tasks = format!("/proc/{}/task", self.child.id());
        let mut held = Vec::new();
        for task in fs::read_dir(tasks)? {
            let children = fs::read_to_string(task?.path().join("children"))?;
            for child in children.split_whitespace() {
                held.push(usage::memory(child.parse()?)?.now);
            }
        }
        Ok(held)
    }

    /// Returns the used CPU time in seconds.
    pub(crate) fn cpu(&self) -> anyhow::Result<f64> {
        usage::cpu(self.child.id())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}
