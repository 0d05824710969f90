//! The async runtime and the shutdown signals of all commands that serve.

use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow};
use lockstep_controller::runtime_builder;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::watch;

use crate::logging;
use crate::server::signals::Signals;

/// Maximum number of threads that wait for another process. Each of them is replaced by another thread, which
/// serves in the meantime.
pub const MAX_WAITING_THREADS: usize = 128;

/// Time after which a thread ends that has nothing to do. The allocator keeps memory that a thread has freed for as long as the
/// thread exists: the next large request, on another thread, would need its own.
const THREAD_KEEP_ALIVE: Duration = Duration::ZERO;

/// Time that the runtime waits for blocking threads after the server has ended.
const SHUTDOWN_GRACE_PERIOD: Duration = Duration::from_secs(1);

/// Runs a server until it ends, with a thread for each core.
pub(crate) fn block_on<T>(server: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let mut builder = runtime_builder();
    builder
        .worker_threads(cores())
        .thread_keep_alive(THREAD_KEEP_ALIVE);
    let runtime = build(builder)?;
    let ended = runtime.block_on(server);
    // No result is needed from threads that still wait for another process.
    runtime.shutdown_timeout(SHUTDOWN_GRACE_PERIOD);
    ended
}

/// Runs a server until it ends, as [`block_on`], with a runtime for reconciliations beside it, which it gets the handle of.
/// However long a reconciliation keeps its thread, the server goes on.
pub(crate) fn block_on_with_reconciliations<F>(
    server: impl FnOnce(Handle) -> F,
) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let reconciliations = build(runtime_builder())?;
    let server = server(reconciliations.handle().clone());
    // Spawned, because each response would have to wake this thread otherwise.
    let ended = block_on(async { tokio::spawn(server).await? });
    reconciliations.shutdown_timeout(SHUTDOWN_GRACE_PERIOD);
    ended
}

/// Starts a runtime with this configuration.
fn build(mut builder: Builder) -> anyhow::Result<Runtime> {
    builder
        .max_blocking_threads(MAX_WAITING_THREADS + cores().max(4))
        .build()
        .context("cannot start the runtime")
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Runs a server of a subcommand, with the logging of all commands that serve, until it ends. Its argument turns true on
/// SIGTERM or Ctrl-C.
///
/// ```no_run
/// use std::process::ExitCode;
///
/// use lockstep_sdk::run_server;
///
/// /// Serves until SIGTERM.
/// fn serve() -> ExitCode {
///     run_server(async |mut stop| {
///         stop.wait_for(|stop| *stop).await?;
///         Ok(())
///     })
/// }
/// ```
pub fn run_server<F>(server: impl FnOnce(watch::Receiver<bool>) -> F) -> ExitCode
where
    F: Future<Output = anyhow::Result<()>>,
{
    logging::start(None);
    let ended = block_on(async { server(shutdown_signal()?).await });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "the server has failed");
            ExitCode::FAILURE
        }
    }
}

/// Returns a channel that turns true on SIGTERM or Ctrl-C. A second signal exits the process immediately.
pub(crate) fn shutdown_signal() -> anyhow::Result<watch::Receiver<bool>> {
    let mut signals = Signals::listen()?;
    let (sender, stop) = watch::channel(false);
    tokio::spawn(async move {
        let name = signals.next().await;
        tracing::info!(signal = name, "stopping");
        sender.send_replace(true);
        let name = signals.next().await;
        tracing::warn!(
            signal = name,
            "received a second signal; exiting immediately"
        );
        std::process::exit(1);
    });
    Ok(stop)
}

/// Resolves when a shutdown signal has been received.
pub(crate) async fn stopped(mut stop: watch::Receiver<bool>) {
    // An error means that the sender is gone: no signal can arrive any more.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Parses a duration such as `30s`, `10m` or `1h 30m`.
///
/// ```
/// use std::time::Duration;
///
/// use lockstep_sdk::duration;
///
/// assert_eq!(duration("1h 30m")?, Duration::from_mins(90));
/// assert!(duration("90").is_err());
/// # Ok::<(), lockstep_sdk::anyhow::Error>(())
/// ```
pub fn duration(text: &str) -> anyhow::Result<Duration> {
    let signed: jiff::SignedDuration = text
        .parse()
        .map_err(|_| anyhow!("`{text}` is not a duration; examples: 30s, 10m, 1h 30m"))?;
    Duration::try_from(signed).map_err(|_| anyhow!("a duration must not be negative"))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::sync::{Arc, Mutex};
    use std::time::Instant;

    use anyhow::ensure;

    use super::*;

    #[test]
    fn reconciliations_that_keep_their_threads_do_not_delay_the_server() {
        let (release, released) = channel::<()>();
        let released = Arc::new(Mutex::new(released));
        let ended = block_on_with_reconciliations(|reconciliations| async move {
            for _ in 0..2 * cores() {
                let released = Arc::clone(&released);
                reconciliations.spawn(async move {
                    let released = released.lock().expect("a channel");
                    // If the server does not go on, nothing else ends this.
                    released.recv_timeout(Duration::from_secs(5))
                });
            }
            let started = Instant::now();
            // More often than other tasks can be preferred to this one.
            for _ in 0..1_000 {
                tokio::task::yield_now().await;
            }
            drop(release);
            ensure!(started.elapsed() < Duration::from_secs(5), "delayed");
            Ok(())
        });
        ended.expect("the server goes on");
    }

    #[test]
    fn a_thread_that_waits_for_another_process_does_not_delay_shutdown() {
        let (release, released) = channel();
        let ended = block_on(async {
            tokio::task::spawn_blocking(move || released.recv_timeout(Duration::from_mins(1)));
            Ok(())
        });
        assert!(ended.is_ok());
        release.send(()).expect("the thread still waits");
    }
}
