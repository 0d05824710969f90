//! Waiting for the state of objects, of instances and of Events.

use std::time::Duration;

use aws_sdk_rds::types::DbInstance;
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Api, DynamicObject, ListParams};
use lockstep_envtest::{eventually, eventually_within};

use crate::env::{NAMESPACE, TestEnv, condition};

impl TestEnv {
    /// Waits until a condition of a database has this status and the current generation.
    pub async fn condition(&self, name: &str, type_: &str, status: &str) -> Condition {
        self.condition_of(&self.databases(), name, type_, status)
            .await
    }

    /// Waits until a condition of an object of any kind has this status and the current generation.
    pub async fn condition_of(
        &self,
        api: &Api<DynamicObject>,
        name: &str,
        type_: &str,
        status: &str,
    ) -> Condition {
        self.condition_within(Duration::from_mins(1), api, name, (type_, status))
            .await
    }

    /// Waits at most for `deadline` until a condition, a type and a status, of an object has the current generation.
    pub async fn condition_within(
        &self,
        deadline: Duration,
        api: &Api<DynamicObject>,
        name: &str,
        (type_, status): (&str, &str),
    ) -> Condition {
        let what = format!("condition {type_}={status} of {name}");
        eventually_within(deadline, &what, async || {
            let object = api.get(name).await.ok()?;
            condition(&object, type_).filter(|c| {
                c.status == status && c.observed_generation == object.metadata.generation
            })
        })
        .await
        .unwrap_or_else(|error| self.fail(&error.to_string()))
    }

    /// Waits until an instance satisfies the predicate.
    pub async fn instance_that(&self, what: &str, is_so: impl Fn(&DbInstance) -> bool) {
        let seen = eventually(what, async || {
            self.instances().await.iter().any(&is_so).then_some(())
        });
        seen.await
            .unwrap_or_else(|error| self.fail(&error.to_string()));
    }

    /// Waits until a condition of a database has this reason and the current generation.
    pub async fn condition_because(&self, name: &str, type_: &str, reason: &str) -> Condition {
        let databases = self.databases();
        let what = format!("condition {type_} with reason {reason} of {name}");
        eventually(&what, async || {
            let object = databases.get(name).await.ok()?;
            condition(&object, type_).filter(|c| {
                c.reason == reason && c.observed_generation == object.metadata.generation
            })
        })
        .await
        .unwrap_or_else(|error| self.fail(&error.to_string()))
    }

    /// Waits until a database no longer exists.
    pub async fn gone(&self, name: &str) {
        eventually("the deletion of the object", async || {
            (!self.has_database(name).await).then_some(())
        })
        .await
        .unwrap_or_else(|error| self.fail(&error.to_string()));
    }

    /// Waits until the Warning Events about an object contain a text. An Event can come after the status that it explains.
    pub async fn warned(&self, name: &str, text: &str) {
        self.has_event(&format!("type=Warning,involvedObject.name={name}"), text)
            .await;
    }

    /// Waits until the messages of the selected Events contain a text.
    pub async fn has_event(&self, selector: &str, text: &str) {
        let what = format!("'{text}' in an Event with {selector}");
        let told = eventually(&what, async || {
            self.event_messages(selector)
                .await
                .contains(text)
                .then_some(())
        });
        if let Err(error) = told.await {
            self.fail(&format!("{error}\n{}", self.event_messages(selector).await));
        }
    }

    /// Messages of the Warning Events about an object.
    pub async fn warnings(&self, name: &str) -> String {
        self.event_messages(&format!("type=Warning,involvedObject.name={name}"))
            .await
    }

    async fn event_messages(&self, selector: &str) -> String {
        let events: Api<Event> = Api::namespaced(self.cluster.client(), NAMESPACE);
        let selected = ListParams::default().fields(selector);
        let events = events.list(&selected).await;
        let events = events.unwrap_or_else(|error| self.fail(&error.to_string()));
        let messages = events.into_iter().filter_map(|event| event.message);
        messages.collect::<Vec<_>>().join("\n")
    }
}
