//! Admission reviews: the request, its validation and the response.

pub(crate) mod bounded_response;
pub(crate) mod check;
pub(crate) mod error;
pub(crate) mod handler;
pub(crate) mod request;
pub(crate) mod response;
