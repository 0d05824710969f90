//! Pool of VRL workers: a few processes that compile programs for this one. Each of them lives until it fails.

use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lockstep_sdk::off_the_runtime;
use lockstep_shared_validation::{MAX_REPORTED, max_reported};
use lockstep_vector_api::{Compiler, Program, VrlDiagnostic};
use rustix::process::Signal;

use crate::worker::{ALLOCATOR, CompileJob, WorkerLimits};

/// Maximum number of workers. Their memory limits and the webhook must fit into one container.
const MAX_WORKERS: usize = 2;

/// Maximum number of urgent configurations that wait for a worker.
const MAX_WAITING: usize = lockstep_sdk::MAX_WAITING_THREADS;

/// Maximum time for the programs of an urgent configuration: less than an API server waits for a review.
const REVIEW_DEADLINE: Duration = Duration::from_secs(8);

/// Maximum time for the programs of a configuration that is not urgent, from the moment when it gets a worker. On
/// a busy machine, which its author cannot change, only the CPU time of the programs is a fair measure.
const RECONCILE_DEADLINE: Duration = Duration::from_mins(1);

/// Maximum time that a configuration that is not urgent waits for a worker. All configurations before it have time
/// limits.
const MAX_QUEUE_TIME: Duration = Duration::from_hours(1);

/// Workers for programs of other people.
static SHARED: WorkerPool = WorkerPool::new(WorkerLimits::SHARED);

/// Workers for programs that their author validates.
static OFFLINE: WorkerPool = WorkerPool::new(WorkerLimits::OFFLINE);

struct WorkerPool {
    limits: WorkerLimits,
    known: Mutex<PoolState>,
    returned: Condvar,
}

struct PoolState {
    idle: Vec<Worker>,
    at_work: usize,
    waiting: usize,
}

/// A worker process and the connection to it.
struct Worker {
    process: Child,
    stream: BufReader<UnixStream>,
}

/// Compiler for the programs of one configuration: all of them use the same worker.
struct PooledCompiler {
    pool: &'static WorkerPool,
    worker: Option<Worker>,
    /// Deadline. If the configuration is not urgent, the deadline is set when it gets a worker.
    until: Option<Instant>,
}

impl PooledCompiler {
    fn boxed(pool: &'static WorkerPool, until: Option<Instant>) -> Box<dyn Compiler> {
        Box::new(Self {
            pool,
            worker: None,
            until,
        })
    }
}

/// Returns a compiler for the programs of a configuration that is not urgent.
pub(crate) fn compiler() -> Box<dyn Compiler> {
    PooledCompiler::boxed(&SHARED, None)
}

/// Returns a compiler with larger limits, for the programs of a configuration that its author validates.
pub(crate) fn offline_compiler() -> Box<dyn Compiler> {
    PooledCompiler::boxed(&OFFLINE, None)
}

/// Returns a compiler for an urgent configuration, whose caller waits: the time until it gets a worker counts,
/// too.
pub(crate) fn compiler_with_deadline() -> Box<dyn Compiler> {
    PooledCompiler::boxed(&SHARED, Some(Instant::now() + REVIEW_DEADLINE))
}

impl Compiler for PooledCompiler {
    fn compile(&mut self, program: &Program<'_>) -> Result<Vec<VrlDiagnostic>, String> {
        off_the_runtime(|| self.compile_in_worker(program))
    }
}

impl PooledCompiler {
    fn compile_in_worker(&mut self, program: &Program<'_>) -> Result<Vec<VrlDiagnostic>, String> {
        let is_first = self.worker.is_none();
        let mut worker = match self.worker.take() {
            Some(worker) => worker,
            None => self.pool.take(self.until)?,
        };
        let until = *self
            .until
            .get_or_insert_with(|| Instant::now() + RECONCILE_DEADLINE);
        let order = CompileJob {
            is_first,
            reports_all: max_reported() > MAX_REPORTED,
            program: program.clone(),
        };
        match worker.compile_in_worker(&order, until) {
            Ok(findings) => {
                self.worker = Some(worker);
                Ok(findings)
            }
            Err(error) => {
                let problem = worker.end(&error, &self.pool.limits);
                self.pool.give_back(None);
                tracing::warn!(problem, "cannot compile a VRL program");
                Err(problem)
            }
        }
    }
}

