//! Child process that is killed when its value is dropped.

use std::fs::File;
use std::io::{Seek, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::error::Error;
use crate::wait::eventually_within;

/// Running process with its output in a file.
#[derive(Debug)]
pub struct Process {
    name: String,
    id: u32,
    child: Mutex<Child>,
    log: PathBuf,
}

impl Process {
    /// Starts a command and appends its output to `NAME.log` in `logs`.
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
            id: child.id(),
            child: Mutex::new(child),
            log,
        })
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns the output of the process so far.
    pub fn output(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Returns the exit status if the process has ended.
    pub fn exit_status(&self) -> Option<ExitStatus> {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        child.try_wait().ok().flatten()
    }

    /// Waits until the process has ended on its own.
    pub async fn ended(&self) {
        let _ = eventually_within(Duration::MAX, "the process to end", async || {
            self.exit_status()
        })
        .await;
    }

    /// Kills the process with SIGKILL and waits until it has ended.
    pub fn kill(&mut self) {
        let child = self.child.get_mut();
        let child = child.unwrap_or_else(PoisonError::into_inner);
        let _ = child.kill();
        let _ = child.wait();
    }

    /// Sends SIGTERM, as the kubelet does.
    pub fn terminate(&self) -> Result<(), Error> {
        self.signal("TERM")
    }

    /// Suspends the process with SIGSTOP, as on a suspended machine.
    pub fn freeze(&self) -> Result<(), Error> {
        self.signal("STOP")
    }

    /// Resumes the process with SIGCONT.
    pub fn thaw(&self) -> Result<(), Error> {
        self.signal("CONT")
    }

    fn signal(&self, signal: &str) -> Result<(), Error> {
        let id = self.id().to_string();
        run(Command::new("kill").args([format!("-{signal}"), id])).map(drop)
    }

    /// Returns the error of a process that ended although it should serve.
    pub(crate) fn start_error(&self) -> Error {
        let (program, output) = (self.name.clone(), self.tail());
        // "Address already in use" in Go and in Python.
        if output.to_lowercase().contains("already in use") || output.contains("is in use by") {
            Error::PortInUse { program, output }
        } else {
            Error::Failed {
                command: program,
                output,
            }
        }
    }

    /// Returns the last lines of the output, for an error message.
    pub(crate) fn tail(&self) -> String {
        let output = self.output();
        let lines: Vec<_> = output.lines().collect();
        format!(
            "; last output of {}:\n{}",
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

/// Runs a command to completion and returns its standard output.
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

/// Runs a command to completion with a text as standard input and returns its standard output.
pub(crate) fn run_with_input(command: &mut Command, input: &str) -> Result<String, Error> {
    let mut file = tempfile::tempfile().map_err(Error::file(Path::new("temporary file")))?;
    let written = file
        .write_all(input.as_bytes())
        .and_then(|()| file.rewind());
    written.map_err(Error::file(Path::new("temporary file")))?;
    run(command.stdin(file))
}

/// Range below the ephemeral ports of the system. An outgoing connection could otherwise take a port between its choice
/// and its use.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// Returns a TCP port on which no process listens and that this process has not returned recently.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Different processes start at different ports.
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
