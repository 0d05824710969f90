//! Signals that ask the process to stop, by operating system.

#[cfg(not(unix))]
pub(crate) use other::Signals;
#[cfg(unix)]
pub(crate) use unix::Signals;

#[cfg(unix)]
mod unix {
    use anyhow::Context;
    use tokio::signal::unix::{Signal, SignalKind, signal};

    /// SIGTERM and SIGINT.
    pub(crate) struct Signals {
        terminate: Signal,
        interrupt: Signal,
    }

    impl Signals {
        /// Replaces the default action of the signals.
        pub(crate) fn listen() -> anyhow::Result<Self> {
            Ok(Self {
                terminate: signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?,
                interrupt: signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?,
            })
        }

        /// Waits for a signal and returns its name.
        pub(crate) async fn next(&mut self) -> &'static str {
            tokio::select! {
                _ = self.terminate.recv() => "SIGTERM",
                _ = self.interrupt.recv() => "SIGINT",
            }
        }
    }
}

#[cfg(not(unix))]
mod other {
    use std::future;

    /// Ctrl-C.
    pub(crate) struct Signals;

    impl Signals {
        /// Returns the signals. The default action of Ctrl-C is replaced by the first [`Signals::next`].
        #[expect(clippy::unnecessary_wraps, reason = "on Unix, it can fail")]
        pub(crate) fn listen() -> anyhow::Result<Self> {
            Ok(Self)
        }

        /// Waits for Ctrl-C and returns its name.
        pub(crate) async fn next(&mut self) -> &'static str {
            if tokio::signal::ctrl_c().await.is_err() {
                // Without a handler, the system ends the process.
                future::pending::<()>().await;
            }
            "Ctrl-C"
        }
    }
}
