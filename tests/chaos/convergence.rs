//! Comparison of cluster and AWS with the desired state.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Secret, Service};
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, ListParams};
use lockstep_envtest::{eventually_within, stays};
use rds_simulator::Simulator;
use serde_json::{Value, json};

use crate::database_origins::{existed_before, instance_id};
use crate::env::{NAMESPACE, TestEnv, condition};
use crate::refusals::{self, Reported};
use crate::vector_state::{NOT_OWNED, VectorState, status_difference};
use crate::workload::{Author, DesiredState};

/// Time limit. After a series of failures, the back-off of an object can be minutes.
const DEADLINE: Duration = Duration::from_mins(5);

/// Service that exists in every cluster.
const THE_CLUSTERS_OWN: &str = "kubernetes";

/// Waits until everything matches the desired state, but for what RDS refuses, and checks that it stays so. Returns the number
/// of objects of which RDS refuses something.
pub async fn reaches_desired_state(env: &TestEnv, rds: &Simulator, author: &Author) -> usize {
    let mut last = Vec::new();
    let mut refused = 0;
    let mut unknown = 0;
    let converged = eventually_within(
        DEADLINE,
        "the convergence to the desired state",
        async || {
            unknown += refusals::requests_unknown_outcomes(&env.databases()).await?;
            (last, refused) = differences(env, rds, author).await?;
            last.is_empty().then_some(())
        },
    );
    if let Err(error) = converged.await {
        last.truncate(20);
        env.fail(&format!("{error}: {last:#?}"));
    }
    println!("requested {unknown} changes again whose outcome was unknown");
    let check = async || differences(env, rds, author).await;
    stays(Duration::from_secs(2), "the list of differences", check).await;
    refused
}

/// Checks that no call of the controller has made an instance public, or created one without encryption, at any time.
pub fn nothing_was_unsafe(rds: &Simulator) {
    let calls = rds.journal().into_iter();
    let calls = calls.filter(|call| call.access_key == Simulator::ACCESS_KEY);
    let mut creations = 0;
    for call in calls {
        assert_ne!(call.parameters["PubliclyAccessible"], true, "{call:?}");
        if call.operation == "CreateDBInstance" {
            creations += 1;
            assert_eq!(call.parameters["StorageEncrypted"], true, "{call:?}");
            assert_eq!(call.parameters["PubliclyAccessible"], false, "{call:?}");
        }
    }
    assert!(creations > 0, "nothing was created");
}

/// Waits until all objects, instances and children are deleted.
pub async fn all_gone(env: &TestEnv) {
    let mut left = Vec::new();
    let gone = eventually_within(DEADLINE, "the deletion of everything", async || {
        let actual = ActualState::read(env).await?;
        left = actual.objects.into_keys().collect();
        left.extend(actual.instances.into_keys());
        left.extend(actual.deployments.into_keys());
        left.extend(actual.services);
        left.extend(actual.secrets.into_keys());
        left.extend(actual.vector.names());
        left.is_empty().then_some(())
    });
    if let Err(error) = gone.await {
        env.fail(&format!("{error}: {left:?}"));
    }
}

/// Actual state of cluster and AWS.
struct ActualState {
    objects: BTreeMap<String, DynamicObject>,
    /// Instances by the UID in their tag, with the compared fields.
    instances: BTreeMap<String, Vec<Value>>,
    /// Deployments by name, with the UIDs of their owners and the compared fields.
    deployments: BTreeMap<String, Value>,
    services: Vec<String>,
    /// Secrets of databases by name, with their passwords.
    secrets: BTreeMap<String, String>,
    /// Objects that run Vector. They are not among the others.
    vector: VectorState,
}

/// Ends of the names of Secrets that the controller creates for databases.
const SECRETS: [&str; 2] = ["-connection", "-master-user"];

/// Kinds of the objects.
const KINDS: [&str; 5] = [
    "CloudDatabase",
    "Echo",
    "Vector",
    "VectorAggregator",
    "VectorPipeline",
];

impl ActualState {
    /// Reads the state; None if the API server does not respond.
    async fn read(env: &TestEnv) -> Option<Self> {
        let all = ListParams::default();
        let mut objects = BTreeMap::new();
        for like in KINDS.map(|kind| json!({"kind": kind})) {
            let of_kind = env.objects(&like).list(&all).await.ok()?;
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
            let owner = tag.and_then(|tag| tag.value());
            let id = instance.db_instance_identifier().unwrap_or_default();
            if owner.is_none() && existed_before(id) {
                continue;
            }
            let owner = owner.unwrap_or("no owner").to_owned();
            let shown = json!([
                instance.db_instance_class(),
                instance.backup_retention_period(),
                instance.publicly_accessible(),
                instance.storage_encrypted(),
            ]);
            instances.entry(owner).or_default().push(shown);
        }
        let others = all.clone().labels(NOT_OWNED);
        let deployments: Api<Deployment> = Api::namespaced(env.cluster.client(), NAMESPACE);
        let deployments = deployments
            .list(&others)
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
        let services = services.list(&others).await.ok()?.into_iter();
        let secrets: Api<Secret> = Api::namespaced(env.cluster.client(), NAMESPACE);
        let secrets = secrets.list(&all).await.ok()?.into_iter();
        let secrets = secrets.filter_map(|secret| {
            let name = secret.name_any();
            let is_of_database = SECRETS.iter().any(|end| name.ends_with(end));
            let password = secret.data?.remove("password")?;
            let password = String::from_utf8(password.0).ok()?;
            is_of_database.then_some((name, password))
        });
        Some(Self {
            secrets: secrets.collect(),
            objects,
            instances,
            deployments: deployments.collect(),
            services: services
                .map(|service| service.name_any())
                .filter(|name| name != THE_CLUSTERS_OWN)
                .collect(),
            vector: VectorState::read(env).await?,
        })
    }
}

