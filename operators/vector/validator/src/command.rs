//! Processes of Vector.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Command;
use tokio::time::timeout;

use crate::log_tail::LogTail;

/// Size of one read, in bytes.
const READ_BYTES: usize = 64 << 10;

/// Program that is run.
pub(crate) struct Program {
    path: PathBuf,
    limit: Duration,
}

/// End of a process.
pub(crate) enum Ended {
    /// It has ended by itself, or by a signal.
    Status(ExitStatus),
    /// It was killed, because it had not ended in time.
    TimedOut,
}

/// Place for what a process prints.
pub(crate) trait Output {
    /// Takes bytes. Returns false if there is no place for them.
    fn take(&mut self, bytes: &[u8]) -> bool;
}

impl Output for LogTail {
    fn take(&mut self, bytes: &[u8]) -> bool {
        self.push(bytes);
        true
    }
}

/// Output that is kept as a whole, up to a size.
pub(crate) struct Whole {
    pub(crate) bytes: Vec<u8>,
    pub(crate) max: usize,
}

impl Output for Whole {
    fn take(&mut self, bytes: &[u8]) -> bool {
        if self.bytes.len() + bytes.len() > self.max {
            return false;
        }
        self.bytes.extend(bytes);
        true
    }
}

impl Program {
    /// Returns a program whose processes are killed after a time.
    pub(crate) fn new(path: PathBuf, limit: Duration) -> Self {
        Self { path, limit }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if the program can be executed.
    pub(crate) fn exists(&self) -> bool {
        is_executable(&self.path)
    }

    /// Runs the program without an input. What it prints goes to `stdout`; what it prints as errors goes there as well, or
    /// nowhere.
    ///
    /// # Guarantees
    ///
    /// With the end of this function, or if it is dropped, all processes of the group end.
    pub(crate) async fn run(
        &self,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
        output: &mut impl Output,
        takes_errors: bool,
    ) -> io::Result<Ended> {
        let (reader, writer) = io::pipe()?;
        let errors = if takes_errors {
            Stdio::from(writer.try_clone()?)
        } else {
            Stdio::null()
        };
        let mut command = Command::new(&self.path);
        command
            .args(args)
            .stdin(Stdio::null())
            .stdout(writer)
            .stderr(errors)
            .process_group(0)
            .kill_on_drop(true);
        let mut child = command.spawn()?;
        let group = Group::of(child.id());
        // The command has the other end of the pipe.
        drop(command);
        let mut reader = Receiver::from_owned_fd(OwnedFd::from(reader))?;
        let ended = async {
            let read = async {
                let mut buffer = vec![0; READ_BYTES];
                loop {
                    match reader.read(&mut buffer).await? {
                        0 => return Ok(()),
                        read if output.take(&buffer[..read]) => {}
                        _ => return Err(io::ErrorKind::FileTooLarge.into()),
                    }
                }
            };
            let end = async {
                let status = child.wait().await;
                // A process that it has started may keep the pipe open.
                drop(group);
                status
            };
            let ((), status) = tokio::try_join!(read, end)?;
            Ok(Ended::Status(status))
        };
        timeout(self.limit, ended)
            .await
            .unwrap_or(Ok(Ended::TimedOut))
    }
}

/// Process group that is killed when it is dropped.
struct Group(Option<Pid>);

impl Group {
    fn of(leader: Option<u32>) -> Self {
        let leader = leader.and_then(|leader| i32::try_from(leader).ok());
        Self(leader.and_then(Pid::from_raw))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // Without any process, there is no such group.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Returns the first file of this name in the directories of a `PATH` that can be executed, or the name itself.
pub(crate) fn find(name: &str, path: &OsStr) -> PathBuf {
    let candidates = std::env::split_paths(path).map(|directory| directory.join(name));
    let mut found = candidates.filter(|candidate| is_executable(candidate));
    found.next().unwrap_or_else(|| PathBuf::from(name))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let metadata = path.metadata();
    metadata.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}
