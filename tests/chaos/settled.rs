//! How the world stands against what somebody wants.

use std::collections::BTreeMap;
use std::time::Duration;

use control_plane::{eventually_within, stays};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, ListParams};
use serde_json::{Value, json};

use crate::author::{Author, Wish};
use crate::world::{NAMESPACE, World, condition, database};

/// A series of failures may have made an object wait for minutes.
const DEADLINE: Duration = Duration::from_mins(5);

/// The Service that every cluster has.
const THE_CLUSTERS_OWN: &str = "kubernetes";

/// Waits until everything is as it is wished, and sees that it stays so.
pub async fn as_wished(world: &World, author: &Author) {
    let mut last = Vec::new();
    let settled = eventually_within(DEADLINE, "everything being as wished", async || {
        last = differences(world, author).await?;
        last.is_empty().then_some(())
    });
    if let Err(error) = settled.await {
        last.truncate(20);
        world.fail(&format!("{error}: {last:#?}"));
    }
    let look = async || differences(world, author).await;
    stays(Duration::from_secs(2), "how it stands", look).await;
}

/// Waits until nothing is left of anything.
pub async fn all_gone(world: &World) {
    let mut left = Vec::new();
    let gone = eventually_within(DEADLINE, "nothing being left", async || {
        let there = There::look(world).await?;
        left = there.objects.into_keys().collect();
        left.extend(there.instances.into_keys());
        left.extend(there.deployments.into_keys());
        left.extend(there.services);
        left.is_empty().then_some(())
    });
    if let Err(error) = gone.await {
        world.fail(&format!("{error}: {left:?}"));
    }
}

/// What there is.
struct There {
    objects: BTreeMap<String, DynamicObject>,
    /// By the UID in their tag; with what they are.
    instances: BTreeMap<String, Vec<Value>>,
    /// With whose they are, and what they are.
    deployments: BTreeMap<String, Value>,
    services: Vec<String>,
}

impl There {
    /// None where the API server does not answer.
    async fn look(world: &World) -> Option<Self> {
        let all = ListParams::default();
        let echo = json!({"kind": "Echo"});
        let mut objects = BTreeMap::new();
        for like in [&database("any"), &echo] {
            let of_kind = world.objects(like).list(&all).await.ok()?;
            objects.extend(
                of_kind
                    .into_iter()
                    .map(|object| (object.name_any(), object)),
            );
        }
        let mut instances = BTreeMap::<_, Vec<_>>::new();
        for instance in world.instances().await {
            let tags = instance.tag_list();
            let tag = tags
                .iter()
                .find(|tag| tag.key() == Some("database.example.com/uid"));
            let owner = tag
                .and_then(|tag| tag.value())
                .unwrap_or("nobody")
                .to_owned();
            let shown = json!([
                instance.db_instance_class(),
                instance.backup_retention_period()
            ]);
            instances.entry(owner).or_default().push(shown);
        }
        let deployments: Api<Deployment> = Api::namespaced(world.cluster.client(), NAMESPACE);
        let deployments = deployments
            .list(&all)
            .await
            .ok()?
            .into_iter()
            .map(|deployment| {
                let owners: Vec<_> = deployment
                    .owner_references()
                    .iter()
                    .map(|owner| &owner.uid)
                    .collect();
                let spec = deployment.spec.as_ref();
                let pod = spec.and_then(|spec| spec.template.spec.as_ref());
                let text = pod.and_then(|pod| pod.containers[0].args.as_ref()?.last());
                let shown = json!([owners, text, spec.and_then(|spec| spec.replicas)]);
                (deployment.name_any(), shown)
            });
        let services: Api<Service> = Api::namespaced(world.cluster.client(), NAMESPACE);
        let services = services.list(&all).await.ok()?.into_iter();
        Some(Self {
            objects,
            instances,
            deployments: deployments.collect(),
            services: services
                .map(|service| service.name_any())
                .filter(|name| name != THE_CLUSTERS_OWN)
                .collect(),
        })
    }
}

/// What is not as it is wished, in words.
async fn differences(world: &World, author: &Author) -> Option<Vec<String>> {
    let mut there = There::look(world).await?;
    let mut found = Vec::new();
    for (name, wish) in author.wishes() {
        let standing = there.objects.remove(name);
        match (wish, standing) {
            (Wish::Leaves { .. }, None) => {}
            (Wish::Leaves { .. }, Some(object)) => {
                found.push(format!(
                    "{name} is not gone: {:?}",
                    object.metadata.finalizers
                ));
            }
            (Wish::Stands { .. }, None) => found.push(format!("{name} is not there")),
            (Wish::Stands { object, uid }, Some(standing)) => {
                let ready = condition(&standing, "Ready");
                let is_ready = ready.as_ref().is_some_and(|ready| {
                    ready.status == "True"
                        && ready.observed_generation == standing.metadata.generation
                });
                if !is_ready {
                    found.push(format!("{name} is not ready: {ready:?}"));
                }
                found.extend(stands_otherwise(name, object, uid, &mut there));
            }
        }
    }
    found.extend(
        there
            .instances
            .iter()
            .map(|(owner, them)| format!("instances of {owner}: {them:?}")),
    );
    found.extend(
        there
            .deployments
            .iter()
            .map(|(name, it)| format!("Deployment {name}: {it}")),
    );
    found.extend(there.services.iter().map(|name| format!("Service {name}")));
    Some(found)
}

/// Takes from what there is what an object stands for, and tells where that is not as it says.
fn stands_otherwise(name: &str, object: &Value, uid: &str, there: &mut There) -> Option<String> {
    let spec = &object["spec"];
    if object["kind"] == "Echo" {
        let at = there.services.iter().position(|service| service == name);
        let service = at.map(|at| there.services.remove(at));
        let deployment = there.deployments.remove(name);
        let wished = json!([[uid], spec["text"], spec["replicas"]]);
        let is_so = service.is_some() && deployment.as_ref() == Some(&wished);
        return (!is_so).then(|| format!("{name}: {service:?} and {deployment:?}, not {wished}"));
    }
    let instances = there.instances.remove(uid).unwrap_or_default();
    let wished = json!([spec["instanceClass"], spec["backup"]["retentionDays"]]);
    (instances != [wished.clone()]).then(|| format!("{name}: {instances:?}, not {wished}"))
}
