//! State of one object: its conditions, what its operator says about it, and its last Events.

use anyhow::Context;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use lockstep_controller::api_resource;
use lockstep_shared_validation::{Validator, ValidatorRegistry};
use serde::Serialize;
use serde_json::Value;

use crate::check::diagnostic::on_one_line;
use crate::installation::age::age;
use crate::installation::stored_object::StoredObject;
use crate::printer::plain_table;
use crate::status::visible::Visible;

/// Number of Events that are shown.
const EVENTS: usize = 5;

/// Fields of the status that the runtime writes, and that say nothing that the conditions do not.
const OF_THE_RUNTIME: [&str; 3] = ["conditions", "lastValidated", "observedGeneration"];

/// Name of an object, as kubectl takes it: `KIND/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectName {
    kind: String,
    name: String,
}

/// Parses `KIND/NAME`.
pub(crate) fn object_name(text: &str) -> Result<ObjectName, String> {
    match text.split_once('/') {
        Some((kind, name)) if !kind.is_empty() && !name.is_empty() => Ok(ObjectName {
            kind: kind.to_lowercase(),
            name: name.to_owned(),
        }),
        _ => Err("must be KIND/NAME, such as clouddatabase/orders".to_owned()),
    }
}

/// Readiness of an object, as a script that waits for it wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Standing {
    /// Ready with its present generation.
    Ready,
    /// A user has to act, also if the object is ready.
    Stalled,
    /// Neither yet.
    InProgress,
}

/// Object of one of the kinds of this program.
pub(crate) struct ObjectReader {
    objects: Api<DynamicObject>,
    events: Api<Event>,
    resource: ApiResource,
    name: String,
}

/// Condition of an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownCondition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
    reason: String,
    message: String,
    last_transition_time: Option<Timestamp>,
}

/// Event about an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownEvent {
    time: Option<Timestamp>,
    #[serde(rename = "type")]
    type_: String,
    reason: String,
    message: String,
}

/// Report about one object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ObjectReport {
    object: String,
    pub(crate) standing: Standing,
    generation: Option<i64>,
    conditions: Vec<ShownCondition>,
    status: Vec<(String, String)>,
    events: Visible<Vec<ShownEvent>>,
}

impl ObjectReader {
    /// Selects an object. Without a namespace, it is in that of the kubeconfig.
    ///
    /// # Errors
    ///
    /// The program has no such kind.
    pub(crate) fn new(
        client: Client,
        kinds: &ValidatorRegistry,
        object: &ObjectName,
        namespace: Option<&str>,
    ) -> anyhow::Result<Self> {
        let mut all = kinds.iter();
        let found = all.find(|kind| is_named(kind.as_ref(), &object.kind));
        let kind = found.with_context(|| {
            let names = kinds.iter().map(|kind| kind.kind().to_lowercase());
            let names = names.collect::<Vec<_>>().join(", ");
            format!(
                "this program has no kind {}; its kinds are {names}",
                object.kind
            )
        })?;
        let resource = api_resource(kind.as_ref());
        let namespace =
            namespace.map_or_else(|| client.default_namespace().to_owned(), str::to_owned);
        let is_namespaced = kind.crd()["spec"]["scope"] != "Cluster";
        let (objects, events) = if is_namespaced {
            (
                Api::namespaced_with(client.clone(), &namespace, &resource),
                Api::namespaced(client, &namespace),
            )
        } else {
            // Events of objects without a namespace are in this one.
            (
                Api::all_with(client.clone(), &resource),
                Api::namespaced(client, "default"),
            )
        };
        Ok(Self {
            objects,
            events,
            resource,
            name: object.name.clone(),
        })
    }

    /// Reads the object.
    pub(crate) async fn read(&self) -> anyhow::Result<StoredObject> {
        let object = self.objects.get(&self.name).await;
        let object =
            object.with_context(|| format!("cannot read {} {}", self.resource.kind, self.name))?;
        Ok(StoredObject {
            resource: self.resource.clone(),
            object,
        })
    }

