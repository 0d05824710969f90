//! Write requests for children.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use crate::metrics::registration::registered;

/// Counter of write requests for children, by kind and verb.
#[derive(Clone)]
pub(crate) struct ChildWrites {
    writes: Family<Labels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    controller: String,
    kind: String,
    verb: &'static str,
}

impl ChildWrites {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let writes = registered(
            registry,
            "lockstep_child_writes",
            "Total number of write requests for the children of reconciled objects",
            Family::default(),
        );
        Self { writes }
    }

    pub(crate) fn count(&self, controller: &str, kind: &str, verb: &'static str) {
        let labels = Labels {
            controller: controller.to_owned(),
            kind: kind.to_owned(),
            verb,
        };
        self.writes.get_or_create(&labels).inc();
    }
}
