//! Errors of requests that cannot be processed. The response is a `Status`, so the request is never allowed.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use kube_core::response::reason;
use kube_core::{ListMeta, Status, TypeMeta};
use lockstep_shared_validation::shortened;
use serde::Serialize;

/// Error of a request that cannot be validated or converted.
#[derive(Debug)]
pub(crate) struct RequestError {
    pub(crate) code: StatusCode,
    reason: &'static str,
    pub(crate) message: String,
}

/// `Status` as a response body of its own, which names its type.
#[derive(Serialize)]
struct StatusBody {
    #[serde(flatten)]
    types: TypeMeta,
    #[serde(flatten)]
    status: Status,
}

/// Maximum length of a message, in bytes. It may quote the request.
pub(crate) const MAX_MESSAGE_BYTES: usize = 4 << 10;

impl RequestError {
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self {
            code: StatusCode::BAD_REQUEST,
            reason: reason::BAD_REQUEST,
            message: shortened(&message.into(), MAX_MESSAGE_BYTES).into_owned(),
        }
    }

    pub(crate) fn unsupported_media_type(got: &str) -> Self {
        Self {
            code: StatusCode::UNSUPPORTED_MEDIA_TYPE,
            reason: reason::UNSUPPORTED_MEDIA_TYPE,
            message: format!(
                "expected Content-Type application/json, got `{}`",
                shortened(got, MAX_MESSAGE_BYTES)
            ),
        }
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self {
            code: StatusCode::METHOD_NOT_ALLOWED,
            reason: reason::METHOD_NOT_ALLOWED,
            message: "the method is not allowed; use POST".to_owned(),
        }
    }

    pub(crate) fn not_found() -> Self {
        Self {
            code: StatusCode::NOT_FOUND,
            reason: reason::NOT_FOUND,
            message: "the path does not exist; use /validate, /mutate or /convert".to_owned(),
        }
    }

    pub(crate) fn too_large(limit_bytes: usize) -> Self {
        Self {
            code: StatusCode::PAYLOAD_TOO_LARGE,
            reason: reason::REQUEST_ENTITY_TOO_LARGE,
            message: format!("the request body is larger than {limit_bytes} bytes"),
        }
    }

    pub(crate) fn too_much_memory(limit_bytes: usize) -> Self {
        Self {
            code: StatusCode::PAYLOAD_TOO_LARGE,
            reason: reason::REQUEST_ENTITY_TOO_LARGE,
            message: format!(
                "the request body has too many fields and items: parsed, it would need more than {limit_bytes} bytes"
            ),
        }
    }

    pub(crate) fn timed_out() -> Self {
        Self {
            code: StatusCode::REQUEST_TIMEOUT,
            reason: reason::TIMEOUT,
            message: "the request did not arrive in time".to_owned(),
        }
    }
}

impl RequestError {
    /// Error of a request beyond the limits. The API server retries it within its own time-out.
    pub(crate) fn overloaded() -> Self {
        Self {
            code: StatusCode::TOO_MANY_REQUESTS,
            reason: reason::TOO_MANY_REQUESTS,
            message: "too many admission requests in flight; retry later".to_owned(),
        }
    }

    pub(crate) fn too_slow() -> Self {
        Self {
            code: StatusCode::GATEWAY_TIMEOUT,
            reason: reason::TIMEOUT,
            message: "the request took longer than the client's time-out".to_owned(),
        }
    }

    pub(crate) fn panicked() -> Self {
        Self {
            code: StatusCode::INTERNAL_SERVER_ERROR,
            reason: reason::INTERNAL_ERROR,
            message:
                "a rule panicked; this is a bug in the rule, its location is in the log of the webhook"
                    .to_owned(),
        }
    }
}

impl IntoResponse for RequestError {
    fn into_response(self) -> Response {
        let body = StatusBody {
            types: TypeMeta {
                api_version: "v1".to_owned(),
                kind: "Status".to_owned(),
            },
            status: Status {
                metadata: Some(ListMeta::default()),
                ..Status::failure(&self.message, self.reason).with_code(self.code.as_u16())
            },
        };
        let body = serde_json::to_vec(&body).expect("a status is serializable as JSON");
        let mut response = (
            self.code,
            [(header::CONTENT_TYPE, "application/json")],
            body,
        )
            .into_response();
        if self.code == StatusCode::TOO_MANY_REQUESTS {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if self.code == StatusCode::METHOD_NOT_ALLOWED {
            response
                .headers_mut()
                .insert(header::ALLOW, HeaderValue::from_static("POST"));
        }
        response
    }
}
