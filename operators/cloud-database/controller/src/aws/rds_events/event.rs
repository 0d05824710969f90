//! Events of RDS in the bodies of messages: from a rule of EventBridge, or from an event subscription through SNS.

use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;

/// Instance of RDS.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct InstanceKey {
    pub(crate) account_id: String,
    pub(crate) region: String,
    /// Identifier, in lower case.
    pub(crate) id: String,
}

impl InstanceKey {
    /// Reads an ARN of an instance (`arn:PARTITION:rds:REGION:ACCOUNT:db:IDENTIFIER`).
    fn from_arn(arn: &str) -> Option<Self> {
        let parts: Vec<_> = arn.split(':').collect();
        let &["arn", _, "rds", region, account_id, "db", id] = parts.as_slice() else {
            return None;
        };
        Some(Self {
            account_id: account_id.to_owned(),
            region: region.to_owned(),
            id: id.to_lowercase(),
        })
    }
}

/// Content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Event of an instance, with its time if that is readable.
    Instance(InstanceKey, Option<Timestamp>),
    /// Event of something else, such as a snapshot.
    Other,
}

/// Event as EventBridge delivers it
/// (<https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/rds-cloud-watch-events.html>).
#[derive(Deserialize)]
struct Bridged {
    source: String,
    #[serde(rename = "detail-type")]
    detail_type: String,
    time: Option<String>,
    detail: Detail,
}

#[derive(Deserialize)]
struct Detail {
    #[serde(rename = "SourceArn")]
    source_arn: Option<String>,
    #[serde(rename = "Date")]
    date: Option<String>,
}

/// Notification of SNS, with an event in its message.
#[derive(Deserialize)]
struct Notification {
    #[serde(rename = "Type")]
    type_: String,
    #[serde(rename = "TopicArn")]
    topic_arn: String,
    #[serde(rename = "Message")]
    message: String,
    #[serde(rename = "Timestamp")]
    timestamp: Option<String>,
}

/// Event of an event subscription. Its format is known from its examples only.
#[derive(Deserialize)]
struct Subscribed {
    #[serde(rename = "Event Source")]
    source: String,
    #[serde(rename = "Source ID")]
    source_id: Option<String>,
    #[serde(rename = "Source ARN")]
    source_arn: Option<String>,
}

/// Source and type of the events of instances.
const OF_INSTANCES: (&str, &str) = ("aws.rds", "RDS DB Instance Event");

/// Reads the body of a message. Returns `None` if it is no event.
pub(crate) fn read(body: &str) -> Option<Content> {
    if let Ok(notification) = serde_json::from_str::<Notification>(body) {
        return (notification.type_ == "Notification")
            .then(|| notified(&notification))
            .flatten();
    }
    bridged(body)
}

fn bridged(body: &str) -> Option<Content> {
    let event: Bridged = serde_json::from_str(body).ok()?;
    if (event.source.as_str(), event.detail_type.as_str()) != OF_INSTANCES {
        return Some(Content::Other);
    }
    // The identifier in `SourceIdentifier` has a prefix in some events, and none in others.
    let instance = InstanceKey::from_arn(&event.detail.source_arn?)?;
    let time = event.detail.date.or(event.time);
    Some(Content::Instance(
        instance,
        time.and_then(|it| it.parse().ok()),
    ))
}

fn notified(notification: &Notification) -> Option<Content> {
    if let Some(event) = bridged(&notification.message) {
        return Some(event);
    }
    let event: Subscribed = serde_json::from_str(&notification.message).ok()?;
    if event.source != "db-instance" {
        return Some(Content::Other);
    }
    let of_arn = event.source_arn.as_deref().and_then(InstanceKey::from_arn);
    let instance = match of_arn {
        Some(instance) => instance,
        // The topic of a subscription is in the region and account of its instances.
        None => InstanceKey {
            region: notification.topic_arn.split(':').nth(3)?.to_owned(),
            account_id: notification.topic_arn.split(':').nth(4)?.to_owned(),
            id: event.source_id?.to_lowercase(),
        },
    };
    let time = notification.timestamp.as_deref();
    Some(Content::Instance(
        instance,
        time.and_then(|it| it.parse().ok()),
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn orders() -> InstanceKey {
        InstanceKey {
            account_id: "123456789012".to_owned(),
            region: "us-east-1".to_owned(),
            id: "orders".to_owned(),
        }
    }

    const TIME: &str = "2026-01-02T03:04:05.678Z";

    fn bridged(detail_type: &str, arn: &str) -> Value {
        json!({
            "version": "0", "id": "68f6e973-1a0c-d37b-f2f2-94a7f62ffd4e", "source": "aws.rds",
            "detail-type": detail_type, "account": "123456789012", "region": "us-east-1",
            "time": "2026-01-02T03:04:05Z", "resources": [arn],
            "detail": {
                "EventCategories": ["failover"], "SourceType": "DB_INSTANCE", "SourceArn": arn,
                "Date": TIME, "Message": "A Multi-AZ failover has completed.",
                "SourceIdentifier": "rds:Orders", "EventID": "RDS-EVENT-0049",
            },
        })
    }

    fn notification(message: &Value) -> String {
        let topic = "arn:aws:sns:us-east-1:123456789012:rds";
        let message = message.to_string();
        json!({"Type": "Notification", "TopicArn": topic, "Message": message, "Timestamp": TIME})
            .to_string()
    }

    const ARN: &str = "arn:aws:rds:us-east-1:123456789012:db:Orders";

    #[test]
    fn an_event_of_an_instance_is_read_from_eventbridge_and_from_sns() {
        let expected = Content::Instance(orders(), TIME.parse().ok());
        let event = bridged("RDS DB Instance Event", ARN);
        let subscribed = |arn: Option<&str>| {
            let event = json!({
                "Event Source": "db-instance", "Event Time": "2026-01-02 03:04:05.678",
                "Source ID": "Orders", "Source ARN": arn, "Event Message": "Failover completed.",
            });
            notification(&event)
        };
        for body in [
            event.to_string(),
            notification(&event),
            subscribed(Some(ARN)),
            subscribed(None),
        ] {
            assert_eq!(read(&body), Some(expected.clone()), "{body}");
        }
    }

    #[test]
    fn events_of_other_resources_are_no_errors() {
        let snapshot = "arn:aws:rds:us-east-1:123456789012:snapshot:rds:orders";
        let of_snapshot = bridged("RDS DB Snapshot Event", snapshot);
        let subscribed = json!({"Event Source": "db-cluster", "Source ID": "orders"});
        for body in [of_snapshot.to_string(), notification(&subscribed)] {
            assert_eq!(read(&body), Some(Content::Other), "{body}");
        }
    }

    #[test]
    fn what_is_no_event_is_recognised() {
        let other = bridged("RDS DB Instance Event", "arn:aws:ec2:us-east-1:1:db:orders");
        let confirmation = json!({
            "Type": "SubscriptionConfirmation", "TopicArn": "arn:aws:sns:us-east-1:1:rds",
            "Message": "You have chosen to subscribe",
        });
        let mut without_arn = bridged("RDS DB Instance Event", ARN);
        without_arn["detail"]["SourceArn"] = Value::Null;
        for body in [
            String::new(),
            "no JSON".to_owned(),
            "{}".to_owned(),
            "[1]".to_owned(),
            other.to_string(),
            confirmation.to_string(),
            without_arn.to_string(),
            notification(&json!("text")),
            "[".repeat(100_000),
        ] {
            let shown: String = body.chars().take(80).collect();
            assert_eq!(read(&body), None, "{shown}");
        }
    }
}
