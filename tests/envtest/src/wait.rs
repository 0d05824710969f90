//! Waiting for a condition.

use std::time::{Duration, Instant};

use crate::error::Error;

/// Interval between the first checks of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum interval between two checks of a condition. In between, the interval is a tenth of the time that has passed:
/// the checks of tests that run at the same time would need much of the CPU time for which the others wait.
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Default deadline, generous: a busy machine with two cores must not fail a test.
const DEADLINE: Duration = Duration::from_mins(1);

/// Waits until `condition` returns a value.
///
/// ```
/// use lockstep_envtest::eventually;
///
/// # async fn example() -> Result<(), lockstep_envtest::Error> {
/// let mut attempts = 0;
/// let found = eventually("the third attempt", async || {
///     attempts += 1;
///     (attempts == 3).then_some(attempts)
/// });
/// assert_eq!(found.await?, 3);
/// # Ok(())
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
/// ```
pub async fn eventually<T>(
    what: &str,
    condition: impl AsyncFnMut() -> Option<T>,
) -> Result<T, Error> {
    eventually_within(DEADLINE, what, condition).await
}

/// Waits until `condition` returns a value, at most for `deadline`.
pub async fn eventually_within<T>(
    deadline: Duration,
    what: &str,
    mut condition: impl AsyncFnMut() -> Option<T>,
) -> Result<T, Error> {
    let started = Instant::now();
    loop {
        if let Some(value) = condition().await {
            return Ok(value);
        }
        if started.elapsed() > deadline {
            return Err(Error::Timeout {
                what: what.to_owned(),
                seconds: deadline.as_secs(),
                hint: String::new(),
            });
        }
        let interval = started.elapsed() / 10;
        tokio::time::sleep(interval.clamp(POLL_INTERVAL, MAX_POLL_INTERVAL)).await;
    }
}

/// Asserts that an observed value does not change during a period.
///
/// # Panics
///
/// If the value changes.
pub async fn stays<T: PartialEq + std::fmt::Debug>(
    period: Duration,
    what: &str,
    mut observe: impl AsyncFnMut() -> T,
) {
    let started = Instant::now();
    let first = observe().await;
    while started.elapsed() < period {
        tokio::time::sleep(POLL_INTERVAL).await;
        assert_eq!(
            observe().await,
            first,
            "{what} changed after {:?}",
            started.elapsed()
        );
    }
}
