//! What the rules of a pipeline share: each asks for a part of one verdict, which is made once.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use shared_validation::Subject;

use crate::pipeline::Pipeline;
use crate::problem::Problem;
use crate::role::KUBERNETES_EVENTS;
use crate::tenant_policy::TenantPolicy;
use crate::verdicts;

/// A pipeline and what was found in it.
pub(crate) struct Judged {
    /// The configuration, as the author wrote it.
    pub(crate) config: Value,
    /// What tenants may do.
    pub(crate) policy: TenantPolicy,
    /// Whether it is a tenant's.
    is_tenants: bool,
    problems: OnceCell<Arc<Vec<Problem>>>,
}

impl Judged {
    pub(crate) fn of<'a, K: Pipeline>(subject: &'a Subject<'_, K>) -> &'a Self {
        subject.prepared(|| Self {
            config: subject.object.spec().configuration(),
            policy: TenantPolicy::of(subject.settings),
            is_tenants: K::IS_TENANTS,
            problems: OnceCell::new(),
        })
    }

    /// What Vector would say of it.
    pub(crate) fn problems(&self) -> &[Problem] {
        let none = BTreeSet::new();
        let denied = if self.is_tenants {
            &self.policy.denied_functions
        } else {
            &none
        };
        self.problems
            .get_or_init(|| verdicts::of(&stand_in(self.config.clone()), denied))
    }
}

/// The operator's own type of source is judged as what becomes of it.
fn stand_in(mut config: Value) -> Value {
    let sources = config.get_mut("sources").and_then(Value::as_object_mut);
    for source in sources.into_iter().flat_map(serde_json::Map::values_mut) {
        if source["type"] == KUBERNETES_EVENTS {
            *source = json!({"type": "vector", "address": "0.0.0.0:42000"});
        }
    }
    config
}