impl Drop for PooledCompiler {
    fn drop(&mut self) {
        if let Some(worker) = self.worker.take() {
            self.pool.give_back(Some(worker));
        }
    }
}

impl WorkerPool {
    const fn new(limits: WorkerLimits) -> Self {
        Self {
            limits,
            known: Mutex::new(PoolState {
                idle: Vec::new(),
                at_work: 0,
                waiting: 0,
            }),
            returned: Condvar::new(),
        }
    }

    fn known(&self) -> MutexGuard<'_, PoolState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a worker for exclusive use, after waiting for one if necessary.
    fn take(&self, until: Option<Instant>) -> Result<Worker, String> {
        let mut known = self.known();
        if until.is_some() && known.waiting >= MAX_WAITING {
            return Err("too many programs are waiting to be compiled; retry later".to_owned());
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
            return Err("too many programs are being compiled; retry later".to_owned());
        }
        known.at_work += 1;
        let idle = known.idle.pop();
        drop(known);
        match idle.map_or_else(|| Worker::start(&self.limits), Ok) {
            Ok(worker) => Ok(worker),
            Err(error) => {
                self.give_back(None);
                Err(format!(
                    "cannot start a process that compiles programs: {error}"
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
    fn start(limits: &WorkerLimits) -> io::Result<Self> {
        let (local, remote) = UnixStream::pair()?;
        let process = Command::new(this_program()?)
            .args(["vector", "vrl-worker"])
            .args(limits.arguments())
            // The worker needs neither the environment and open files of this process nor signals from its
            // terminal.
            .env_clear()
            .env(ALLOCATOR.0, ALLOCATOR.1)
            .process_group(0)
            .stdin(Stdio::from(OwnedFd::from(remote.try_clone()?)))
            .stdout(Stdio::from(OwnedFd::from(remote)))
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self {
            process,
            stream: BufReader::new(local),
        })
    }

    fn compile_in_worker(
        &mut self,
        order: &CompileJob<'_>,
        until: Instant,
    ) -> io::Result<Vec<VrlDiagnostic>> {
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

    /// Ends a process that did not answer, and returns the reason why it did not.
    fn end(mut self, error: &io::Error, limits: &WorkerLimits) -> String {
        let is_slow = matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock);
        // The process may have ended already.
        let _ = is_slow.then(|| self.process.kill());
        drop(self.stream);
        let why = match self.process.wait() {
            Err(error) => error.to_string(),
            Ok(_) if is_slow => {
                return "the program was not compiled in time: it exceeded the time limit, because the machine is busy \
                        or the program too complex; retry later, or divide it among several transforms"
                    .to_owned();
            }
            Ok(status) => ended(status, limits),
        };
        format!(
            "the program cannot be compiled within its resource limits: {why}; divide it among several transforms"
        )
    }
}

/// Returns why a process with these limits ended.
pub(crate) fn ended(status: ExitStatus, limits: &WorkerLimits) -> String {
    let is = |signal: Signal| status.signal() == Some(signal.as_raw());
    if is(Signal::XCPU) {
        format!("it takes more than {} s of CPU time", limits.cpu_seconds)
    } else if is(Signal::ABORT) || is(Signal::SEGV) || is(Signal::KILL) {
        format!("it takes more memory than {} MiB", limits.memory_mib)
    } else {
        format!("the process ended with {status}")
    }
}

/// Returns the path of this program, which remains valid when its file is replaced.
pub(crate) fn this_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        Ok(PathBuf::from("/proc/self/exe"))
    } else {
        std::env::current_exe()
    }
}
