//! Concurrent execution of many futures.

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;

/// Runs all futures to completion. Only the futures that were woken are polled.
pub(crate) async fn together<'a>(all: impl IntoIterator<Item = BoxFuture<'a, ()>>) {
    let mut running: FuturesUnordered<_> = all.into_iter().collect();
    while running.next().await.is_some() {}
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Poll;

    use futures::FutureExt;
    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn only_a_future_that_was_woken_is_polled() {
        let polls = AtomicUsize::new(0);
        let go_on = [(); 3].map(|()| Notify::new());
        let mut waiting: Vec<_> = go_on
            .iter()
            .map(|go_on| Box::pin(go_on.notified()))
            .collect();
        let counted = waiting.iter_mut().map(|waiting| {
            let polls = &polls;
            poll_fn(move |context| {
                polls.fetch_add(1, Ordering::Relaxed);
                waiting.as_mut().poll(context)
            })
            .boxed()
        });
        let mut all = Box::pin(together(counted));
        let mut polled = async || {
            let before = polls.load(Ordering::Relaxed);
            let is_done = poll_fn(|context| Poll::Ready(all.as_mut().poll(context))).await;
            (is_done.is_ready(), polls.load(Ordering::Relaxed) - before)
        };
        assert_eq!(polled().await, (false, 3), "each one at first");
        go_on[1].notify_one();
        assert_eq!(polled().await, (false, 1));
        assert_eq!(polled().await, (false, 0));
        go_on[0].notify_one();
        go_on[2].notify_one();
        assert_eq!(polled().await, (true, 2));
    }
}
