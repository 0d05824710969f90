//! Connections that are lost without a sign.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::stream::{self, StreamExt};
use http::Request;
use http_body_util::{BodyExt, StreamBody};
use kube::Client;
use kube::client::Body;
use lockstep_controller::WatchLimits;
use prometheus_client::encoding::text::encode;
use serde_json::json;
use tokio::sync::watch;

use super::{Reader, Readers};
use lockstep_shared_validation::ValidatedResource;
use lockstep_test::install_crd;

/// Network that can forget the connections of the open watches: nothing arrives on them any more, and they stay open.
#[derive(Clone)]
struct Network {
    /// Number of times that the connections were forgotten.
    forgotten: Arc<watch::Sender<usize>>,
    lists: Arc<AtomicUsize>,
}

impl Network {
    fn new() -> Self {
        Self {
            forgotten: Arc::new(watch::Sender::new(0)),
            lists: Arc::default(),
        }
    }

    fn client(&self, client: &Client) -> Client {
        let (network, sender) = (self.clone(), client.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (network, sender) = (network.clone(), sender.clone());
            async move {
                let query = request.uri().query().unwrap_or_default();
                let is_watch = query.contains("watch=true");
                // An API server that streams lists does so in a watch.
                let is_list = query.contains("sendInitialEvents=true") || query.contains("limit=");
                network
                    .lists
                    .fetch_add(usize::from(is_list), Ordering::Relaxed);
                let mut forgotten = network.forgotten.subscribe();
                let before = *forgotten.borrow_and_update();
                let (head, body) = sender.send(request).await?.into_parts();
                let frames = stream::unfold(
                    (body, forgotten),
                    move |(mut body, mut forgotten)| async move {
                        let has_forgotten = |now: &usize| is_watch && *now > before;
                        tokio::select! {
                            () = until(&mut forgotten, has_forgotten) => pending().await,
                            frame = body.frame() => Some((frame?, (body, forgotten))),
                        }
                    },
                );
                let body = StreamBody::new(frames.boxed());
                Ok::<_, kube::Error>(http::Response::from_parts(head, body))
            }
        });
        Client::new(service, client.default_namespace())
    }

    fn forget_connections(&self) {
        self.forgotten.send_modify(|forgotten| *forgotten += 1);
    }

    fn lists(&self) -> usize {
        self.lists.load(Ordering::Relaxed)
    }
}

async fn until(forgotten: &mut watch::Receiver<usize>, is_lost: impl FnMut(&usize) -> bool) {
    // The sender lives as long as the client.
    drop(forgotten.wait_for(is_lost).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_behind_silent_connections_are_noticed_without_another_list() {
    let network = Network::new();
    // Shorter than the time between two bookmarks: healthy watches are resumed all the time, and not listed either.
    let limits = WatchLimits {
        silence: Duration::from_secs(2),
        ..WatchLimits::default()
    };
    let readers = Readers::start_with(limits, async |cluster| {
        install_crd(&cluster.client(), Reader::crd()).await;
        network.client(&cluster.client())
    });
    let readers = readers.await;
    readers.secret("s", "one").await;
    readers.reader("before", json!({"secret": "s"})).await;
    readers.shows("before", "secret", "one").await;
    let lists = network.lists();
    assert!(lists >= 3, "{lists} lists");

    network.forget_connections();
    // Of a related object, and of the reconciled kind.
    readers.secret("s", "two").await;
    readers.reader("after", json!({"secret": "s"})).await;
    readers.shows("before", "secret", "two").await;
    readers.shows("after", "secret", "two").await;
    assert_eq!(network.lists(), lists, "nothing is listed again");
    assert_eq!(readers.metrics.disconnected_watches(), Vec::<String>::new());
    let mut text = String::new();
    encode(&mut text, &readers.registry).expect("metrics");
    let silences = "lockstep_watch_silences_total{controller=\"reader\",resource=\"secrets\"} ";
    let silences = text.lines().find_map(|line| line.strip_prefix(silences));
    assert!(silences.is_some_and(|silences| silences != "0"), "{text}");
}
