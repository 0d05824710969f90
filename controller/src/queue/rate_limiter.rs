//! Rate limit for calls to other systems.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::FutureExt;
use futures::future::BoxFuture;
use governor::{DefaultDirectRateLimiter, Quota};
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, oneshot};
use tower::{Layer, Service};

use crate::queue::current_namespace;
use crate::queue::ready_keys::{Namespaced, Priority, ReadyKeys};

/// Token bucket, shared by its clones: every call takes a token and waits if there is none.
///
/// # Guarantees
///
/// The reconciliations of several namespaces take tokens in turn, however many of each wait: objects of one namespace do not
/// slow those of another one by more than one token for each of its own. Calls through a client with this layer wait in the
/// order in which they were made instead.
///
/// # Expected flow
///
/// An operator takes a token before each call to another system. As a layer of a client it limits each of the
/// client's calls. The renewal of a lease must not wait behind other calls and needs a client of its own.
///
/// ```
/// use std::num::NonZeroU32;
///
/// use lockstep_controller::RateLimiter;
///
/// # async fn list() {
/// let limiter = RateLimiter::new(NonZeroU32::new(10).unwrap(), NonZeroU32::new(20).unwrap());
/// for _page in 0..3 {
///     limiter.acquire().await;
///     // Send the call here.
/// }
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RateLimiter(Option<Arc<Bucket>>);

#[derive(Debug)]
struct Bucket {
    tokens: DefaultDirectRateLimiter,
    waiting: Mutex<Waiting>,
    /// Held by the call that waits for the next token, which it gives to the next call.
    next_token: AsyncMutex<()>,
}

/// Calls that wait for a token.
#[derive(Debug, Default)]
struct Waiting {
    ready: ReadyKeys<Call>,
    arrivals: u64,
}

/// Call that waits for a token.
#[derive(Debug)]
struct Call {
    namespace: String,
    has_token: oneshot::Sender<()>,
}

impl Namespaced for Call {
    fn namespace(&self) -> &str {
        &self.namespace
    }
}

impl RateLimiter {
    /// Returns a bucket that fills at a rate, up to a number of tokens that can be taken in one burst.
    pub fn new(per_second: NonZeroU32, burst: NonZeroU32) -> Self {
        let quota = Quota::per_second(per_second).allow_burst(burst);
        Self(Some(Arc::new(Bucket {
            tokens: DefaultDirectRateLimiter::direct(quota),
            waiting: Mutex::default(),
            next_token: AsyncMutex::default(),
        })))
    }

    /// Returns a bucket that is never empty.
    pub fn unlimited() -> Self {
        Self(None)
    }

    /// Takes a token, waiting until there is one.
    pub async fn acquire(&self) {
        if let Some(bucket) = &self.0 {
            bucket.acquire().await;
        }
    }
}

impl Bucket {
    async fn acquire(&self) {
        let mut has_token = self.enqueue();
        tokio::select! {
            biased;
            // An error cannot occur: the sender is kept until it is used.
            _ = &mut has_token => {}
            _next = self.next_token.lock() => {
                while has_token.try_recv().is_err() {
                    self.tokens.until_ready().await;
                    self.give_token();
                }
            }
        }
    }

    /// Adds a call to those that wait. The receiver gets its token.
    fn enqueue(&self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.waiting.lock();
        waiting.arrivals += 1;
        let position = (Priority::Event, waiting.arrivals);
        let call = Call {
            namespace: current_namespace::current(),
            has_token: sender,
        };
        waiting.ready.insert(position, call);
        receiver
    }

    /// Gives a token to the call whose turn it is, and that still waits.
    fn give_token(&self) {
        let mut waiting = self.waiting.lock();
        while let Some((_, call)) = waiting.ready.take() {
            waiting.ready.finish(&call);
            if call.has_token.send(()).is_ok() {
                return;
            }
        }
    }
}

impl<S> Layer<S> for RateLimiter {
    type Service = RateLimited<S>;

    fn layer(&self, inner: S) -> RateLimited<S> {
        RateLimited {
            inner,
            bucket: self.clone(),
            token: Token::Missing,
        }
    }
}

/// Service whose calls take a token each.
pub struct RateLimited<S> {
    inner: S,
    bucket: RateLimiter,
    token: Token,
}

/// Token of the next call.
enum Token {
    Missing,
    Waiting(BoxFuture<'static, ()>),
    Acquired,
}

impl<S: Service<R>, R> Service<R> for RateLimited<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        if matches!(self.token, Token::Missing) {
            let bucket = self.bucket.clone();
            self.token = Token::Waiting(async move { bucket.acquire().await }.boxed());
        }
        if let Token::Waiting(token) = &mut self.token {
            ready!(token.poll_unpin(context));
            self.token = Token::Acquired;
        }
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: R) -> Self::Future {
        self.token = Token::Missing;
        self.inner.call(request)
    }
}

#[cfg(test)]
mod tests {
    use tower::ServiceExt;

    use super::*;

    fn of(per_second: u32, burst: u32) -> RateLimiter {
        let count = |count| NonZeroU32::new(count).expect("not zero");
        RateLimiter::new(count(per_second), count(burst))
    }

    #[tokio::test]
    async fn namespaces_get_tokens_in_turn() {
        let rarely = of(20, 1);
        rarely.acquire().await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let call = |namespace: &'static str| {
            let (rarely, order) = (rarely.clone(), Arc::clone(&order));
            current_namespace::within(namespace, async move {
                rarely.acquire().await;
                order.lock().push(namespace);
            })
        };
        let calls: Vec<_> = ["a", "a", "a", "a", "b", "b"].map(call).into();
        // One that is given up keeps no token.
        assert_eq!(call("c").now_or_never(), None);
        futures::future::join_all(calls).await;
        assert_eq!(*order.lock(), ["a", "b", "a", "b", "a", "a"]);
    }

    #[tokio::test]
    async fn calls_beyond_the_burst_wait_for_a_token_and_clones_share_one_bucket() {
        let service = tower::service_fn(|call: u32| async move { Ok::<_, ()>(call) });
        let rarely = of(1, 3);
        for call in 0..3 {
            let response = rarely.layer(service).oneshot(call).now_or_never();
            assert_eq!(response, Some(Ok(call)));
        }
        let response = rarely.layer(service).oneshot(9).now_or_never();
        assert_eq!(response, None, "no token is left");
        let often = of(1_000, 1);
        often.acquire().await;
        often.acquire().await;
        let unlimited = RateLimiter::unlimited();
        for _ in 0..10_000 {
            assert_eq!(unlimited.acquire().now_or_never(), Some(()));
        }
    }
}
