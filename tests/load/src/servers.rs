//! The three servers: built, started on a core of their own, and looked at from outside.

use std::env;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use building::usage;

use crate::vouching::{self, Vouching};

/// How long a server may take to take connections, and to come to rest.
const DEADLINE: Duration = Duration::from_secs(30);

/// How often CPU time is looked at. It is counted in hundredths of a second.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A server as it is started.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    path: PathBuf,
    arguments: fn(u16, &Path) -> Vec<String>,
    /// Whether it judges, and not only answers.
    judges: bool,
    /// For how many reasons it refuses what is wrong in every layer.
    pub(crate) causes: usize,
    /// Whether somebody vouches for the CRD while it runs.
    is_vouched_for: bool,
}

/// A server that runs.
pub(crate) struct Running {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) start_up: Duration,
    _vouching: Option<Vouching>,
}

/// The gate, with all three layers.
pub(crate) fn lockstep() -> anyhow::Result<Program> {
    Ok(Program {
        name: "lockstep",
        path: building::lockstep()?,
        arguments: |port, directory| {
            vec![
                "webhook".to_owned(),
                format!("--listen=127.0.0.1:{port}"),
                "--health-listen=127.0.0.1:0".to_owned(),
                format!("--tls-directory={}", directory.display()),
                format!("--crds-file={}", vouching::file(directory).display()),
            ]
        },
        judges: true,
        causes: 10,
        is_vouched_for: false,
    })
}

/// The gate beside a controller that vouches for the CRD: what the API server has judged is not judged
/// again.
pub(crate) fn lockstep_vouched_for() -> anyhow::Result<Program> {
    Ok(Program {
        name: "lockstep, CRD known",
        is_vouched_for: true,
        ..lockstep()?
    })
}

/// A webhook of controller-runtime, with the rules that only a webhook can have.
pub(crate) fn controller_runtime() -> anyhow::Result<Program> {
    Ok(Program {
        name: "controller-runtime",
        path: building::go("tests/load/peer", ".", "controller-runtime")?,
        arguments: |port, keys| {
            vec![
                format!("--port={port}"),
                format!("--tls-directory={}", keys.display()),
            ]
        },
        judges: true,
        causes: 4,
        is_vouched_for: false,
    })
}

/// This very program, which reads the objects and judges nothing.
pub(crate) fn floor() -> anyhow::Result<Program> {
    Ok(Program {
        name: "floor",
        path: env::current_exe()?,
        arguments: |port, keys| {
            vec![
                "floor".to_owned(),
                format!("--listen=127.0.0.1:{port}"),
                format!("--tls-directory={}", keys.display()),
            ]
        },
        judges: false,
        causes: 0,
        is_vouched_for: false,
    })
}

/// The same, which only passes over them.
pub(crate) fn scan() -> anyhow::Result<Program> {
    let floor = floor()?;
    Ok(Program {
        name: "scan",
        arguments: |port, keys| {
            vec![
                "floor".to_owned(),
                format!("--listen=127.0.0.1:{port}"),
                format!("--tls-directory={}", keys.display()),
                "--pass-over".to_owned(),
            ]
        },
        ..floor
    })
}

impl Program {
    /// Whether whatever is wrong may come to it.
    pub(crate) fn judges_all(&self) -> bool {
        self.judges && !self.is_vouched_for
    }

    /// Starts it on the first core and waits until it takes connections.
    pub(crate) fn start(&self, keys: &Path) -> anyhow::Result<Running> {
        let port = free_port()?;
        let vouching = self
            .is_vouched_for
            .then(|| Vouching::begin(keys))
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
                bail!("{} has ended: {status}", self.name);
            }
            ensure!(
                started.elapsed() < DEADLINE,
                "{} takes no connection",
                self.name
            );
            std::thread::sleep(Duration::from_micros(500));
        }
        Ok(Running {
            child,
            address,
            start_up: started.elapsed(),
            _vouching: vouching,
        })
    }
}

impl Running {
    /// Waits until its CPU time stands still: whatever it does after it takes connections is over.
    pub(crate) fn wait_until_idle(&self) -> anyhow::Result<()> {
        let started = Instant::now();
        let mut before = self.cpu()?;
        loop {
            std::thread::sleep(LOOK_EVERY);
            let now = self.cpu()?;
            if now <= before {
                return Ok(());
            }
            ensure!(started.elapsed() < DEADLINE, "it never comes to rest");
            before = now;
        }
    }

    /// What it holds now, and what it held at most, in MiB.
    pub(crate) fn memory(&self) -> anyhow::Result<(f64, f64)> {
        usage::memory(self.child.id())
    }

    /// What each of its processes holds, in MiB.
    pub(crate) fn children(&self) -> anyhow::Result<Vec<f64>> {
        let tasks = format!("/proc/{}/task", self.child.id());
        let mut held = Vec::new();
        for task in fs::read_dir(tasks)? {
            let children = fs::read_to_string(task?.path().join("children"))?;
            for child in children.split_whitespace() {
                held.push(usage::memory(child.parse()?)?.0);
            }
        }
        Ok(held)
    }

    /// The CPU time that it has taken, in seconds.
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
