//! Controller that runs in the background of a test.

use lockstep_controller::Runnable;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Controller that runs until it is stopped.
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
