//! Log events, with the fields that the event collector of kaasops gives them.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::protocol::{EventWrapper, Log, Value, ValueKind, ValueMap};

/// Text of a time that is not set.
const UNSET: &str = "0001-01-01T00:00:00Z";

/// Returns the log event of an Event.
pub(crate) fn new(event: &Event) -> EventWrapper {
    let metadata = &event.metadata;
    let involved = &event.involved_object;
    let source = event.source.clone().unwrap_or_default();
    let fields = object([
        ("uid", text(metadata.uid.as_deref())),
        ("message", text(event.message.as_deref())),
        ("reason", text(event.reason.as_deref())),
        ("action", text(event.action.as_deref())),
        ("type", text(event.type_.as_deref())),
        (
            "creationTimestamp",
            time(metadata.creation_timestamp.as_ref()),
        ),
        ("firstTimestamp", time(event.first_timestamp.as_ref())),
        ("lastTimestamp", time(event.last_timestamp.as_ref())),
        ("name", text(metadata.name.as_deref())),
        ("namespace", text(metadata.namespace.as_deref())),
        (
            "source",
            object([
                ("host", text(source.host.as_deref())),
                ("component", text(source.component.as_deref())),
            ]),
        ),
        (
            "involvedObject",
            object([
                ("uid", text(involved.uid.as_deref())),
                ("kind", text(involved.kind.as_deref())),
                ("name", text(involved.name.as_deref())),
                ("namespace", text(involved.namespace.as_deref())),
                ("apiVersion", text(involved.api_version.as_deref())),
                (
                    "resourceVersion",
                    text(involved.resource_version.as_deref()),
                ),
                ("fieldPath", text(involved.field_path.as_deref())),
            ]),
        ),
    ]);
    let log = Log {
        value: Some(object([("event", fields)])),
    };
    EventWrapper { log: Some(log) }
}

/// Returns the time of the last occurrence of an Event, or that of its creation.
pub(crate) fn last_occurrence(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref();
    let of_series = series.and_then(|series| series.last_observed_time.as_ref());
    [
        of_series.map(|time| time.0),
        event.event_time.as_ref().map(|time| time.0),
        event.last_timestamp.as_ref().map(|time| time.0),
        event.first_timestamp.as_ref().map(|time| time.0),
    ]
    .into_iter()
    .max()
    .flatten()
    .or_else(|| Some(event.metadata.creation_timestamp.as_ref()?.0))
}

fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let fields = fields.into_iter();
    let fields = fields.map(|(name, value)| (name.to_owned(), value));
    let map = ValueMap {
        fields: fields.collect(),
    };
    Value {
        kind: Some(ValueKind::Map(map)),
    }
}

fn text(text: Option<&str>) -> Value {
    let bytes = text.unwrap_or_default().as_bytes().to_vec();
    Value {
        kind: Some(ValueKind::RawBytes(bytes)),
    }
}

fn time(time: Option<&Time>) -> Value {
    match time {
        // Whole seconds, as the API server stores them.
        Some(time) => text(Some(&format!("{:.0}", time.0))),
        None => text(Some(UNSET)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    fn shown(value: &Value) -> Json {
        match &value.kind {
            Some(ValueKind::RawBytes(bytes)) => json!(String::from_utf8_lossy(bytes)),
            Some(ValueKind::Map(map)) => {
                let fields = map.fields.iter();
                let fields = fields.map(|(name, value)| (name.clone(), shown(value)));
                Json::Object(fields.collect())
            }
            None => Json::Null,
        }
    }

    #[test]
    fn a_log_event_has_the_fields_of_an_event() {
        let event = json!({
            "metadata": {"name": "a.1", "namespace": "team", "uid": "1", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "involvedObject": {"kind": "Pod", "name": "a", "namespace": "team"},
            "message": "no space", "reason": "Evicted", "type": "Warning",
            "lastTimestamp": "2026-01-01T00:00:01Z",
            "source": {"component": "kubelet"},
        });
        let event: Event = serde_json::from_value(event).expect("an Event");
        let log = new(&event).log.expect("a log event");
        let shown = shown(&log.value.expect("fields"));
        let expected = json!({"event": {
            "uid": "1", "message": "no space", "reason": "Evicted", "action": "", "type": "Warning",
            "creationTimestamp": "2026-01-01T00:00:00Z", "firstTimestamp": UNSET, "lastTimestamp": "2026-01-01T00:00:01Z",
            "name": "a.1", "namespace": "team", "source": {"host": "", "component": "kubelet"},
            "involvedObject": {
                "uid": "", "kind": "Pod", "name": "a", "namespace": "team", "apiVersion": "", "resourceVersion": "",
                "fieldPath": "",
            },
        }});
        assert_eq!(shown, expected);
    }

    #[test]
    fn an_event_that_is_repeated_has_the_time_of_its_last_occurrence() {
        let with = |fields: Json| {
            let mut event = json!({"metadata": {}, "involvedObject": {}});
            event
                .as_object_mut()
                .expect("an object")
                .extend(fields.as_object().cloned().expect("fields"));
            let event: Event = serde_json::from_value(event).expect("an Event");
            last_occurrence(&event).map(|time| time.to_string())
        };
        let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
        let repeated = with(json!({"firstTimestamp": early, "lastTimestamp": late}));
        assert_eq!(repeated.as_deref(), Some(late));
        let of_series = with(json!({
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "series": {"count": 2, "lastObservedTime": "2026-01-02T00:00:00.000000Z"},
        }));
        assert_eq!(of_series.as_deref(), Some(late));
        let first = with(json!({"firstTimestamp": early}));
        assert_eq!(first.as_deref(), Some(early));
        assert_eq!(with(json!({})), None);
    }
}
