//! Event as it is read: a value that its writer chose keeps no other Event from being read.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::Resource;
use kube::core::ObjectMeta;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Times of an Event. The API server takes each that Go can read, and those after the year 9999 minus a day are no [`Timestamp`].
const TIMES: [&str; 6] = [
    "/eventTime",
    "/firstTimestamp",
    "/lastTimestamp",
    "/series/lastObservedTime",
    "/metadata/creationTimestamp",
    "/metadata/deletionTimestamp",
];

/// Event without the times that cannot be read. One that failed would fail the whole list, with the Events of all others.
#[derive(Clone, Debug)]
pub(crate) struct ReadEvent(pub(crate) Event);

impl<'de> Deserialize<'de> for ReadEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut object = Value::deserialize(deserializer)?;
        for time in TIMES {
            if let Some(time) = object.pointer_mut(time)
                && Timestamp::deserialize(&*time).is_err()
            {
                *time = Value::Null;
            }
        }
        // They have times, too, and are not sent.
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        let event = serde_json::from_value(object).map_err(D::Error::custom)?;
        Ok(Self(event))
    }
}

impl Resource for ReadEvent {
    type DynamicType = ();
    type Scope = <Event as Resource>::Scope;

    fn kind(dynamic: &()) -> Cow<'_, str> {
        Event::kind(dynamic)
    }

    fn group(dynamic: &()) -> Cow<'_, str> {
        Event::group(dynamic)
    }

    fn version(dynamic: &()) -> Cow<'_, str> {
        Event::version(dynamic)
    }

    fn plural(dynamic: &()) -> Cow<'_, str> {
        Event::plural(dynamic)
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_time_that_cannot_be_read_is_left_out() {
        let far = "9999-12-31T23:59:59Z";
        let event = json!({
            "metadata": {"name": "a", "managedFields": [{"time": far}], "creationTimestamp": "2026-01-01T00:00:00Z"},
            "involvedObject": {}, "lastTimestamp": far, "eventTime": null, "firstTimestamp": "2026-01-01T00:00:00Z",
            "series": {"count": 2, "lastObservedTime": far}, "message": "full",
        });
        let ReadEvent(event) = serde_json::from_value(event).expect("an Event");
        assert_eq!(event.message.as_deref(), Some("full"));
        assert!(event.last_timestamp.is_none() && event.first_timestamp.is_some());
        assert!(event.metadata.creation_timestamp.is_some());
        let series = event.series.expect("a series");
        assert!(series.count == Some(2) && series.last_observed_time.is_none());
    }
}