    /// Reads the Events of the object, and returns the report.
    pub(crate) async fn report(&self, object: &StoredObject) -> anyhow::Result<ObjectReport> {
        let of_object = format!("involvedObject.uid={}", object.uid());
        let events = self
            .events
            .list(&ListParams::default().fields(&of_object))
            .await;
        let events =
            Visible::of(events.map(|list| list.items)).context("cannot read its Events")?;
        Ok(ObjectReport {
            object: object.shown(),
            standing: standing(object),
            generation: object.object.metadata.generation,
            conditions: conditions(object),
            status: operator_fields(&object.object.data["status"]),
            events: events.map(last_events),
        })
    }
}

/// Returns true if a name that a user has written is one of a kind.
fn is_named(kind: &dyn Validator, name: &str) -> bool {
    let names = &kind.crd()["spec"]["names"];
    let group = format!(".{}", kind.group());
    let name = name.strip_suffix(&group).unwrap_or(name);
    let short = names["shortNames"].as_array().into_iter().flatten();
    let all = short.chain([&names["plural"], &names["singular"]]);
    let mut all = all.filter_map(Value::as_str);
    all.any(|known| known == name) || kind.kind().eq_ignore_ascii_case(name)
}

pub(crate) fn standing(object: &StoredObject) -> Standing {
    let generation = object.object.metadata.generation;
    let is = |type_: &str| {
        let condition = object.condition(type_);
        condition.is_some_and(|condition| {
            condition["status"] == "True" && condition["observedGeneration"].as_i64() == generation
        })
    };
    if is("Stalled") {
        Standing::Stalled
    } else if is("Ready") {
        Standing::Ready
    } else {
        Standing::InProgress
    }
}

fn conditions(object: &StoredObject) -> Vec<ShownCondition> {
    let all = object.object.data["status"]["conditions"].as_array();
    let all = all.into_iter().flatten().map(|condition| {
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        ShownCondition {
            type_: text("type"),
            status: text("status"),
            reason: text("reason"),
            message: text("message"),
            last_transition_time: text("lastTransitionTime").parse().ok(),
        }
    });
    all.collect()
}

/// Returns the status fields of the operator, each value with its path.
fn operator_fields(status: &Value) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    for (name, value) in status.as_object().into_iter().flatten() {
        if !OF_THE_RUNTIME.contains(&name.as_str()) {
            flatten(name, value, &mut fields);
        }
    }
    fields
}

fn flatten(path: &str, value: &Value, fields: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                flatten(&format!("{path}.{name}"), value, fields);
            }
        }
        Value::String(text) => fields.push((path.to_owned(), text.clone())),
        other => fields.push((path.to_owned(), other.to_string())),
    }
}

fn last_events(events: Vec<Event>) -> Vec<ShownEvent> {
    let shown = events.into_iter().map(|event| {
        let series = event.series.and_then(|series| series.last_observed_time);
        let time = series.or(event.event_time).map(|time| time.0);
        ShownEvent {
            time: time.or(event.last_timestamp.map(|time| time.0)),
            type_: event.type_.unwrap_or_default(),
            reason: event.reason.unwrap_or_default(),
            message: event.message.unwrap_or_default(),
        }
    });
    let mut shown: Vec<_> = shown.collect();
    shown.sort_by_key(|event| std::cmp::Reverse(event.time));
    shown.truncate(EVENTS);
    shown
}

