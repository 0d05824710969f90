//! Async runtime for controllers.

use std::time::Duration;

use tokio::runtime::Builder;

/// Stack of a thread: the steps of a reconciliation are nested futures, which take megabytes in a program without optimization.
/// The system provides only the pages that are used.
const STACK_BYTES: usize = 8 << 20;

/// Time after which a thread for long work ends that has nothing to do. The memory that it has freed is given back then.
const KEEP_ALIVE: Duration = Duration::from_secs(1);

/// Returns the configuration of an async runtime for the reconciliations of the controllers of a process.
///
/// It has one thread for tasks. The task of a controller passes each request on to the task of a connection and gets the
/// response from there: between two threads, the system calls that wake the other one take a fifth of the CPU time. Work that
/// takes long belongs on another thread, by [`spawn_blocking`](tokio::task::spawn_blocking). Neither on this thread nor with
/// [`block_in_place`](tokio::task::block_in_place) may it be done: all reconciliations and the renewal of the Lease would wait.
/// Health probes belong on another runtime, as in the SDK: they are then answered whatever a reconciliation does.
///
/// # Examples
///
/// ```
/// let runtime = lockstep_controller::runtime_builder().build()?;
/// assert_eq!(runtime.block_on(async { 6 * 7 }), 42);
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use]
pub fn runtime_builder() -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder
        .worker_threads(1)
        .thread_stack_size(STACK_BYTES)
        .thread_keep_alive(KEEP_ALIVE)
        .enable_all();
    builder
}
