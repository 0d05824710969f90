//! Events of RDS, received from an SQS queue, so that changes by other clients are noticed within seconds.
//!
//! queue → [`receiver`] → [`event`] → object with that [instance](changed_instances) → reconciliation with a description of the
//! present state → message deleted
//!
//! While events are [received](health), objects are reconciled for changes less often. When the queue fails, they are again
//! reconciled at the usual interval.

pub(crate) mod changed_instances;
pub(crate) mod event;
pub(crate) mod health;
pub(crate) mod metrics;
pub(crate) mod queue;
pub(crate) mod queue_address;
pub(crate) mod receiver;

use std::time::Duration;

use lockstep_controller::ControllerRegistry;

use crate::aws::rds_events::changed_instances::ChangedInstances;
use crate::aws::rds_events::health::EventsHealth;
use crate::aws::rds_events::metrics::RdsEventsMetrics;
use crate::aws::rds_events::queue::EventsQueue;
use crate::aws::rds_events::receiver::RdsEventsReceiver;

/// State that the receiver of the events and the reconcilers share. Without a receiver, there are no events.
#[derive(Clone, Default)]
pub struct RdsEvents {
    pub(crate) changed: ChangedInstances,
    pub(crate) health: EventsHealth,
}

impl RdsEvents {
    /// Creates the receiver for a leadership term. If the queue fails, objects are reconciled at least every
    /// `resync_period`.
    #[must_use]
    pub fn receiver(
        &self,
        queue: EventsQueue,
        controllers: ControllerRegistry,
        metrics: RdsEventsMetrics,
        resync_period: Duration,
    ) -> RdsEventsReceiver {
        RdsEventsReceiver::new(
            queue,
            self.changed.clone(),
            self.health.clone(),
            controllers,
            metrics,
            resync_period,
        )
    }
}
