//! A process that ends with the value that stands for it.

use std::fs::File;
use std::io::{Seek, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::error::Error;
use crate::wait::eventually_within;

/// A running process, its output in a file.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a command, appending its output to `NAME.log` in `logs`.
    pub fn start(name: &str, command: &mut Command, logs: &Path) -> Result<Self, Error> {
        let log = logs.join(format!("{name}.log"));
        let open = || File::options().create(true).append(true).open(&log);
        let (out, err) = (
            open().map_err(Error::file(&log))?,
            open().map_err(Error::file(&log))?,
        );
        let child = command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .map_err(|source| Error::Start {
                program: command.get_program().to_string_lossy().into_owned(),
                source,
            })?;
        Ok(Self {
            name: name.to_owned(),
            child,
            log,
        })
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What the process has printed.
    pub fn output(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The exit status, if the process has ended.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Resolves once the process has ended by itself.
    pub async fn ended(&mut self) {
        let _ = eventually_within(Duration::MAX, "its end", async || self.exit_status()).await;
    }

    /// Ends the process at once, as SIGKILL does, and waits until it is gone.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks the process to end, as a kubelet does: SIGTERM.
    pub fn terminate(&self) -> Result<(), Error> {
        self.signal("TERM")
    }

    /// Stops it where it is, as a machine that is suspended does.
    pub fn freeze(&self) -> Result<(), Error> {
        self.signal("STOP")
    }

    /// Lets it go on.
    pub fn thaw(&self) -> Result<(), Error> {
        self.signal("CONT")
    }

    fn signal(&self, signal: &str) -> Result<(), Error> {
        let id = self.id().to_string();
        run(Command::new("kill").args([format!("-{signal}"), id])).map(drop)
    }

    /// The last lines of the output, for an error message.
    pub(crate) fn tail(&self) -> String {
        let output = self.output();
        let lines: Vec<_> = output.lines().collect();
        format!(
            "; {} printed last:\n{}",
            self.name,
            lines[lines.len().saturating_sub(15)..].join("\n")
        )
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs a command to its end and returns what it printed to standard output.
pub(crate) fn run(command: &mut Command) -> Result<String, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|source| Error::Start { program, source })?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(Error::Failed {
        command: format!("{command:?}"),
        output: format!("{stdout}{stderr}"),
    })
}

/// Runs a program to its end with a text on its standard input, and gives what it printed.
pub(crate) fn ask(command: &mut Command, input: &str) -> Result<String, Error> {
    let mut file = tempfile::tempfile().map_err(Error::file(Path::new("temporary file")))?;
    let written = file
        .write_all(input.as_bytes())
        .and_then(|()| file.rewind());
    written.map_err(Error::file(Path::new("temporary file")))?;
    run(command.stdin(file))
}

/// Below the ports that the system gives to outgoing connections: one of those could else take a port
/// between its choice and its use.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// A TCP port that nobody listens on just now, given to nobody else in this process.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Processes begin at different places.
    let start = std::process::id().wrapping_mul(97);
    loop {
        let turn = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let offset = turn % u32::from(PORTS.end - PORTS.start);
        let port = PORTS.start + u16::try_from(offset).unwrap_or_default();
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}
