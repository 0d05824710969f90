//! Async runtime for controllers.

use std::time::Duration;

use tokio::runtime::Builder;

/// Stack of a thread: the steps of a reconciliation are nested futures, which take megabytes in a program without optimization.
/// The system provides only the pages that are used.
const STACK_BYTES: usize = 8 << 20;

/// Time after which a thread for long work ends that has nothing to do. The memory that it has freed is given back then.
const KEEP_ALIVE: Duration = Duration::from_secs(1);

/// Returns the configuration of an async runtime for a process whose work is the reconciliations of controllers.
///
/// It has one thread for tasks. The task of a controller passes each request on to the task of a connection and gets the
/// response from there: between two threads, the system calls that wake the other one take a fifth of the CPU time. Work that
/// takes long belongs on another thread, by [`spawn_blocking`](tokio::task::spawn_blocking) or
/// [`block_in_place`](tokio::task::block_in_place).
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
