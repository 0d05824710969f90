//! Source `vector`: a server that keeps the events that it gets, or refuses them.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use lockstep_envtest::eventually;
use lockstep_vector_event_collector::{PushEventsRequest, Value, ValueKind};
use serde_json::Value as Json;
use tokio::net::TcpListener;
use tonic::body::Body;
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Request, Response, Status};
use tonic_prost::ProstCodec;

/// Running source.
pub struct VectorSource {
    pub port: u16,
    state: Arc<Mutex<State>>,
    serving: tokio::task::JoinHandle<()>,
}

struct State {
    answer: Code,
    refused: usize,
    events: Vec<Json>,
}

#[derive(Clone)]
struct Service(Arc<Mutex<State>>);

impl VectorSource {
    pub async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let state = Arc::new(Mutex::new(State {
            answer: Code::Ok,
            refused: 0,
            events: Vec::new(),
        }));
        let service = Service(Arc::clone(&state));
        let serving = tokio::spawn(async move {
            let router = Server::builder().add_service(service);
            let served = router.serve_with_incoming(TcpIncoming::from(listener));
            served.await.expect("it serves");
        });
        Self {
            port,
            state,
            serving,
        }
    }

    pub fn answer_with(&self, answer: Code) {
        self.state.lock().expect("a state").answer = answer;
    }

    pub fn refused(&self) -> usize {
        self.state.lock().expect("a state").refused
    }

    pub fn events(&self) -> Vec<Json> {
        self.state.lock().expect("a state").events.clone()
    }

    /// Waits for the event with a message.
    pub async fn has(&self, message: &str) -> Json {
        let arrived = eventually("an event", async || {
            let events = self.events();
            let mut events = events.into_iter();
            events.find(|event| event["event"]["message"] == message)
        });
        let arrived = arrived.await;
        arrived.unwrap_or_else(|error| panic!("{message}: {error}; {:?}", self.events()))
    }
}

impl Drop for VectorSource {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl NamedService for Service {
    const NAME: &'static str = "vector.Vector";
}

impl tower::Service<http::Request<Body>> for Service {
    type Response = http::Response<Body>;
    type Error = std::convert::Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            assert_eq!(request.uri().path(), "/vector.Vector/PushEvents");
            let codec: ProstCodec<(), PushEventsRequest> = ProstCodec::default();
            Ok(Grpc::new(codec).unary(service, request).await)
        })
    }
}

impl UnaryService<PushEventsRequest> for Service {
    type Response = ();
    type Future = std::future::Ready<Result<Response<()>, Status>>;

    fn call(&mut self, request: Request<PushEventsRequest>) -> Self::Future {
        let mut state = self.0.lock().expect("a state");
        if state.answer != Code::Ok {
            state.refused += 1;
            return std::future::ready(Err(Status::new(state.answer, "of the test")));
        }
        let logs = request.into_inner().events.into_iter();
        let logs = logs.filter_map(|event| event.log?.value);
        state.events.extend(logs.map(|fields| json_of(&fields)));
        std::future::ready(Ok(Response::new(())))
    }
}

fn json_of(value: &Value) -> Json {
    match &value.kind {
        Some(ValueKind::RawBytes(bytes)) => String::from_utf8_lossy(bytes).into(),
        Some(ValueKind::Map(map)) => {
            let fields = map.fields.iter();
            fields
                .map(|(name, value)| (name.clone(), json_of(value)))
                .collect::<serde_json::Map<_, _>>()
                .into()
        }
        None => Json::Null,
    }
}
