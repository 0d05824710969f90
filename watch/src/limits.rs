//! Time limits of a watch.

use std::time::Duration;

/// Time limits of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchLimits {
    /// Time until the API server must accept a watch, including the wait for the rate limit of the client.
    pub start: Duration,
    /// Time until the API server must begin to answer a list.
    pub list: Duration,
    /// Time without any data after which a watch is resumed on a new connection.
    pub silence: Duration,
}

impl Default for WatchLimits {
    /// Returns limits for kube-apiserver:
    ///
    /// - It queues a request for at most 15 s, a quarter of `--request-timeout`, before it accepts or rejects it
    ///   (API Priority and Fairness, `requestWaitLimit`).
    /// - It ends any other request after 60 s, the default of `--request-timeout`.
    /// - It sends a bookmark to each watch roughly every minute (`defaultBookmarkFrequency` in
    ///   `k8s.io/apiserver/pkg/storage/cacher/cacher.go`), at most 3 s late: a timer of 1 to 1.25 s sends those that are
    ///   due by the second. The limit leaves room for a slow network, and not for a second bookmark.
    ///
    /// A lost connection is noticed after `silence`; with `start` for an attempt on another lost connection, within two
    /// minutes.
    fn default() -> Self {
        Self {
            start: Duration::from_secs(30),
            list: Duration::from_secs(65),
            silence: Duration::from_secs(90),
        }
    }
}
