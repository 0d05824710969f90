//! Watch streams, as changes of single objects.

use std::future::ready;
use std::sync::Arc;

use futures::{Stream, StreamExt, TryStreamExt};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher;
use kube::runtime::watcher::{Error, Event};

pub(crate) use lockstep_watch::{failure_reason as reason, type_name as name};

use crate::cache::store::CompressedObject;
use crate::custom_object::{CustomMetadata, CustomObject, OwnedObject};
use crate::dynamic_object;
use crate::field_manager::FieldManager;
use crate::predicate::UpdateEvent;

/// Fields of the objects of a watch that are read.
#[derive(Clone, Copy)]
pub(crate) enum Fields {
    /// All, `metadata.managedFields` as well.
    All,
    /// All but `metadata.managedFields`.
    Unmanaged,
    /// The metadata without `managedFields`.
    Metadata,
}

/// Returns the events of all objects of a kind, in one namespace or in all.
///
/// The initial objects are streamed if the API server supports that, and otherwise listed page by page.
pub(crate) fn events(
    client: &Client,
    resource: &ApiResource,
    namespace: Option<&str>,
    config: &watcher::Config,
    fields: Fields,
    manager: &FieldManager,
) -> impl Stream<Item = watcher::Result<Event<DynamicObject>>> + use<> {
    let all: Api<OwnedObject> = dynamic_object::api(client, resource, namespace);
    let custom: Api<CustomObject> = dynamic_object::api(client, resource, namespace);
    let metadata: Api<CustomMetadata> = dynamic_object::api(client, resource, namespace);
    let begin = |config: watcher::Config| match fields {
        Fields::All => {
            let events = watcher(all.clone(), config).default_backoff();
            events.map_ok(into_dynamic).boxed()
        }
        Fields::Unmanaged => {
            let events = watcher(custom.clone(), config).default_backoff();
            events.map_ok(into_dynamic).boxed()
        }
        Fields::Metadata => {
            let events = watcher(metadata.clone(), config).default_backoff();
            events.map_ok(into_dynamic).boxed()
        }
    };
    let streamed = begin(config.clone().streaming_lists());
    let streamed = streamed.take_while(|event| ready(!event.as_ref().is_err_and(is_unknown)));
    let listed = begin(config.clone());
    let (resource, manager) = (resource.clone(), manager.clone());
    streamed
        .chain(listed)
        .modify(move |object| dynamic_object::set_type_meta(object, &resource, &manager))
}

/// Returns true if an API server does not support streaming lists.
fn is_unknown(error: &Error) -> bool {
    match error {
        Error::InitialListFailed(kube::Error::Api(status))
        | Error::WatchStartFailed(kube::Error::Api(status)) => matches!(status.code, 400 | 422),
        _ => false,
    }
}

/// Converts the object of an event.
fn into_dynamic<K: Into<DynamicObject>>(event: Event<K>) -> Event<DynamicObject> {
    match event {
        Event::Apply(object) => Event::Apply(object.into()),
        Event::Delete(object) => Event::Delete(object.into()),
        Event::InitApply(object) => Event::InitApply(object.into()),
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
    }
}

/// Returns the beginning of a reason that names the namespace of a watch, if it is limited to one.
pub(crate) fn within(namespace: Option<&str>) -> String {
    let within = namespace.map(|name| format!("in the namespace `{name}` "));
    within.unwrap_or_default()
}

/// Event of a watch.
pub(crate) enum WatchEvent<'a> {
    /// An object has changed.
    Changed(ObjectChange<'a>),
    /// The initial list is complete.
    Initialized,
    /// The watch failed or could not start, and is started again.
    Failed(&'a Error),
}

/// Change of an object, and whether it is new: an object of the initial list is not.
pub(crate) struct ObjectChange<'a> {
    pub(crate) change: UpdateEvent<'a, DynamicObject>,
    /// Stored state after the change.
    pub(crate) stored: Option<&'a Arc<CompressedObject>>,
    pub(crate) is_new: bool,
}

impl<'a> ObjectChange<'a> {
    pub(crate) fn of(
        before: Option<&'a Arc<DynamicObject>>,
        after: Option<&'a Arc<DynamicObject>>,
        compressed: Option<&'a Arc<CompressedObject>>,
        is_new: bool,
    ) -> Self {
        Self {
            change: UpdateEvent { before, after },
            stored: compressed,
            is_new,
        }
    }
}
