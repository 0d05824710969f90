//! Controller that runs in the background of a test.

use lockstep_controller::Runnable;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Controller that runs until it is stopped.
///
/// ```no_run
/// use lockstep_controller::{Metrics, Reconciler};
/// use lockstep_envtest::Cluster;
/// use lockstep_test::{RunningController, apply, objects, operator, wait_for_condition};
/// use serde_json::json;
///
/// async fn an_object_becomes_ready<R: Reconciler>(cluster: &Cluster, reconciler: R) {
///     let controller = operator(cluster.client(), reconciler, &Metrics::default());
///     let controller = RunningController::start(controller);
///
///     let all = objects::<R::Kind>(cluster.client(), Some("default"));
///     apply::<R::Kind>(&all, "a", &json!({"spec": {}})).await;
///     wait_for_condition(&all, "a", "Ready", "True").await;
///     controller.stop().await;
/// }
/// ```
pub struct RunningController {
    stop: watch::Sender<bool>,
    ended: JoinHandle<()>,
}

impl RunningController {
    /// Starts a controller.
    pub fn start(run: impl Runnable + 'static) -> Self {
        let (stop, stopping) = watch::channel(false);
        let ended = tokio::spawn(Box::new(run).run(stopping));
        Self { stop, ended }
    }

    /// Stops the controller and waits until the reconciliations in progress have finished.
    ///
    /// # Panics
    ///
    /// If the controller has panicked.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        self.ended.await.expect("the controller does not panic");
    }
}