impl ObjectReport {
    /// Returns the report for people.
    pub(crate) fn to_text(&self) -> String {
        let now = Timestamp::now();
        let since = |time: Option<Timestamp>| time.map_or(String::new(), |time| age(time, now));
        let state = match self.standing {
            Standing::Ready => "ready",
            Standing::Stalled => "waits for a user",
            Standing::InProgress => "not ready yet",
        };
        let generation = self.generation.unwrap_or_default();
        let mut text = format!("{}, generation {generation}: {state}\n\n", self.object);
        let mut table = plain_table(["CONDITION", "STATUS", "REASON", "AGE", "MESSAGE"]);
        for condition in &self.conditions {
            let age = since(condition.last_transition_time);
            let message = on_one_line(&condition.message);
            let (type_, status) = (&condition.type_, &condition.status);
            table.add_row([type_, status, &condition.reason, &age, &message]);
        }
        text += &format!("{table}\n");
        if !self.status.is_empty() {
            let mut table = plain_table(["STATUS FIELD", "VALUE"]);
            for (path, value) in &self.status {
                table.add_row([path, &on_one_line(value)]);
            }
            text += &format!("\n{table}\n");
        }
        match &self.events {
            Visible::Known(events) if events.is_empty() => {}
            Visible::Known(events) => {
                let mut table = plain_table(["EVENT", "TYPE", "AGE", "MESSAGE"]);
                for event in events {
                    // Each user who may create Events can have written it.
                    let message = on_one_line(&event.message);
                    let reason = on_one_line(&event.reason);
                    table.add_row([&reason, &event.type_, &since(event.time), &message]);
                }
                text += &format!("\n{table}\n");
            }
            Visible::Unknown { unknown } => text += &format!("\nEvents: unknown ({unknown})\n"),
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(conditions: &Value) -> StoredObject {
        let object = json!({
            "metadata": {"name": "a", "generation": 2},
            "status": {"conditions": conditions},
        });
        let gvk = kube::core::GroupVersionKind::gvk("example.com", "v1", "Lamp");
        StoredObject {
            resource: ApiResource::from_gvk(&gvk),
            object: serde_json::from_value(object).expect("an object"),
        }
    }

    #[test]
    fn only_a_condition_of_the_present_generation_counts() {
        let condition = |type_: &str, status: &str, generation: i64| json!({"type": type_, "status": status, "observedGeneration": generation});
        for (conditions, expected) in [
            (json!([]), Standing::InProgress),
            (json!([condition("Ready", "True", 1)]), Standing::InProgress),
            (
                json!([condition("Ready", "False", 2)]),
                Standing::InProgress,
            ),
            (json!([condition("Ready", "True", 2)]), Standing::Ready),
            (
                json!([
                    condition("Ready", "True", 2),
                    condition("Stalled", "True", 2)
                ]),
                Standing::Stalled,
            ),
            (
                json!([
                    condition("Ready", "True", 2),
                    condition("Stalled", "True", 1)
                ]),
                Standing::Ready,
            ),
        ] {
            let object = object(&conditions);
            assert_eq!(standing(&object), expected, "{object:?}");
        }
    }

    #[test]
    fn the_fields_of_the_operator_are_shown_with_their_paths() {
        let status = json!({
            "conditions": [], "lastValidated": {"a": 1}, "observedGeneration": 1,
            "endpoint": {"host": "db.example.com", "port": 5432}, "pending": ["multiAz"], "phase": "available",
        });
        let fields = operator_fields(&status);
        let fields: Vec<_> = fields
            .iter()
            .map(|(path, value)| (path.as_str(), value.as_str()))
            .collect();
        let expected = [
            ("endpoint.host", "db.example.com"),
            ("endpoint.port", "5432"),
            ("pending", r#"["multiAz"]"#),
            ("phase", "available"),
        ];
        assert_eq!(fields, expected);
    }

    #[test]
    fn an_object_is_named_by_kind_and_name() {
        let parsed = object_name("CloudDatabase/orders").expect("a name");
        assert_eq!(
            (parsed.kind.as_str(), parsed.name.as_str()),
            ("clouddatabase", "orders")
        );
        for wrong in ["orders", "/orders", "cdb/"] {
            assert!(object_name(wrong).is_err(), "{wrong}");
        }
    }
}
