//! What both servers share: the runtime and the signals that end it.

use std::num::NonZeroUsize;
use std::time::Duration;

use anyhow::{Context, anyhow};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// How many threads may wait for another process. Each that does leaves its place to another, which answers
/// meanwhile.
pub(crate) const MOST_WAITING_THREADS: usize = 128;

/// How long threads that have something to end are waited for, once the server has ended.
const SHUTDOWN_GRACE_PERIOD: Duration = Duration::from_secs(1);

/// Runs a server to its end.
pub(crate) fn block_on<T>(server: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .max_blocking_threads(MOST_WAITING_THREADS + cores.max(4))
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let ended = runtime.block_on(server);
    // What waits for another process then does so for nobody.
    runtime.shutdown_timeout(SHUTDOWN_GRACE_PERIOD);
    ended
}

/// Tells when the process is asked to end, by SIGTERM or Ctrl-C. A second signal ends it at once.
pub(crate) fn shutdown_signal() -> anyhow::Result<watch::Receiver<bool>> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    let (tell, told) = watch::channel(false);
    tokio::spawn(async move {
        let mut next = async || {
            tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
            }
        };
        let name = next().await;
        tracing::info!(signal = name, "stopping");
        tell.send_replace(true);
        let name = next().await;
        tracing::warn!(signal = name, "a second signal: aborting");
        std::process::exit(1);
    });
    Ok(told)
}

/// Resolves once the process has been asked to end.
pub(crate) async fn stopped(mut told: watch::Receiver<bool>) {
    // An error means that nobody can tell any more: then there is nothing to wait for.
    let _ = told.wait_for(|stop| *stop).await;
}

/// Reads a duration such as `30s`, `10m` or `1h 30m`.
pub(crate) fn duration(text: &str) -> anyhow::Result<Duration> {
    let signed: jiff::SignedDuration = text
        .parse()
        .map_err(|_| anyhow!("`{text}` is no duration; write, for example, 30s, 10m or 1h 30m"))?;
    Duration::try_from(signed).map_err(|_| anyhow!("a duration must not be negative"))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn who_waits_for_another_process_keeps_no_server_from_its_end() {
        let (release, released) = channel();
        let ended = block_on(async {
            tokio::task::spawn_blocking(move || released.recv_timeout(Duration::from_mins(1)));
            Ok(())
        });
        assert!(ended.is_ok());
        release.send(()).expect("it waits still");
    }
}
