//! Watch on one object, whose changes only trigger a check.

use std::future::ready;

use futures::{Stream, StreamExt};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Error, watch_object};

use crate::state::Watches;

/// Object that is watched by its name.
#[derive(Clone, Debug)]
pub struct WatchedObject {
    /// Type of the object.
    pub resource: ApiResource,
    /// Namespace of the object; none if it is cluster-scoped.
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: String,
}

impl WatchedObject {
    /// Returns a stream of the changes of the object, by any client. `controller` is the part of the program that needs
    /// them.
    pub fn changes(
        &self,
        client: &Client,
        watches: &Watches,
        controller: &str,
    ) -> impl Stream<Item = ()> + Send + use<> {
        let resource = self.resource.clone();
        let state = watches.start(controller, &type_name(&resource));
        let client = state.client(client);
        let api: Api<DynamicObject> = match &self.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &resource),
            None => Api::all_with(client, &resource),
        };
        let (controller, name) = (controller.to_owned(), self.name.clone());
        let events = watch_object(api, &self.name).default_backoff();
        events.filter_map(move |event| {
            let change = match event {
                Ok(_) => {
                    state.set_up();
                    Some(())
                }
                Err(error) => {
                    let reason = failure_reason(&error, &resource);
                    tracing::warn!(%error, controller, name, "the watch {reason}; retrying");
                    state.set_down(reason);
                    None
                }
            };
            ready(change)
        })
    }
}

/// Returns the name of a type, as that of its CRD; without a group only the plural.
#[must_use]
pub fn type_name(resource: &ApiResource) -> String {
    let name = format!("{}.{}", resource.plural, resource.group);
    name.trim_end_matches('.').to_owned()
}

/// Returns why a watch fails, and what to do about it, as the end of a sentence.
#[must_use]
pub fn failure_reason(error: &Error, resource: &ApiResource) -> String {
    let name = type_name(resource);
    let status = match error {
        Error::InitialListFailed(kube::Error::Api(status))
        | Error::WatchStartFailed(kube::Error::Api(status))
        | Error::WatchFailed(kube::Error::Api(status))
        | Error::WatchError(status) => Some(status),
        _ => None,
    };
    match status.map(|status| status.code) {
        Some(401 | 403) => format!("is forbidden: grant `list` and `watch` on {name}"),
        Some(404) => format!("failed because the kind does not exist: apply the CRD {name}"),
        _ => format!("failed: {error}"),
    }
}
