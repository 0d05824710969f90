//! Authentication and authorization of clients by the API server: `TokenReview` and `SubjectAccessReview`.

use std::num::NonZeroUsize;
use std::time::Duration;

use futures::future::BoxFuture;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::Client;
use kube::api::{Api, PostParams};
use lru::LruCache;
use parking_lot::Mutex;
use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

/// Path that the API server is asked about: the one in the roles that Prometheus usually has.
const PATH: &str = "/metrics";

/// Time for which an allowed token is not reviewed again. A revoked right or token is refused after this time.
const ALLOWED_FOR: Duration = Duration::from_mins(1);

/// Time for which a refused token is not reviewed again.
const REFUSED_FOR: Duration = Duration::from_secs(10);

/// Maximum number of remembered decisions. A client with many invalid tokens evicts its own first.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1024).expect("not zero");

/// Maximum number of reviews in flight.
const REVIEWS_IN_FLIGHT: usize = 4;

/// Time-out of both reviews of a token, and of the wait for others in flight. Prometheus waits for ten seconds.
const DEADLINE: Duration = Duration::from_secs(4);

/// Shortest and longest time without reviews after one that failed.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Decision about a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The client may read the metrics.
    Allowed,
    /// The token is not valid.
    Unauthenticated,
    /// The token is valid, and its user may not read the metrics.
    Forbidden,
}

/// The API server did not decide.
#[derive(Debug, thiserror::Error)]
#[error("the API server cannot be asked")]
pub(crate) struct Undecided;

/// Hash of a token. Tokens themselves are not kept.
type TokenHash = [u8; SHA256_OUTPUT_LEN];

/// Reviews tokens, and remembers the decisions.
///
/// # Guarantees
///
/// - Without a decision of the API server no client is allowed, except for tokens that were allowed within the last
///   minute.
/// - The number of reviews in flight is limited, whatever the number of clients. After a review that failed, none is
///   sent for a time that doubles up to 30 s.
pub(crate) struct DelegatedAuth {
    client: Client,
    decisions: Mutex<LruCache<TokenHash, (Decision, Instant)>>,
    reviews: Semaphore,
    outage: Mutex<Option<Outage>>,
}

/// Time without reviews.
#[derive(Clone, Copy)]
struct Outage {
    until: Instant,
    length: Duration,
}

impl DelegatedAuth {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            decisions: Mutex::new(LruCache::new(REMEMBERED)),
            reviews: Semaphore::new(REVIEWS_IN_FLIGHT),
            outage: Mutex::new(None),
        }
    }

    /// Decides about the bearer of a token.
    pub(crate) async fn decide(&self, token: &str) -> Result<Decision, Undecided> {
        let hash = hash(token);
        if let Some(decision) = self.remembered(&hash) {
            return Ok(decision);
        }
        let permit = timeout(DEADLINE, self.reviews.acquire()).await;
        let Ok(Ok(_permit)) = permit else {
            return Err(Undecided);
        };
        // Another request with the same token may have been decided in the meantime.
        if let Some(decision) = self.remembered(&hash) {
            return Ok(decision);
        }
        if self.is_in_outage() {
            return Err(Undecided);
        }
        match timeout(DEADLINE, self.review(token)).await {
            Ok(Ok(decision)) => {
                *self.outage.lock() = None;
                let since = Instant::now();
                self.decisions.lock().put(hash, (decision, since));
                Ok(decision)
            }
            Ok(Err(error)) => {
                tracing::error!(%error, "cannot review the token of a client of the metrics");
                self.extend_outage();
                Err(Undecided)
            }
            Err(_) => {
                tracing::error!("timed out reviewing the token of a client of the metrics");
                self.extend_outage();
                Err(Undecided)
            }
        }
    }

    fn remembered(&self, hash: &TokenHash) -> Option<Decision> {
        let mut decisions = self.decisions.lock();
        let (decision, since) = *decisions.get(hash)?;
        let valid_for = match decision {
            Decision::Allowed => ALLOWED_FOR,
            Decision::Unauthenticated | Decision::Forbidden => REFUSED_FOR,
        };
        (since.elapsed() < valid_for).then_some(decision)
    }

    fn is_in_outage(&self) -> bool {
        let outage = *self.outage.lock();
        outage.is_some_and(|outage| Instant::now() < outage.until)
    }

    fn extend_outage(&self) {
        let (shortest, longest) = BACKOFF;
        let mut outage = self.outage.lock();
        let length = outage.map_or(shortest, |outage| (outage.length * 2).min(longest));
        let until = Instant::now() + length;
        *outage = Some(Outage { until, length });
    }

    fn review<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Decision, kube::Error>> {
        Box::pin(async move {
            let review = TokenReview {
                spec: TokenReviewSpec {
                    token: token.to_owned(),
                    audiences: None,
                },
                ..TokenReview::default()
            };
            let reviews: Api<TokenReview> = Api::all(self.client.clone());
            let reviewed = reviews.create(&PostParams::default(), &review).await?;
            let status = reviewed.status.unwrap_or_default();
            let (Some(true), Some(user)) = (status.authenticated, status.user) else {
                return Ok(Decision::Unauthenticated);
            };
            let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
            let review = access_review(user);
            let reviewed = reviews.create(&PostParams::default(), &review).await?;
            let is_allowed = reviewed.status.is_some_and(|status| status.allowed);
            Ok(if is_allowed {
                Decision::Allowed
            } else {
                Decision::Forbidden
            })
        })
    }
}

