//! The three servers: built, started on a core of their own, and looked at from outside.

use std::env;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

/// A server as it is started.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    path: PathBuf,
    arguments: fn(u16, &Path) -> Vec<String>,
    /// Whether it judges, and not only answers.
    pub(crate) judges: bool,
}

/// A server that runs.
pub(crate) struct Running {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) start_up: Duration,
}

/// The gate, with all three layers.
pub(crate) fn lockstep() -> anyhow::Result<Program> {
    let cargo = env::var_os("CARGO").unwrap_or("cargo".into());
    let arguments = ["build", "--release", "--locked", "--package", "lockstep"];
    build(Command::new(cargo).current_dir(root()).args(arguments))?;
    Ok(Program {
        name: "lockstep",
        path: target().join("release/lockstep"),
        arguments: |port, keys| {
            vec![
                "webhook".to_owned(),
                format!("--listen=127.0.0.1:{port}"),
                "--health-listen=127.0.0.1:0".to_owned(),
                format!("--tls-directory={}", keys.display()),
            ]
        },
        judges: true,
    })
}

/// A webhook of controller-runtime, with the rules that only a webhook can have.
pub(crate) fn controller_runtime() -> anyhow::Result<Program> {
    let path = target().join("benchmark/controller-runtime");
    build(
        Command::new("go")
            .current_dir(root().join("tests/load/peer"))
            .args(["build", "-mod=readonly", "-ldflags", "-s -w", "-o"])
            .arg(&path)
            .arg("."),
    )?;
    Ok(Program {
        name: "controller-runtime",
        path,
        arguments: |port, keys| {
            vec![
                format!("--port={port}"),
                format!("--tls-directory={}", keys.display()),
            ]
        },
        judges: true,
    })
}

/// This very program, which judges nothing.
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
    })
}

impl Program {
    /// Starts it on the first core and waits until it takes connections.
    pub(crate) fn start(&self, keys: &Path) -> anyhow::Result<Running> {
        let port = free_port()?;
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
                started.elapsed() < Duration::from_secs(30),
                "{} takes no connection",
                self.name
            );
            std::thread::sleep(Duration::from_micros(500));
        }
        Ok(Running {
            child,
            address,
            start_up: started.elapsed(),
        })
    }
}

impl Running {
    /// What it holds now, and what it held at most, in MiB.
    pub(crate) fn memory(&self) -> anyhow::Result<(f64, f64)> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let field = |name: &str| -> anyhow::Result<f64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kib = line.and_then(|line| line.split_whitespace().next());
            let kib: f64 = kib.context("no such field")?.parse()?;
            Ok(kib / 1024.0)
        };
        Ok((field("VmRSS:")?, field("VmHWM:")?))
    }

    /// The CPU time that it has taken, in seconds.
    pub(crate) fn cpu(&self) -> anyhow::Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name of the program, in brackets, may hold anything.
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let ticks: Vec<f64> = fields
            .split_whitespace()
            .skip(11)
            .take(2)
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        Ok(ticks.iter().sum::<f64>() / 100.0)
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

fn build(command: &mut Command) -> anyhow::Result<()> {
    let status = command
        .status()
        .with_context(|| command.get_program().display().to_string())?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}
