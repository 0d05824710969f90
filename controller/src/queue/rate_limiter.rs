//! Rate limit for calls to other systems.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::FutureExt;
use futures::future::BoxFuture;
use governor::{DefaultDirectRateLimiter, Quota};
use tower::{Layer, Service};

/// Token bucket, shared by its clones: every call takes a token and waits if there is none.
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
pub struct RateLimiter(Option<Arc<DefaultDirectRateLimiter>>);

impl RateLimiter {
    /// Returns a bucket that fills at a rate, up to a number of tokens that can be taken in one burst.
    pub fn new(per_second: NonZeroU32, burst: NonZeroU32) -> Self {
        let quota = Quota::per_second(per_second).allow_burst(burst);
        Self(Some(Arc::new(DefaultDirectRateLimiter::direct(quota))))
    }

    /// Returns a bucket that is never empty.
    pub fn unlimited() -> Self {
        Self(None)
    }

    /// Takes a token, waiting until there is one.
    pub async fn acquire(&self) {
        if let Some(limiter) = &self.0 {
            limiter.until_ready().await;
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
