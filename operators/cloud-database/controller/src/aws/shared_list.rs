//! List of a region that the first creations of many objects share. With a list for each, a thousand objects that are applied at
//! once would list a region a thousand times.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Age after which a list is not used any more: what it shows may have been removed so that an object goes on.
const MAX_AGE: Duration = Duration::from_secs(30);

/// Difference of the clocks of this process and of the API server, with the fraction of a second that a creation time does not
/// have.
const CLOCK_SKEW: Duration = Duration::from_secs(6);

/// Shared list, which one task at a time requests.
#[derive(Debug)]
pub(crate) struct SharedList<T, E>(Mutex<Option<Known<T, E>>>);

#[derive(Debug)]
struct Known<T, E> {
    requested: Instant,
    requested_at: Timestamp,
    answer: Result<Arc<[T]>, E>,
}

impl<T, E> Default for SharedList<T, E> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T, E: Clone> SharedList<T, E> {
    /// Returns a list that was requested after an object was created, so that it contains what earlier objects have left.
    ///
    /// # Errors
    ///
    /// The error of the request. All that have waited for it get the same one: without an answer of AWS, they would otherwise
    /// wait for one time limit after the other.
    pub(crate) async fn after(
        &self,
        created: Option<Timestamp>,
        request: impl AsyncFnOnce() -> Result<Vec<T>, E>,
    ) -> Result<Arc<[T]>, E> {
        let asked = Instant::now();
        self.serving(|list| list.serves(asked, created), request)
            .await
    }

    /// Returns a list that was requested after a time, so that it does not repeat the answer to an earlier question.
    ///
    /// # Errors
    ///
    /// As [`Self::after`].
    pub(crate) async fn again(
        &self,
        since: Instant,
        request: impl AsyncFnOnce() -> Result<Vec<T>, E>,
    ) -> Result<Arc<[T]>, E> {
        let asked = Instant::now();
        let serves = |list: &Known<T, E>| {
            list.requested >= asked || (list.requested > since && list.is_recent())
        };
        self.serving(serves, request).await
    }

    async fn serving(
        &self,
        serves: impl FnOnce(&Known<T, E>) -> bool,
        request: impl AsyncFnOnce() -> Result<Vec<T>, E>,
    ) -> Result<Arc<[T]>, E> {
        let mut known = self.0.lock().await;
        if let Some(list) = known.as_ref().filter(|list| serves(list)) {
            return list.answer.clone();
        }
        let (requested, requested_at) = (Instant::now(), Timestamp::now());
        let answer = request().await.map(Arc::from);
        *known = Some(Known {
            requested,
            requested_at,
            answer: answer.clone(),
        });
        answer
    }
}

impl<T, E> Known<T, E> {
    fn serves(&self, asked: Instant, created: Option<Timestamp>) -> bool {
        let is_of_later_request = self.requested >= asked;
        let is_later = created.is_some_and(|created| self.requested_at > created + CLOCK_SKEW);
        is_of_later_request || (is_later && self.is_recent())
    }

    fn is_recent(&self) -> bool {
        self.answer.is_ok() && self.requested.elapsed() < MAX_AGE
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_list_serves_the_objects_that_were_created_before_it_was_requested() {
        let list = SharedList::default();
        let count = AtomicUsize::new(0);
        let requests = async |created: Option<Timestamp>| {
            tokio::time::advance(Duration::from_millis(1)).await;
            let request = async || {
                tokio::task::yield_now().await;
                Ok::<_, ()>(vec![count.fetch_add(1, Ordering::SeqCst)])
            };
            list.after(created, request).await.expect("a list");
            count.load(Ordering::SeqCst)
        };
        let (now, hour) = (Timestamp::now(), Duration::from_hours(1));
        assert_eq!(requests(Some(now - hour)).await, 1);
        assert_eq!(requests(Some(now - hour)).await, 1);
        assert_eq!(requests(Some(now)).await, 2, "it may be a later object");
        assert_eq!(requests(None).await, 3);
        tokio::time::advance(MAX_AGE).await;
        assert_eq!(requests(Some(now - hour)).await, 4, "it is too old");
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_is_asked_again_unless_another_has_asked_it_meanwhile() {
        let list = SharedList::<_, ()>::default();
        let before = Instant::now();
        tokio::time::advance(Duration::from_millis(1)).await;
        let first = list.again(before, async || Ok(vec![1])).await;
        assert_eq!(first.as_deref(), Ok(&[1][..]));
        let same = list.again(before, async || Ok(vec![2])).await;
        assert_eq!(same.as_deref(), Ok(&[1][..]));
        let now = Instant::now();
        tokio::time::advance(Duration::from_millis(1)).await;
        let other = list.again(now, async || Ok(vec![2])).await;
        assert_eq!(other.as_deref(), Ok(&[2][..]));
        tokio::time::advance(MAX_AGE).await;
        let late = list.again(now, async || Ok(vec![3])).await;
        assert_eq!(late.as_deref(), Ok(&[3][..]));
    }

    #[tokio::test]
    async fn one_answer_serves_all_that_wait_for_it() {
        for answer in [Ok(vec![1]), Err("no answer")] {
            let list = SharedList::default();
            let count = AtomicUsize::new(0);
            let request = async || {
                tokio::task::yield_now().await;
                count.fetch_add(1, Ordering::SeqCst);
                answer.clone()
            };
            let all = std::iter::repeat_with(|| list.after(None, request)).take(100);
            futures::future::join_all(all).await;
            let requests = count.into_inner();
            assert_eq!(
                requests, 2,
                "all but the first have asked before the second"
            );
        }
    }

    #[tokio::test]
    async fn an_error_serves_nobody_who_asks_later() {
        let list = SharedList::default();
        let created = Some(Timestamp::now() - Duration::from_hours(1));
        let failed = list.after(created, async || Err("no answer")).await;
        assert_eq!(failed, Err("no answer"));
        let listed = list.after(created, async || Ok(vec![1])).await;
        assert_eq!(listed.as_deref(), Ok(&[1][..]));
    }
}
