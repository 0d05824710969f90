//! Comparison of cluster and AWS with the desired state.

use std::collections::BTreeMap;
use std::time::Duration;

use control_plane::{eventually_within, stays};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, ListParams};
use serde_json::{Value, json};

use crate::env::{NAMESPACE, TestEnv, condition, database};
use crate::workload::{Author, DesiredState};

/// Time limit. After a series of failures, the back-off of an object can be minutes.
const DEADLINE: Duration = Duration::from_mins(5);

/// Service that exists in every cluster.
const THE_CLUSTERS_OWN: &str = "kubernetes";

/// Waits until everything matches the desired state, and checks that it stays so.
pub async fn as_wished(env: &TestEnv, author: &Author) {
    let mut last = Vec::new();
    let settled = eventually_within(
        DEADLINE,
        "the convergence to the desired state",
        async || {
            last = differences(env, author).await?;
            last.is_empty().then_some(())
        },
    );
    if let Err(error) = settled.await {
        last.truncate(20);
        env.fail(&format!("{error}: {last:#?}"));
    }
    let look = async || differences(env, author).await;
    stays(Duration::from_secs(2), "the list of differences", look).await;
}

/// Waits until all objects, instances and children are deleted.
pub async fn all_gone(env: &TestEnv) {
    let mut left = Vec::new();
    let gone = eventually_within(DEADLINE, "the deletion of everything", async || {
        let there = There::look(env).await?;
        left = there.objects.into_keys().collect();
        left.extend(there.instances.into_keys());
        left.extend(there.deployments.into_keys());
        left.extend(there.services);
        left.is_empty().then_some(())
    });
    if let Err(error) = gone.await {
        env.fail(&format!("{error}: {left:?}"));
    }
}

/// Actual state of cluster and AWS.
struct There {
    objects: BTreeMap<String, DynamicObject>,
    /// Instances by the UID in their tag, with the compared fields.
    instances: BTreeMap<String, Vec<Value>>,
    /// Deployments by name, with the UIDs of their owners and the compared fields.
    deployments: BTreeMap<String, Value>,
    services: Vec<String>,
}

impl There {
    /// Reads the state; None if the API server does not respond.
    async fn look(env: &TestEnv) -> Option<Self> {
        let all = ListParams::default();
        let echo = json!({"kind": "Echo"});
        let mut objects = BTreeMap::new();
        for like in [&database("any"), &echo] {
            let of_kind = env.objects(like).list(&all).await.ok()?;
            objects.extend(
                of_kind
                    .into_iter()
                    .map(|object| (object.name_any(), object)),
            );
        }
        let mut instances = BTreeMap::<_, Vec<_>>::new();
        for instance in env.instances().await {
            let tags = instance.tag_list();
            let tag = tags
                .iter()
                .find(|tag| tag.key() == Some("database.example.com/uid"));
            let owner = tag
                .and_then(|tag| tag.value())
                .unwrap_or("no owner")
                .to_owned();
            let shown = json!([
                instance.db_instance_class(),
                instance.backup_retention_period()
            ]);
            instances.entry(owner).or_default().push(shown);
        }
        let deployments: Api<Deployment> = Api::namespaced(env.cluster.client(), NAMESPACE);
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
        let services: Api<Service> = Api::namespaced(env.cluster.client(), NAMESPACE);
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

/// Differences from the desired state, as text.
async fn differences(env: &TestEnv, author: &Author) -> Option<Vec<String>> {
    let mut there = There::look(env).await?;
    let mut found = Vec::new();
    for (name, wish) in author.wishes() {
        let standing = there.objects.remove(name);
        match (wish, standing) {
            (DesiredState::Leaves { .. }, None) => {}
            (DesiredState::Leaves { .. }, Some(object)) => {
                found.push(format!(
                    "{name} still exists, finalizers: {:?}",
                    object.metadata.finalizers
                ));
            }
            (DesiredState::Stands { .. }, None) => found.push(format!("{name} does not exist")),
            (DesiredState::Stands { object, uid }, Some(standing)) => {
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

/// Waits until a replica with this name prefix leads.
fn stands_otherwise(name: &str, object: &Value, uid: &str, there: &mut There) -> Option<String> {
    let spec = &object["spec"];
    if object["kind"] == "Echo" {
        let at = there.services.iter().position(|service| service == name);
        let service = at.map(|at| there.services.remove(at));
        let deployment = there.deployments.remove(name);
        let wished = json!([[uid], spec["text"], spec["replicas"]]);
        let is_so = service.is_some() && deployment.as_ref() == Some(&wished);
        return (!is_so)
            .then(|| format!("{name}: {service:?} and {deployment:?} instead of {wished}"));
    }
    let instances = there.instances.remove(uid).unwrap_or_default();
    let wished = json!([spec["instanceClass"], spec["backup"]["retentionDays"]]);
    (instances != [wished.clone()]).then(|| format!("{name}: {instances:?} instead of {wished}"))
}
