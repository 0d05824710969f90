//! Requests that are no review: answered with a `Status`, never with an allow.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// A request that cannot be judged.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: StatusCode,
    reason: &'static str,
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self {
            code: StatusCode::BAD_REQUEST,
            reason: "BadRequest",
            message: message.into(),
        }
    }

    pub(crate) fn unsupported_media_type(got: &str) -> Self {
        Self {
            code: StatusCode::UNSUPPORTED_MEDIA_TYPE,
            reason: "UnsupportedMediaType",
            message: format!("expected Content-Type application/json, got `{got}`"),
        }
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self {
            code: StatusCode::METHOD_NOT_ALLOWED,
            reason: "MethodNotAllowed",
            message: "send an AdmissionReview by POST".to_owned(),
        }
    }

    pub(crate) fn not_found() -> Self {
        Self {
            code: StatusCode::NOT_FOUND,
            reason: "NotFound",
            message: "reviews are taken at /validate and /mutate".to_owned(),
        }
    }

    pub(crate) fn too_large(limit_bytes: usize) -> Self {
        Self {
            code: StatusCode::PAYLOAD_TOO_LARGE,
            reason: "RequestEntityTooLarge",
            message: format!("a review must not exceed {limit_bytes} bytes"),
        }
    }

    pub(crate) fn timed_out() -> Self {
        Self {
            code: StatusCode::REQUEST_TIMEOUT,
            reason: "Timeout",
            message: "the request did not arrive in time".to_owned(),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code.as_u16(),
        });
        let mut response = (
            self.code,
            [(header::CONTENT_TYPE, "application/json")],
            status.to_string(),
        )
            .into_response();
        if self.code == StatusCode::METHOD_NOT_ALLOWED {
            response
                .headers_mut()
                .insert(header::ALLOW, HeaderValue::from_static("POST"));
        }
        response
    }
}
