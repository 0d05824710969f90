use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt};
use http::{Request, Response};
use http_body_util::StreamBody;
use hyper::body::{Bytes, Frame};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use kube::client::Body;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::limits::WatchLimits;
use crate::state::Watches;

/// Response of the API server to one request.
enum Answer {
    List(Value),
    /// Lines, each with the time before it. The connection then stays open without a byte.
    Watch(Vec<(u64, Value)>),
    /// The API server closes the connection after this number of seconds.
    Closed(u64),
    /// No response at all.
    Nothing,
}

/// API server with scripted answers, which records the requests.
#[derive(Clone)]
struct Server {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    requests: Arc<Mutex<Vec<String>>>,
}

type Frames = BoxStream<'static, Result<Frame<Bytes>, std::io::Error>>;

impl Server {
    fn new(answers: Vec<Answer>) -> Self {
        Self {
            answers: Arc::new(Mutex::new(answers.into())),
            requests: Arc::default(),
        }
    }

    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let query = request.uri().query().unwrap_or_default().to_owned();
            server.requests.lock().expect("no panic").push(query);
            let answer = server.answers.lock().expect("no panic").pop_front();
            async move {
                let frames: Frames = match answer.unwrap_or(Answer::Nothing) {
                    Answer::List(list) => stream::iter([Ok(line(&list))]).boxed(),
                    Answer::Watch(lines) => {
                        let lines = stream::iter(lines).then(|(seconds, event)| async move {
                            sleep(Duration::from_secs(seconds)).await;
                            Ok(line(&event))
                        });
                        lines.chain(stream::pending()).boxed()
                    }
                    Answer::Closed(seconds) => {
                        let wait = sleep(Duration::from_secs(seconds));
                        stream::once(wait).filter_map(|()| async { None }).boxed()
                    }
                    Answer::Nothing => std::future::pending().await,
                };
                Ok::<_, std::io::Error>(Response::new(StreamBody::new(frames)))
            }
        });
        Client::new(service, "default")
    }

    /// Returns the resource version of each watch, and `list` for each list.
    fn requests(&self) -> Vec<String> {
        let requests = self.requests.lock().expect("no panic");
        let name = |query: &String| {
            let version = query
                .split('&')
                .find_map(|it| it.strip_prefix("resourceVersion="));
            if query.contains("watch=true") {
                format!("watch {}", version.unwrap_or_default())
            } else {
                "list".to_owned()
            }
        };
        requests.iter().map(name).collect()
    }
}

fn line(value: &Value) -> Frame<Bytes> {
    Frame::data(format!("{value}\n").into())
}

fn map(name: &str, version: u32) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "resourceVersion": version.to_string()},
    })
}

fn event(type_: &str, object: &Value) -> Value {
    json!({"type": type_, "object": object})
}

fn bookmark(version: u32) -> Value {
    event("BOOKMARK", &map("", version))
}

fn empty_list() -> Answer {
    Answer::List(json!({
        "apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "10"}, "items": [],
    }))
}

fn limits() -> WatchLimits {
    WatchLimits::default()
}

/// Runs a watch until it delivers an object. Returns the time that this took.
async fn until_object(server: &Server, watches: &Watches, registry: &Registry) -> Duration {
    let began = Instant::now();
    let state = watches.start("toy", "configmaps");
    let maps: Api<ConfigMap> = Api::all(state.client(&server.client()));
    let mut events = std::pin::pin!(watcher(maps, watcher::Config::default()));
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Apply(object)) => {
                assert_eq!(object.name_any(), "new");
                let mut text = String::new();
                encode(&mut text, registry).expect("metrics");
                assert!(
                    text.contains(
                        "lockstep_watch_up{controller=\"toy\",resource=\"configmaps\"} 1"
                    )
                );
                return began.elapsed();
            }
            Ok(_) => {}
            Err(error) => panic!("the watch failed: {error}"),
        }
    }
    unreachable!("a watch has no end")
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_resumed_from_its_last_bookmark_and_nothing_is_listed_again() {
    let mut registry = Registry::default();
    let watches = Watches::register(&mut registry);
    let server = Server::new(vec![
        empty_list(),
        Answer::Watch(vec![(60, bookmark(20)), (60, bookmark(30))]),
        Answer::Watch(vec![(0, event("ADDED", &map("new", 40)))]),
    ]);
    let took = until_object(&server, &watches, &registry).await;
    assert_eq!(took, Duration::from_mins(2) + limits().silence);
    assert!(limits().silence + limits().start <= Duration::from_mins(2));
    assert_eq!(server.requests(), ["list", "watch 10", "watch 30"]);
    let mut text = String::new();
    encode(&mut text, &registry).expect("metrics");
    let silences = "lockstep_watch_silences_total{controller=\"toy\",resource=\"configmaps\"} 1";
    assert!(text.contains(silences), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_healthy_watch_keeps_its_connection_as_long_as_bookmarks_arrive() {
    let mut registry = Registry::default();
    let watches = Watches::register(&mut registry);
    // A bookmark is late, but not lost.
    let mut lines: Vec<_> = (1..=4).map(|at| (63, bookmark(10 + at))).collect();
    lines.push((30, event("ADDED", &map("new", 20))));
    let server = Server::new(vec![empty_list(), Answer::Watch(lines)]);
    until_object(&server, &watches, &registry).await;
    assert_eq!(server.requests(), ["list", "watch 10"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_bookmarks_is_resumed_and_never_listed_again() {
    let mut registry = Registry::default();
    let watches = Watches::register(&mut registry);
    let mut answers = vec![empty_list()];
    answers.extend((0..5).map(|_| Answer::Watch(Vec::new())));
    // The API server has closed the connection itself.
    answers.push(Answer::Closed(80));
    answers.push(Answer::Watch(vec![(0, event("ADDED", &map("new", 40)))]));
    let server = Server::new(answers);
    until_object(&server, &watches, &registry).await;
    let requests = server.requests();
    assert_eq!(requests[0], "list");
    assert_eq!(requests[1..], ["watch 10"; 7]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_is_down_while_the_api_server_does_not_accept_it_again() {
    let watches = Watches::register(&mut Registry::default());
    let server = Server::new(vec![
        empty_list(),
        Answer::Watch(Vec::new()),
        Answer::Nothing,
    ]);
    let state = watches.start("toy", "configmaps");
    let maps: Api<ConfigMap> = Api::all(state.client(&server.client()));
    let watching = tokio::spawn(async move {
        let events = watcher(maps, watcher::Config::default());
        let errors = events.filter_map(|event| async move { event.err() });
        std::pin::pin!(errors).next().await
    });
    sleep(limits().silence / 2).await;
    assert_eq!(watches.disconnected(), <[String; 0]>::default());
    sleep(limits().silence / 2 + Duration::from_secs(1)).await;
    let down = watches.disconnected();
    assert!(down.len() == 1 && down[0].contains("is silent"), "{down:?}");
    let error = watching.await.expect("no panic").expect("an error");
    assert!(
        error.to_string().contains("has not answered within 30s"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_without_an_answer_fails() {
    let watches = Watches::register(&mut Registry::default());
    for answer in [Answer::Nothing, Answer::Watch(Vec::new())] {
        let server = Server::new(vec![answer]);
        let state = watches.start("toy", "configmaps");
        let maps: Api<ConfigMap> = Api::all(state.client(&server.client()));
        maps.list(&kube::api::ListParams::default())
            .await
            .expect_err("the list does not wait for ever");
    }
}
