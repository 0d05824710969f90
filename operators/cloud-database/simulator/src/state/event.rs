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
    /// Returns the event as `EventBridge` delivers it
    /// (<https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/rds-cloud-watch-events.html>). `number` distinguishes the
    /// events of a region.
    pub(crate) fn bridged(&self, number: usize) -> Value {
        let of_arn = |part: usize| self.arn.split(':').nth(part);
        json!({
            "version": "0",
            "id": format!("00000000-0000-4000-8000-{number:012x}"),
            "detail-type": "RDS DB Instance Event",
            "source": "aws.rds",
            "account": of_arn(4),
            "region": of_arn(3),
            "time": self.at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            "resources": [self.arn],
            "detail": {
                "EventCategories": [self.category],
                "SourceType": "DB_INSTANCE",
                "SourceArn": self.arn,
                "Date": self.at.to_string(),
                "SourceIdentifier": self.source,
                "Message": self.message,
            },
        })
    }

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