fn access_review(user: UserInfo) -> SubjectAccessReview {
    SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: user.username,
            uid: user.uid,
            groups: user.groups,
            extra: user.extra,
            non_resource_attributes: Some(NonResourceAttributes {
                path: Some(PATH.to_owned()),
                verb: Some("get".to_owned()),
            }),
            resource_attributes: None,
        },
        ..SubjectAccessReview::default()
    }
}

fn hash(token: &str) -> TokenHash {
    let digest = digest(&SHA256, token.as_bytes());
    digest.as_ref().try_into().expect("the length of SHA-256")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use axum::http::{Request, Response, StatusCode};
    use futures::future::join_all;
    use kube::client::Body;
    use serde_json::{Value, json};
    use tokio::time::advance;

    use super::*;

    /// API server that accepts the tokens `prometheus` and `stranger`; only the first may read metrics.
    #[derive(Clone, Default)]
    struct Server {
        calls: Arc<AtomicUsize>,
        in_flight: Arc<AtomicUsize>,
        most_in_flight: Arc<AtomicUsize>,
        is_down: Arc<AtomicBool>,
    }

    impl Server {
        fn auth(&self) -> DelegatedAuth {
            let server = self.clone();
            let service = tower::service_fn(move |request| server.clone().respond(request));
            DelegatedAuth::new(Client::new(service, "default"))
        }

        async fn respond(
            self,
            request: Request<Body>,
        ) -> Result<Response<Body>, std::convert::Infallible> {
            self.calls.fetch_add(1, Ordering::SeqCst);
            let now = self.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_in_flight.fetch_max(now, Ordering::SeqCst);
            let body = request.into_body().collect_bytes().await.expect("a body");
            let mut review: Value = serde_json::from_slice(&body).expect("a review");
            // Others run in the meantime.
            tokio::task::yield_now().await;
            self.in_flight.fetch_sub(1, Ordering::SeqCst);
            if self.is_down.load(Ordering::SeqCst) {
                let mut down = Response::new(Body::empty());
                *down.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                return Ok(down);
            }
            let token = review["spec"]["token"].as_str();
            review["status"] = match token {
                Some(token @ ("prometheus" | "stranger")) => {
                    json!({"authenticated": true, "user": {"username": token}})
                }
                Some(_) => json!({"authenticated": false}),
                None => json!({"allowed": review["spec"]["user"] == "prometheus"}),
            };
            Ok(Response::new(Body::from(review.to_string().into_bytes())))
        }

        fn calls(&self) -> usize {
            self.calls.load(Ordering::SeqCst)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_decision_is_remembered_for_a_time() {
        let server = Server::default();
        let auth = server.auth();
        for (token, decision, calls) in [
            ("prometheus", Decision::Allowed, 2),
            ("stranger", Decision::Forbidden, 2),
            ("forged", Decision::Unauthenticated, 1),
        ] {
            let before = server.calls();
            for _ in 0..10 {
                assert_eq!(auth.decide(token).await.expect("a decision"), decision);
            }
            assert_eq!(server.calls() - before, calls, "{token}");
        }
        let before = server.calls();
        advance(REFUSED_FOR).await;
        auth.decide("forged").await.expect("a decision");
        assert_eq!(server.calls() - before, 1, "reviewed again");
        auth.decide("prometheus").await.expect("a decision");
        assert_eq!(server.calls() - before, 1, "remembered for longer");
        advance(ALLOWED_FOR).await;
        auth.decide("prometheus").await.expect("a decision");
        assert_eq!(server.calls() - before, 3, "reviewed again");
    }

    #[tokio::test(start_paused = true)]
    async fn no_client_is_allowed_and_few_reviews_are_sent_while_the_api_server_is_down() {
        let server = Server::default();
        let auth = server.auth();
        auth.decide("prometheus").await.expect("a decision");
        server.is_down.store(true, Ordering::SeqCst);
        let before = server.calls();
        for _ in 0..600 {
            for _ in 0..5 {
                auth.decide("stranger").await.expect_err("undecided");
            }
            advance(Duration::from_millis(100)).await;
        }
        // One minute: after 1, 2, 4, 8, 16 and 30 seconds.
        let calls = server.calls() - before;
        assert!((2..=7).contains(&calls), "{calls} calls");
        auth.decide("prometheus")
            .await
            .expect_err("the decision is too old");
        server.is_down.store(false, Ordering::SeqCst);
        advance(BACKOFF.1).await;
        let decision = auth.decide("prometheus").await.expect("a decision");
        assert_eq!(decision, Decision::Allowed);
    }

    #[tokio::test]
    async fn the_number_of_reviews_in_flight_is_limited() {
        let server = Server::default();
        let auth = server.auth();
        let tokens: Vec<_> = (0..100).map(|number| format!("forged-{number}")).collect();
        let decided = join_all(tokens.iter().map(|token| auth.decide(token))).await;
        assert!(
            decided
                .iter()
                .all(|decision| matches!(decision, Ok(Decision::Unauthenticated)))
        );
        assert_eq!(
            server.most_in_flight.load(Ordering::SeqCst),
            REVIEWS_IN_FLIGHT
        );
        // One token in many requests is one review.
        let before = server.calls();
        join_all((0..100).map(|_| auth.decide("forged"))).await;
        let calls = server.calls() - before;
        assert!(calls <= REVIEWS_IN_FLIGHT, "{calls} calls");
    }
}
