//! Authentication of the components for Google Cloud.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE;

use crate::diagnostic::DiagnosticList;
use crate::start_up::component_options::{ComponentOptions, forbid};

/// Components that authenticate by an API key.
const WITH_API_KEY: &[&str] = &[
    "gcp_chronicle_unstructured",
    "gcp_cloud_storage",
    "gcp_pubsub",
    "gcp_stackdriver_logs",
    "gcp_stackdriver_metrics",
];

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    let is_unused = options.is_true("skip_authentication") || options.has("credentials_path");
    if is_unused || !WITH_API_KEY.contains(&options.kind) {
        return;
    }
    // The key is a secret, and never printed.
    if let Some((path, key)) = options.text("api_key")
        && BASE64_URL_SAFE.decode(key).is_err()
    {
        let detail = "must be base64 with the alphabet for URLs and with padding";
        forbid(path, detail, problems);
    }
}