/// Differences from the desired state, as text, and the number of objects of which RDS refuses something.
async fn differences(
    env: &TestEnv,
    rds: &Simulator,
    author: &Author,
) -> Option<(Vec<String>, usize)> {
    let mut actual = ActualState::read(env).await?;
    let reported = Reported::read(env.cluster.client()).await?;
    let mut found = Vec::new();
    let mut refused = 0;
    for (name, desired) in author.desired() {
        let existing = actual.objects.remove(name);
        match (desired, existing) {
            (DesiredState::Deleted { .. }, None) => {}
            (DesiredState::Deleted { .. }, Some(object)) => {
                found.push(format!(
                    "{name} still exists, finalizers: {:?}",
                    object.metadata.finalizers
                ));
            }
            (DesiredState::Exists { .. }, None) => found.push(format!("{name} does not exist")),
            (DesiredState::Exists { object, uid, .. }, Some(existing)) => {
                let is_pipeline = object["kind"] == "VectorPipeline";
                let ready = condition(&existing, if is_pipeline { "Valid" } else { "Ready" });
                let is_ready = ready.as_ref().is_some_and(|ready| {
                    ready.status == "True"
                        && ready.observed_generation == existing.metadata.generation
                });
                if !is_ready {
                    found.push(format!("{name} is not ready: {ready:?}"));
                }
                if object["kind"] == "CloudDatabase" {
                    let synced = condition(&existing, "Synced");
                    if is_refused(rds, object, uid) {
                        refused += 1;
                        found.extend(reported.problem(&existing));
                    } else if synced.as_ref().is_none_or(|it| it.status != "True") {
                        found.push(format!("{name} is not synchronized: {synced:?}"));
                    }
                }
                match object["kind"].as_str() {
                    Some("VectorPipeline") => {
                        found.extend(status_difference(author, name, object, &existing));
                    }
                    Some("Vector" | "VectorAggregator") => {}
                    _ => {
                        found.extend(secret_difference(rds, name, object, uid, &mut actual));
                        found.extend(difference_of(name, object, uid, &mut actual));
                    }
                }
            }
        }
    }
    found.extend(actual.vector.differences(author));
    found.extend(
        actual
            .instances
            .iter()
            .map(|(owner, them)| format!("instances of {owner}: {them:?}")),
    );
    found.extend(
        actual
            .deployments
            .iter()
            .map(|(name, it)| format!("Deployment {name}: {it}")),
    );
    found.extend(actual.services.iter().map(|name| format!("Service {name}")));
    found.extend(actual.secrets.keys().map(|name| format!("Secret {name}")));
    Some((found, refused))
}

/// Returns true if RDS has refused the maintenance window of an object, and keeps another one.
fn is_refused(rds: &Simulator, object: &Value, uid: &str) -> bool {
    let instance = rds.instance(&instance_id(object, uid));
    let window =
        |it: &Value| it["PreferredMaintenanceWindow"] == object["spec"]["maintenanceWindow"];
    instance.is_some_and(|it| !window(&it))
}

/// Compares the passwords in the Secrets of an object with that of its instance, and removes the Secrets from `actual`.
fn secret_difference(
    rds: &Simulator,
    name: &str,
    object: &Value,
    uid: &str,
    actual: &mut ActualState,
) -> Vec<String> {
    let spec = &object["spec"];
    let is_wanted = [
        spec["connectionSecret"].is_object(),
        spec["credentials"]["generate"].is_object(),
    ];
    let id = instance_id(object, uid);
    let password = rds.instance(&id).and_then(|_| rds.password(&id));
    let mut found = Vec::new();
    for (end, is_wanted) in SECRETS.iter().zip(is_wanted) {
        let secret = format!("{name}{end}");
        let stored = actual.secrets.remove(&secret);
        let expected = password.clone().filter(|_| is_wanted);
        if stored != expected {
            found.push(format!(
                "the Secret {secret} has another password than {id}"
            ));
        }
    }
    found
}

/// Compares what exists for one object with what it desires, and removes that from `actual`: what is left over at the
/// end belongs to no object.
fn difference_of(
    name: &str,
    object: &Value,
    uid: &str,
    actual: &mut ActualState,
) -> Option<String> {
    let spec = &object["spec"];
    if object["kind"] == "Echo" {
        let at = actual.services.iter().position(|service| service == name);
        let service = at.map(|at| actual.services.remove(at));
        let deployment = actual.deployments.remove(name);
        let expected = json!([[uid], spec["text"], spec["replicas"]]);
        let is_so = service.is_some() && deployment.as_ref() == Some(&expected);
        return (!is_so)
            .then(|| format!("{name}: {service:?} and {deployment:?} instead of {expected}"));
    }
    let instances = actual.instances.remove(uid).unwrap_or_default();
    let expected = json!([
        spec["instanceClass"],
        spec["backup"]["retentionDays"],
        false,
        true
    ]);
    (instances != [expected.clone()])
        .then(|| format!("{name}: {instances:?} instead of {expected}"))
}
