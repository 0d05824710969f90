//! Who compiles programs for this process: other processes, a few, each of which lives until it fails.

use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::runtime::{Handle, RuntimeFlavor};
use vector_rules::{Compiler, Program, VrlDiagnostic};

use super::worker::{ALLOCATOR, CompileJob, MEMORY_MIB, SECONDS};

/// How many there are at most. All they may take must fit beside the gate into one container.
const MAX_WORKERS: usize = 2;

/// How many configurations may wait for one, of all that are in a hurry.
const MAX_WAITING: usize = crate::serving::MOST_WAITING_THREADS;

/// How long the programs of one configuration are waited for: less than an API server waits for a review.
const REVIEW_DEADLINE: Duration = Duration::from_secs(8);

/// How long those of one that nobody waits for are, once it is its turn: on a machine that has much to do, which is
/// not its author's, only the processor that they take tells.
const RECONCILE_DEADLINE: Duration = Duration::from_mins(1);

/// How long one that nobody waits for waits for its turn: all before it have their end.
const MAX_QUEUE_TIME: Duration = Duration::from_hours(1);

static WORKERS: WorkerPool = WorkerPool {
    known: Mutex::new(PoolState {
        idle: Vec::new(),
        at_work: 0,
        waiting: 0,
    }),
    returned: Condvar::new(),
};

struct WorkerPool {
    known: Mutex<PoolState>,
    returned: Condvar,
}

struct PoolState {
    idle: Vec<Worker>,
    at_work: usize,
    waiting: usize,
}

/// One process, and the way to it.
struct Worker {
    process: Child,
    stream: BufReader<UnixStream>,
}

/// The programs of one configuration: all go to the same process.
struct PooledCompiler {
    worker: Option<Worker>,
    /// When it must have ended; of one that nobody waits for, not known before its turn.
    until: Option<Instant>,
}

/// A compiler for the programs of a configuration.
pub(crate) fn compiler() -> Box<dyn Compiler> {
    let (worker, until) = (None, None);
    Box::new(PooledCompiler { worker, until })
}

/// One for a configuration that somebody waits for: the time until it is its turn counts, too.
pub(crate) fn compiler_with_deadline() -> Box<dyn Compiler> {
    let (worker, until) = (None, Some(Instant::now() + REVIEW_DEADLINE));
    Box::new(PooledCompiler { worker, until })
}

impl Compiler for PooledCompiler {
    fn compile(&mut self, program: &Program<'_>) -> Result<Vec<VrlDiagnostic>, String> {
        off_the_runtime(|| self.ask(program))
    }
}

/// Waits where nobody else does: reviews that need no compiler are answered meanwhile.
fn off_the_runtime<T>(wait: impl FnOnce() -> T) -> T {
    let runtime = Handle::try_current();
    let is_shared = runtime.is_ok_and(|it| it.runtime_flavor() == RuntimeFlavor::MultiThread);
    if is_shared {
        tokio::task::block_in_place(wait)
    } else {
        wait()
    }
}

impl PooledCompiler {
    fn ask(&mut self, program: &Program<'_>) -> Result<Vec<VrlDiagnostic>, String> {
        let is_first = self.worker.is_none();
        let mut worker = match self.worker.take() {
            Some(worker) => worker,
            None => WORKERS.take(self.until)?,
        };
        let until = *self
            .until
            .get_or_insert_with(|| Instant::now() + RECONCILE_DEADLINE);
        let order = CompileJob {
            is_first,
            program: program.clone(),
        };
        match worker.ask(&order, until) {
            Ok(findings) => {
                self.worker = Some(worker);
                Ok(findings)
            }
            Err(error) => {
                let problem = worker.end(&error);
                WORKERS.give_back(None);
                tracing::warn!(problem, "a program was not compiled");
                Err(problem)
            }
        }
    }
}

impl Drop for PooledCompiler {
    fn drop(&mut self) {
        if let Some(worker) = self.worker.take() {
            WORKERS.give_back(Some(worker));
        }
    }
}

impl WorkerPool {
    fn known(&self) -> MutexGuard<'_, PoolState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One that does nothing else, once there is one.
    fn take(&self, until: Option<Instant>) -> Result<Worker, String> {
        let mut known = self.known();
        if until.is_some() && known.waiting >= MAX_WAITING {
            return Err("too many programs are to be compiled; try again".to_owned());
        }
        known.waiting += 1;
        let left = until.map_or(MAX_QUEUE_TIME, |until| {
            until.saturating_duration_since(Instant::now())
        });
        let waited = self
            .returned
            .wait_timeout_while(known, left, |known| known.at_work >= MAX_WORKERS);
        let (mut known, _) = waited.unwrap_or_else(PoisonError::into_inner);
        known.waiting -= 1;
        if known.at_work >= MAX_WORKERS {
            return Err("too many programs are being compiled; try again".to_owned());
        }
        known.at_work += 1;
        let idle = known.idle.pop();
        drop(known);
        match idle.map_or_else(Worker::start, Ok) {
            Ok(worker) => Ok(worker),
            Err(error) => {
                self.give_back(None);
                Err(format!(
                    "no process can be started that compiles programs: {error}"
                ))
            }
        }
    }

    fn give_back(&self, worker: Option<Worker>) {
        let mut known = self.known();
        known.at_work -= 1;
        known.idle.extend(worker);
        drop(known);
        self.returned.notify_one();
    }
}

impl Worker {
    fn start() -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let process = Command::new(this_program()?)
            .args(["vector", "compile"])
            // It needs nothing of what this process knows or has open, nor what is typed at its terminal.
            .env_clear()
            .env(ALLOCATOR.0, ALLOCATOR.1)
            .process_group(0)
            .stdin(Stdio::from(OwnedFd::from(theirs.try_clone()?)))
            .stdout(Stdio::from(OwnedFd::from(theirs)))
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self {
            process,
            stream: BufReader::new(ours),
        })
    }

    fn ask(&mut self, order: &CompileJob<'_>, until: Instant) -> io::Result<Vec<VrlDiagnostic>> {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        let mut line = serde_json::to_string(order)?;
        line.push('\n');
        let stream = self.stream.get_mut();
        stream.set_write_timeout(Some(left))?;
        stream.set_read_timeout(Some(left))?;
        stream.write_all(line.as_bytes())?;
        line.clear();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_str(&line)?)
    }

    /// Ends a process that did not answer, and tells why it did not.
    fn end(mut self, error: &io::Error) -> String {
        let is_slow = matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock);
        // It may have ended already.
        let _ = is_slow.then(|| self.process.kill());
        drop(self.stream);
        let why = match self.process.wait() {
            Err(error) => error.to_string(),
            Ok(_) if is_slow => "it had not ended in time".to_owned(),
            Ok(status) => ended(status),
        };
        format!(
            "the program cannot be compiled within what there is for it: {why}; divide it among several transforms"
        )
    }
}

fn ended(status: ExitStatus) -> String {
    let is = |signal: Signal| status.signal() == Some(signal.as_raw());
    if is(Signal::XCPU) {
        format!("it takes the processor more than {SECONDS} s")
    } else if is(Signal::ABORT) || is(Signal::SEGV) || is(Signal::KILL) {
        format!("it takes more memory than {MEMORY_MIB} MiB")
    } else {
        format!("the compiler ended with {status}")
    }
}

/// This program, also where another has been put in its place.
fn this_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        Ok(PathBuf::from("/proc/self/exe"))
    } else {
        std::env::current_exe()
    }
}
