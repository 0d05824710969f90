//! A loop that runs beside a test.

use controller::Runnable;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A loop that runs until it is stopped.
pub struct Running {
    stop: watch::Sender<bool>,
    ended: JoinHandle<()>,
}

impl Running {
    /// Starts a loop.
    pub fn start(run: impl Runnable + 'static) -> Self {
        let (stop, stopping) = watch::channel(false);
        let ended = tokio::spawn(Box::new(run).run(stopping));
        Self { stop, ended }
    }

    /// Stops it and waits until the rounds under way have come to their end.
    ///
    /// # Panics
    ///
    /// If the loop has.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        self.ended.await.expect("the loop ends");
    }
}
