//! Reconciliation of other objects, for which something has become possible.

use std::sync::Arc;

use lockstep_controller::ControllerRegistry;

use crate::aws::rds_events::changed_instances::Owner;
use crate::aws::rds_events::receiver::CONTROLLER;

/// Function that has an object reconciled.
#[derive(Clone)]
pub(crate) struct Enqueue(Arc<dyn Fn(&Owner) + Send + Sync>);

impl Default for Enqueue {
    /// Returns a function that does nothing: the object waits for its next reconciliation.
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl Enqueue {
    pub(crate) fn new(enqueue: impl Fn(&Owner) + Send + Sync + 'static) -> Self {
        Self(Arc::new(enqueue))
    }

    /// Has objects reconciled.
    pub(crate) fn all(&self, owners: &[Owner]) {
        for owner in owners {
            (self.0)(owner);
        }
    }

    /// Returns a function that adds an object to the queue of its controller.
    pub(crate) fn in_controllers(controllers: ControllerRegistry) -> Self {
        Self::new(move |owner| {
            // A controller that does not run any more reconciles all objects when it starts.
            let _ = controllers.enqueue(CONTROLLER, Some(&owner.namespace), &owner.name);
        })
    }
}
