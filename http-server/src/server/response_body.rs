//! Body of a response, which is known to its connection until its last byte is written.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

use crate::server::connection_limit::ActiveResponse;

/// Body whose bytes belong to a response in progress. HTTP keeps them in a queue until the client reads them.
pub(crate) struct ResponseBody {
    body: Body,
    response: Arc<ActiveResponse>,
}

impl ResponseBody {
    pub(crate) fn new(body: Body, response: ActiveResponse) -> Self {
        Self {
            body,
            response: Arc::new(response),
        }
    }
}

/// Bytes of a response in progress.
struct ResponseBytes {
    bytes: Bytes,
    _response: Arc<ActiveResponse>,
}

impl AsRef<[u8]> for ResponseBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let response = Arc::clone(&self.response);
        let frame = Pin::new(&mut self.body).poll_frame(context);
        frame.map_ok(|frame| {
            frame.map_data(|bytes| {
                Bytes::from_owner(ResponseBytes {
                    bytes,
                    _response: response,
                })
            })
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
