//! Requests of an object that its namespace's quota has to be enough for.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_rds::types::DbInstance;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::{Client, ResourceExt};
use lockstep_cloud_database_api::{CloudDatabase, NamespacePolicy, POLICY_SECTION};
use lockstep_controller::{ReconcileError, SyncRequest};

use crate::aws::rds_events::changed_instances::Owner;
use crate::clock;
use crate::instance::instance_reconciler::InstanceReconciler;
use crate::quota::ledger::{Exceeded, Wanted};
use crate::quota::usage::Usage;

/// Maximum age of the list of a namespace's objects, by which a request is decided.
const MAX_AGE: Duration = Duration::from_mins(1);

/// Objects of a page of the list.
const PAGE: u32 = 500;

/// Request that an object is about to make.
#[derive(Clone, Copy)]
pub(crate) enum Part<'a> {
    /// A new instance, which has at least the storage of the source of its data.
    New { source: Usage },
    /// Changes of an instance.
    Change(&'a DbInstance),
}

impl InstanceReconciler {
    /// Returns why an object must not have what its spec demands, besides what its instance has already.
    ///
    /// # Errors
    ///
    /// The objects of the namespace cannot be read.
    pub(crate) async fn exceeded_quota(
        &self,
        request: &SyncRequest<'_, CloudDatabase>,
        part: Part<'_>,
    ) -> Result<Option<String>, ReconcileError> {
        let object = request.raw_parent();
        let demanded = Usage::of_object(object);
        let wanted = match part {
            Part::New { source } => Wanted {
                present: Usage::default(),
                desired: demanded.max(source),
                is_new: true,
            },
            Part::Change(instance) => Wanted {
                present: Usage::of_instance(instance, demanded),
                desired: demanded,
                is_new: false,
            },
        };
        let owner = Owner::from_object(object);
        let namespace = owner.namespace.as_str();
        let settings = request.policy().settings(POLICY_SECTION);
        let quota = NamespacePolicy::read(settings, namespace).quota;
        let ledger = &self.shared.quotas;
        let is_more = !wanted.desired.is_within(wanted.present);
        let is_fresh = ledger.is_listed_within(namespace, MAX_AGE);
        // What is only counted needs no list, and neither does what was granted before.
        if is_more && !is_fresh && !ledger.has_granted(&owner, wanted.desired) {
            let begun = clock::instant();
            let mut objects = usage_of_objects(&self.shared.client, namespace).await?;
            if let Part::New { .. } = part {
                // What it may have is decided here, and not by what its status says.
                objects.remove(&owner.name);
            }
            ledger.set_listed(namespace, begun, &objects);
        }
        match ledger.request(&owner, wanted, quota) {
            Ok(others) => {
                self.shared.enqueue.all(&others);
                Ok(None)
            }
            Err(exceeded) => Ok(Some(described(namespace, &exceeded))),
        }
    }
}

/// Returns the objects of a namespace with the usage of those that have an instance, or may have one, as their status says.
async fn usage_of_objects(
    client: &Client,
    namespace: &str,
) -> Result<BTreeMap<String, Option<Usage>>, ReconcileError> {
    // One that is stored and invalid counts as well.
    let resource = ApiResource::erase::<CloudDatabase>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    let mut found = BTreeMap::new();
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let list = api.list(&page).await.map_err(|error| {
            let message = format!(
                "cannot read the objects of the namespace '{namespace}', whose instances count for its quota: {error}"
            );
            ReconcileError::transient("ObjectsUnreadable", message)
        })?;
        for object in list.items {
            // An instance that the object has not created is none of the namespace until it is managed.
            let spec = &object.data["spec"];
            let is_observed = spec["managementPolicy"] == "Observe" && spec["adopt"].is_object();
            let usage = Usage::of_status(&object.data).filter(|_| !is_observed);
            found.insert(object.name_any(), usage);
        }
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(next) => page = page.continue_token(&next),
            None => return Ok(found),
        }
    }
}

fn described(namespace: &str, exceeded: &Exceeded) -> String {
    let Exceeded {
        key,
        unit,
        limit,
        others,
        desired,
    } = exceeded;
    format!(
        "the quota of the namespace '{namespace}' is {limit} {unit}: the other objects have {others}, and this one demands {desired}. An administrator can set `settings.{POLICY_SECTION}.namespaces.{namespace}.quota.{key}` in the policy"
    )
}
