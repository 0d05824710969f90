//! Search for secret values where they must not be.

use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};

use crate::chaos::owned_objects::OwnedObjects;
use crate::chaos::owned_objects::value_of;
use crate::chaos::violation::{Property, Violation};
use crate::chaos::workload::Workload;

/// Returns where secret values were found: in objects of the kind, in Events and in owned objects that are no Secrets.
pub(crate) async fn leaks(
    users: &Workload,
    owned: &OwnedObjects,
    client: &Client,
    namespace: Option<&str>,
) -> Vec<Violation> {
    let all = ListParams::default();
    let objects = users.api.list(&all).await;
    let objects = objects.expect("the API server lists the objects");
    let objects: Vec<_> = objects.iter().map(value_of).collect();
    let secrets = objects.iter().flat_map(|object| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let values = (users.trial.expectations.secrets)(object);
        values.into_iter().map(|value| (name.to_owned(), value))
    });
    let of_system = users.trial.system.secrets().into_iter();
    let secrets = secrets.chain(of_system.map(|value| (String::new(), value)));
    let secrets: Vec<_> = secrets.filter(|(_, value)| !value.is_empty()).collect();
    if secrets.is_empty() {
        return Vec::new();
    }
    let mut texts = Vec::new();
    for object in &objects {
        texts.push(("the status", object["status"].to_string()));
        texts.push(("the metadata", object["metadata"].to_string()));
    }
    let events: Api<Event> = Api::namespaced(client.clone(), namespace.unwrap_or("default"));
    let events = events
        .list(&all)
        .await
        .expect("the API server lists Events");
    for event in events {
        texts.push(("an Event", event.note.unwrap_or_default()));
    }
    for (resource, object) in owned.list_without(users.related.known()).await {
        if resource.kind != "Secret" {
            let text = value_of(&object).to_string();
            texts.push(("an owned object", format!("{} {text}", object.name_any())));
        }
    }
    let leak = |(name, secret): &(String, String)| {
        let (place, text) = texts.iter().find(|(_, text)| text.contains(secret))?;
        let shown = text.replace(secret.as_str(), "<the secret value>");
        Some(Violation::new(
            Property::NoSecrets,
            name,
            format!("no secret value in {place}"),
            shown,
        ))
    };
    secrets.iter().filter_map(leak).collect()
}
