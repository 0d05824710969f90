//! Limits of each request to the API server: its path is what the code says, whatever a name contains, and it ends.

use std::borrow::Cow;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response, Uri};
use http_body::{Body as HttpBody, Frame, SizeHint};
use kube::client::Body;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use tokio::time::{Sleep, sleep, timeout};
use tower::{BoxError, Layer, Service};

/// Characters that are not part of a name in a path (RFC 3986, unreserved, and the colon, which names of roles contain).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b':');

/// Time in which a request other than a watch must be answered completely. The API server itself ends it after a minute
/// (`--request-timeout`), and a response may take some time on its way.
const TIME_LIMIT: Duration = Duration::from_secs(90);

/// Returns a name as one segment of the path of a request: for every name that an object contains. kube puts names into
/// paths as they are.
///
/// # Assumptions
///
/// The client has the layer [`RequestLimits`]: the API server decodes a path before it looks at the segments, so that the
/// name of no object contains a slash or a percent sign, or is `.` or `..`. The layer refuses these.
///
/// ```
/// use lockstep_controller::path_segment;
///
/// assert_eq!(path_segment("orders-db"), "orders-db");
/// assert_eq!(path_segment("?watch=true"), "%3Fwatch%3Dtrue");
/// assert_eq!(path_segment(".."), "%2E%2E");
/// ```
#[must_use]
pub fn path_segment(name: &str) -> Cow<'_, str> {
    match name {
        "." => "%2E".into(),
        ".." => "%2E%2E".into(),
        _ => utf8_percent_encode(name, ENCODED).into(),
    }
}

/// Client layer that refuses a request whose path no object can have, and ends one that takes too long.
///
/// # Guarantees
///
/// Only a collection is watched, and only a watch has no time limit. The body of a response is part of the time.
///
/// ```
/// use kube::client::ClientBuilder;
/// use kube::{Client, Config};
/// use lockstep_controller::RequestLimits;
///
/// /// Returns a client whose requests all end.
/// fn client(config: Config) -> kube::Result<Client> {
///     let limits = RequestLimits::default();
///     Ok(ClientBuilder::try_from(config)?.with_layer(&limits).build())
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RequestLimits {
    time: Duration,
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self { time: TIME_LIMIT }
    }
}

/// Reason why a request has no response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum LimitExceeded {
    #[error(
        "the request for `{0}` is not sent: a name in it is empty, `.` or `..`, or contains a character that no name may contain; correct the name in the object"
    )]
    Path(String),
    #[error("the API server has not answered completely within {} s", .0.as_secs())]
    Time(Duration),
}

impl<S> Layer<S> for RequestLimits {
    type Service = LimitedRequests<S>;

    fn layer(&self, inner: S) -> LimitedRequests<S> {
        LimitedRequests {
            inner,
            limits: *self,
        }
    }
}

/// Service whose requests are limited.
pub struct LimitedRequests<S> {
    inner: S,
    limits: RequestLimits,
}

impl<S, B> Service<Request<Body>> for LimitedRequests<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: HttpBody + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<LimitedBody<B>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Some(target) = Target::from_uri(request.uri()) else {
            let refused = LimitExceeded::Path(request.uri().path().to_owned());
            return async move { Err(refused.into()) }.boxed();
        };
        let response = self.inner.call(request);
        let limit = self.limits.time;
        async move {
            if target == Target::Watch {
                let response = response.await.map_err(Into::<BoxError>::into)?;
                return Ok(response.map(LimitedBody::without_limit));
            }
            let end = Box::pin(sleep(limit));
            let response = timeout(limit, response).await;
            let response = response.map_err(|_| LimitExceeded::Time(limit))?;
            let response = response.map_err(Into::<BoxError>::into)?;
            Ok(response.map(|body| LimitedBody::until(end, limit, body)))
        }
        .boxed()
    }
}

/// Subject of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// Objects, for as long as the client likes.
    Watch,
    Other,
}

impl Target {
    /// Returns none if the API server has nothing at a path, or something else than the segments say.
    fn from_uri(uri: &Uri) -> Option<Self> {
        let segments: Vec<_> = uri.path().trim_start_matches('/').split('/').collect();
        if uri.path() != "/" && !segments.iter().all(|segment| is_name(segment)) {
            return None;
        }
        let query = uri.query().unwrap_or_default().split('&');
        let mut watches = query.filter(|pair| pair.split('=').next() == Some("watch"));
        if watches.next().is_none() {
            return Some(Self::Other);
        }
        is_collection(&segments).then_some(Self::Watch)
    }
}

/// Returns true if a segment is one after decoding, too.
fn is_name(segment: &str) -> bool {
    let name = percent_decode_str(segment).decode_utf8();
    name.is_ok_and(|name| !matches!(&*name, "" | "." | "..") && !name.contains(['/', '%']))
}

/// Returns true if a path ends with a resource and not with the name of an object:
/// <https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris>.
fn is_collection(segments: &[&str]) -> bool {
    let (["api", _, resource @ ..] | ["apis", _, _, resource @ ..]) = segments else {
        return false;
    };
    matches!(resource, [_] | ["namespaces", _, _])
}

/// Body of a response that must be complete at a time.
pub struct LimitedBody<B> {
    body: B,
    limit: Option<BodyLimit>,
}

struct BodyLimit {
    end: Pin<Box<Sleep>>,
    time: Duration,
}

impl<B> LimitedBody<B> {
    fn without_limit(body: B) -> Self {
        Self { body, limit: None }
    }

    fn until(end: Pin<Box<Sleep>>, time: Duration, body: B) -> Self {
        let limit = Some(BodyLimit { end, time });
        Self { body, limit }
    }
}

