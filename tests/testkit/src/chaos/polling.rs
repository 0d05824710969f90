//! Waiting for conditions inside this process.

use std::time::{Duration, Instant};

use tokio::time::sleep;

const INTERVAL: Duration = Duration::from_millis(4);

/// Waits until a condition holds, at most for `limit`. Returns true if it holds.
pub(crate) async fn until(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    loop {
        if holds() {
            return true;
        }
        if started.elapsed() > limit {
            return false;
        }
        sleep(INTERVAL).await;
    }
}

/// Waits until a number has not changed for `period`, at most for `limit`. Returns true if it has not.
pub(crate) async fn until_quiet(
    limit: Duration,
    period: Duration,
    mut activity: impl FnMut() -> u64,
) -> bool {
    let (mut last, mut since) = (activity(), Instant::now());
    until(limit, || {
        let now = activity();
        if now != last {
            (last, since) = (now, Instant::now());
        }
        since.elapsed() >= period
    })
    .await
}
