//! Start-up validation: configurations that `vector validate --no-environment` accepts but with which Vector does not
//! start.
//!
//! An agent or aggregator runs the pipelines of all namespaces in one process, so a single configuration of this
//! kind keeps all of them from running. This covers what Vector rejects, or panics on, while it builds its components,
//! as far as the configuration alone decides it. Files, sockets, name resolution and the environment of an agent are
//! not considered.

mod address;
mod after_start;
mod avro;
mod azure;
mod azure_blob;
mod batch;
mod buffer;
#[cfg(test)]
mod checks;
mod component_options;
mod databend;
mod elasticsearch;
mod encoding;
mod exclusive;
mod formats;
mod gcp;
mod headers;
mod http_uri;
mod joined_uri;
mod journald;
mod kafka;
mod log_schema;
mod loki;
mod lua;
mod memory_filters;
mod memory_tables;
mod metrics_expiry;
mod multicast;
mod not_empty;
mod numbers;
mod patterns;
mod periods;
mod provider;
mod proxy;
mod required;
mod secrets;
mod sink_traits;
mod tag_cardinality;
mod templates;
#[cfg(test)]
mod tests;
mod text_endpoints;
mod throttle;
mod tls;
mod uri;
mod user_info;

use serde_json::{Map, Value};

use crate::catalogue::Catalogue;
use crate::component::{ComponentKind, components};
use crate::confinement;
use crate::confinement::OptOut;
use crate::diagnostic::{Diagnostic, DiagnosticList};
use crate::interpolation::Interpolation;
use crate::nulls;
use crate::start_up::component_options::ComponentOptions;
pub use crate::start_up::secrets::validate_secrets;
pub use crate::start_up::uri::validate_http_hosts;
use crate::unix_socket;
use crate::vector_version::VectorVersion;

/// Validates a configuration for the errors that only the start of Vector reports.
///
/// A pipeline must be free of these errors and of those of [`validate_config`](crate::validate_config()). The opt-out
/// selects the advice in the messages.
#[must_use]
pub fn validate_start_up(
    catalogue: &Catalogue,
    config: &Value,
    opt_out: OptOut,
    interpolation: Interpolation,
) -> Vec<Diagnostic> {
    let mut problems = DiagnosticList::default();
    let Some(fields) = config.as_object() else {
        return problems.into_diagnostics();
    };
    let fields = &*nulls::without_optional(catalogue, fields);
    for check in GLOBAL_CHECKS {
        check(fields, &mut problems);
    }
    proxy::validate_global(catalogue, fields, interpolation, &mut problems);
    for component in components(fields) {
        problems.rules_since(VectorVersion::V0_57);
        if component.family == ComponentKind::Sink && catalogue.number() >= VectorVersion::V0_57 {
            confinement::validate(catalogue, &component, opt_out, interpolation, &mut problems);
        }
        let Some(options) = ComponentOptions::new(catalogue, &component, interpolation) else {
            continue;
        };
        for check in LATER_CHECKS {
            check(&options, &mut problems);
        }
        problems.rules_since(VectorVersion::V0_58);
        for check in CHECKS_OF_0_58 {
            check(&options, &mut problems);
        }
        problems.rules_since(VectorVersion::FIRST_READ);
        for check in CHECKS {
            check(&options, &mut problems);
        }
    }
    problems.into_diagnostics()
}

/// Check of the global options.
type GlobalCheck = fn(&Map<String, Value>, &mut DiagnosticList);

const GLOBAL_CHECKS: [GlobalCheck; 5] = [
    log_schema::validate,
    memory_tables::validate,
    metrics_expiry::validate,
    provider::validate,
    unix_socket::validate,
];

/// Check of one component, whatever its type is.
type ComponentCheck = fn(&ComponentOptions<'_>, &mut DiagnosticList);

/// Rules of components whose libraries or options changed in a version before 0.57, so that older ones may differ.
const LATER_CHECKS: [ComponentCheck; 6] = [
    azure::validate,
    azure_blob::validate,
    databend::validate,
    kafka::validate,
    tag_cardinality::validate,
    user_info::validate,
];

/// Rules that 0.58 has first.
const CHECKS_OF_0_58: [ComponentCheck; 2] = [http_uri::validate, text_endpoints::validate];

/// Rules that the sources of [`VectorVersion::FIRST_READ`] have, too, if they have the option.
const CHECKS: [ComponentCheck; 25] = [
    required::validate,
    batch::validate,
    buffer::validate,
    periods::validate,
    gcp::validate,
    headers::validate,
    proxy::validate,
    tls::validate,
    uri::validate,
    address::validate,
    after_start::validate,
    avro::validate,
    elasticsearch::validate,
    encoding::validate,
    exclusive::validate,
    formats::validate,
    journald::validate,
    loki::validate,
    lua::validate,
    multicast::validate,
    not_empty::validate,
    numbers::validate,
    patterns::validate,
    templates::validate,
    throttle::validate,
];