impl<B> HttpBody for LimitedBody<B>
where
    B: HttpBody + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        if let Some(limit) = &mut self.limit
            && limit.end.poll_unpin(context).is_ready()
        {
            let error = LimitExceeded::Time(limit.time);
            return Poll::Ready(Some(Err(error.into())));
        }
        let frame = Pin::new(&mut self.body).poll_frame(context);
        frame.map(|frame| frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::error::Error;
    use std::future::pending;
    use std::sync::{Arc, Mutex};

    use k8s_openapi::api::core::v1::Secret;
    use kube::Client;
    use kube::api::{Api, ListParams, WatchParams};
    use tower::service_fn;

    use super::*;

    /// Body that never ends.
    struct Endless;

    impl HttpBody for Endless {
        type Data = bytes::Bytes;
        type Error = Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<bytes::Bytes>, Infallible>>> {
            Poll::Pending
        }
    }

    /// Returns a client of an API server that begins each response and never ends it, and the paths that it was asked for.
    fn endless() -> (Client, Arc<Mutex<Vec<String>>>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        let server = service_fn(move |request: Request<Body>| {
            log.lock().expect("a lock").push(request.uri().to_string());
            async { Ok::<_, BoxError>(Response::new(Endless)) }
        });
        let server = RequestLimits::default().layer(server);
        (Client::new(server, "default"), asked)
    }

    /// Returns what the layer says of an error, if it is from there.
    fn exceeded(error: &kube::Error) -> Option<LimitExceeded> {
        let mut source: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(error) = source {
            if let Some(found) = error.downcast_ref() {
                return Some(LimitExceeded::clone(found));
            }
            source = error.source();
        }
        None
    }

    #[tokio::test(start_paused = true)]
    async fn every_request_except_a_watch_ends() {
        let (client, _) = endless();
        let secrets: Api<Secret> = Api::namespaced(client, "team-a");
        let error = secrets.get_opt("a").await.expect_err("no answer");
        assert_eq!(exceeded(&error), Some(LimitExceeded::Time(TIME_LIMIT)));
        let error = secrets.list(&ListParams::default()).await;
        let error = error.expect_err("no answer");
        assert_eq!(exceeded(&error), Some(LimitExceeded::Time(TIME_LIMIT)));
        let params = WatchParams::default().timeout(290);
        let watch = secrets.watch(&params, "0");
        let mut events = Box::pin(watch.await.expect("a watch"));
        let next = timeout(2 * TIME_LIMIT, futures::StreamExt::next(&mut events));
        assert!(next.await.is_err(), "it waits for an event");
        let silent =
            service_fn(|_: Request<Body>| pending::<Result<Response<Endless>, BoxError>>());
        let client = Client::new(RequestLimits::default().layer(silent), "default");
        let secrets: Api<Secret> = Api::namespaced(client, "team-a");
        let error = secrets.get_opt("a").await.expect_err("no answer");
        assert_eq!(exceeded(&error), Some(LimitExceeded::Time(TIME_LIMIT)));
    }

    #[tokio::test(start_paused = true)]
    async fn no_name_changes_what_is_asked_for() {
        let (client, asked) = endless();
        let secrets: Api<Secret> = Api::namespaced(client, "team-a");
        for name in [
            "?watch=true",
            "a?watch=true",
            "a b",
            "a#b",
            "ä",
            "a?x=1&watch=1",
            "a;b",
        ] {
            let error = secrets.get_opt(&path_segment(name)).await;
            let error = error.expect_err("no answer");
            assert_eq!(
                exceeded(&error),
                Some(LimitExceeded::Time(TIME_LIMIT)),
                "{name}"
            );
            let expected = format!(
                "/api/v1/namespaces/team-a/secrets/{}",
                utf8_percent_encode(name, ENCODED)
            );
            assert_eq!(asked.lock().expect("a lock").pop(), Some(expected));
        }
        // The API server decodes these into other paths.
        for name in ["..", ".", "a/b", "../pods", "%2e%2e", "a%2Fb"] {
            let error = secrets.get_opt(&path_segment(name)).await;
            let error = error.expect_err("it is refused");
            assert!(
                matches!(exceeded(&error), Some(LimitExceeded::Path(_))),
                "{name}"
            );
        }
        // A caller that forgot to encode the name.
        for name in [
            "?watch=true",
            "a?watch=true",
            "..",
            "../secrets?watch=true",
            "a/",
            "//",
        ] {
            let error = secrets.get_opt(name).await.expect_err("it is refused");
            assert!(
                matches!(exceeded(&error), Some(LimitExceeded::Path(_))),
                "{name}"
            );
        }
        assert!(asked.lock().expect("a lock").is_empty());
    }

    #[test]
    fn the_paths_of_kubernetes_are_sent() {
        let target = |path: &str| Target::from_uri(&path.parse().expect("a path"));
        for (path, expected) in [
            ("/version", Target::Other),
            ("/", Target::Other),
            ("/api/v1/namespaces/a", Target::Other),
            (
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node",
                Target::Other,
            ),
            ("/api/v1/namespaces/a/pods/b/log?container=c", Target::Other),
            (
                "/apis/apps/v1/namespaces/a/deployments/b/scale?",
                Target::Other,
            ),
            ("/api/v1/namespaces?watch=true", Target::Watch),
            (
                "/api/v1/namespaces/a/secrets?&watch=true&timeoutSeconds=290",
                Target::Watch,
            ),
            ("/apis/g/v1/things?&watch=true", Target::Watch),
        ] {
            assert_eq!(target(path), Some(expected), "{path}");
        }
    }
}
