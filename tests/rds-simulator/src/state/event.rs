//! Events of instances and snapshots.

use jiff::Timestamp;
use serde_json::{Value, json};

/// Event.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) source: String,
    pub(crate) source_type: &'static str,
    pub(crate) arn: String,
    pub(crate) category: &'static str,
    pub(crate) message: String,
    pub(crate) at: Timestamp,
}

impl Event {
    /// Returns the event as RDS lists it.
    pub(crate) fn reported(&self) -> Value {
        json!({
            "SourceIdentifier": self.source,
            "SourceType": self.source_type,
            "SourceArn": self.arn,
            "EventCategories": [self.category],
            "Message": self.message,
            "Date": self.at.to_string(),
        })
    }
}
