//! Configuration of the collector: a file that the controller writes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::error::CollectorError;

/// Default number of events in a batch.
const MAX_BATCH_SIZE: usize = 250;

/// Receivers, and how much each gets at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct Configuration {
    max_batch_size: usize,
    pub(crate) receivers: BTreeSet<Receiver>,
}

/// Source of Vector, and the namespace whose Events it gets.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct Receiver {
    service_name: String,
    service_namespace: String,
    port: String,
    /// Empty: all namespaces.
    pub(crate) watched_namespace: String,
}

impl Configuration {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is no configuration.
    pub(crate) fn read(path: &Path) -> Result<Self, CollectorError> {
        let file = path.to_owned();
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) => return Err(CollectorError::Unreadable { file, error }),
        };
        serde_json::from_slice(&text).map_err(|error| CollectorError::Invalid { file, error })
    }

    /// Returns the maximum number of events in a batch.
    pub(crate) fn max_batch_size(&self) -> usize {
        match self.max_batch_size {
            0 => MAX_BATCH_SIZE,
            size => size,
        }
    }
}

impl Receiver {
    /// Returns the address of the source.
    pub(crate) fn address(&self) -> String {
        let Self {
            service_name,
            service_namespace,
            port,
            ..
        } = self;
        // Without a namespace it is a name outside of the cluster.
        let dot = if service_namespace.is_empty() {
            ""
        } else {
            "."
        };
        format!("{service_name}{dot}{service_namespace}:{port}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_the_one_that_the_controller_writes() {
        let text = r#"{"MaxBatchSize": 10, "Receivers": [{"ServiceName": "central-aggregator-p",
            "ServiceNamespace": "team", "Port": "42007", "WatchedNamespace": "team"}]}"#;
        let configuration: Configuration = serde_json::from_str(text).expect("it is valid");
        assert_eq!(configuration.max_batch_size(), 10);
        let receiver = configuration.receivers.first().expect("a receiver");
        assert_eq!(receiver.address(), "central-aggregator-p.team:42007");
        assert_eq!(receiver.watched_namespace, "team");
        let default: Configuration = serde_json::from_str("{}").expect("it is valid");
        assert_eq!(default.max_batch_size(), MAX_BATCH_SIZE);
    }
}
