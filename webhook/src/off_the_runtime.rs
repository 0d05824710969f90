//! Long synchronous work beside the async runtime.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Does long synchronous work without blocking the async runtime: another thread takes the place of this one, which serves
/// health probes and other reviews in the meantime.
///
/// Outside a multi-threaded runtime, it only does the work.
///
/// # Examples
///
/// ```
/// assert_eq!(lockstep_webhook::off_the_runtime(|| 6 * 7), 42);
/// ```
pub fn off_the_runtime<T>(work: impl FnOnce() -> T) -> T {
    let runtime = Handle::try_current();
    let is_shared =
        runtime.is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
    if is_shared {
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}
