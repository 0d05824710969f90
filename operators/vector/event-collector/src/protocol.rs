//! Protocol of the source `vector`: the part of `vector.proto` and `event.proto` of Vector that log events of texts need. The
//! numbers of the fields are those of Vector 0.57.

use std::collections::HashMap;
use std::time::Duration;

use http::uri::PathAndQuery;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

/// Method of the source.
const PUSH_EVENTS: &str = "/vector.Vector/PushEvents";

/// Maximum time until a connection is open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Interval of keep-alive requests and maximum time until their answer, so that the end of a Pod without a sign is noticed. A batch
/// itself has no maximum: with end-to-end acknowledgements, Vector answers only after its sinks, and a second copy of a batch would
/// be a second copy of its events.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// Batch of events.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PushEventsRequest {
    /// Events.
    #[prost(message, repeated, tag = "1")]
    pub events: Vec<EventWrapper>,
}

/// Event: here a log event.
#[derive(Clone, PartialEq, prost::Message)]
pub struct EventWrapper {
    /// Log event.
    #[prost(message, optional, tag = "1")]
    pub log: Option<Log>,
}

/// Log event.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Log {
    /// Fields.
    #[prost(message, optional, tag = "2")]
    pub value: Option<Value>,
}

/// Value.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Value {
    /// Value of a type.
    #[prost(oneof = "ValueKind", tags = "1, 7")]
    pub kind: Option<ValueKind>,
}

/// Value of a type.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum ValueKind {
    /// Text.
    #[prost(bytes, tag = "1")]
    RawBytes(Vec<u8>),
    /// Object.
    #[prost(message, tag = "7")]
    Map(ValueMap),
}

/// Object.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ValueMap {
    /// Fields.
    #[prost(map = "string, message", tag = "1")]
    pub fields: HashMap<String, Value>,
}

/// Connection to a source, which is opened again when it is lost.
#[derive(Clone)]
pub(crate) struct Source(Channel);

impl Source {
    /// Creates a connection, which is opened with the first batch.
    ///
    /// # Errors
    ///
    /// It is no address.
    pub(crate) fn new(address: &str) -> Result<Self, tonic::transport::Error> {
        let endpoint = Endpoint::from_shared(format!("http://{address}"))?
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE_TIMEOUT);
        Ok(Self(endpoint.connect_lazy()))
    }
}

/// Receiver of batches.
pub(crate) trait Push {
    /// Sends a batch.
    ///
    /// # Errors
    ///
    /// It is not accepted, or the connection is lost.
    fn push(&self, batch: PushEventsRequest) -> impl Future<Output = Result<(), Status>> + Send;
}

impl Push for Source {
    async fn push(&self, batch: PushEventsRequest) -> Result<(), Status> {
        let mut client = Grpc::new(self.0.clone());
        let ready = client.ready().await;
        ready.map_err(|error| Status::unavailable(error.to_string()))?;
        let path = PathAndQuery::from_static(PUSH_EVENTS);
        // The response has no fields.
        let codec: ProstCodec<PushEventsRequest, ()> = ProstCodec::default();
        client.unary(Request::new(batch), path, codec).await?;
        Ok(())
    }
}

/// Returns true if the same batch may be accepted later. The codes are those after which the sink `vector` of Vector 0.57 does not
/// send a batch again.
pub(crate) fn is_retriable(status: &Status) -> bool {
    !matches!(
        status.code(),
        Code::NotFound
            | Code::InvalidArgument
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::Unauthenticated
            | Code::DataLoss
    )
}
