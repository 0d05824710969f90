//! Address conflicts within one pipeline, which do not depend on a workload.

use std::collections::BTreeMap;

use lockstep_shared_validation::{Diagnostics, FieldError, FieldPath, RuleContext};

use crate::port_allocation::listener::Listener;
use crate::rules::cached_validation::CachedValidation;
use crate::types::pipeline::Pipeline;
use crate::types::workload_role::WorkloadRole;

/// Maximum number of addresses that one pipeline may listen on: each is compared with those of others.
pub(crate) const MAX_ADDRESSES: usize = 100;

pub(crate) fn addresses_apart<K: Pipeline>(
    context: &RuleContext<'_, K>,
    diagnostics: &mut Diagnostics,
) {
    let config = CachedValidation::of(context).config.as_object();
    let sources = context.object.spec().sources.as_ref();
    let (Some(config), Some(role)) = (config, sources.and_then(WorkloadRole::of)) else {
        return;
    };
    let all: Vec<_> = Listener::all(config).collect();
    if all.len() > MAX_ADDRESSES {
        let detail = format!(
            "listens on {} addresses; at most {MAX_ADDRESSES} can be compared with those of other pipelines",
            all.len()
        );
        return diagnostics.push(FieldError::invalid_hidden(FieldPath::new("spec"), detail));
    }
    let mut listeners: BTreeMap<String, Vec<Listener<'_>>> = BTreeMap::new();
    for listener in all {
        let before = listeners.entry(listener.endpoint.port.clone()).or_default();
        let mut in_the_way = before.iter().filter(|it| {
            it.endpoint
                .slot
                .conflicts_with(listener.endpoint.slot, role)
        });
        // Vector itself rejects equal addresses, which another rule reports.
        if let Some(other) = in_the_way.find(|it| it.address.endpoint != listener.address.endpoint)
        {
            let detail = format!(
                "{} conflicts with {}, which listens on {}; choose another port",
                listener.address,
                other.name(),
                other.address.endpoint
            );
            let endpoint = listener.address.endpoint.clone();
            diagnostics.push(FieldError::invalid(listener.path(), endpoint, detail));
        }
        before.push(listener);
    }
}
