//! Components of several pipelines that Vector would call alike: whoever comes later is told by the loop.

use control_plane::{Cluster, Moto};
use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::sharing::{becomes, delete, edit, holder, make, object};
use crate::world::{Detours, World, condition};

/// All of these have a component that Vector would call `a-b-c-in`.
fn alike(kind: &str, namespace: Option<&str>, name: &str) -> Value {
    let spec = json!({
        "sources": {"in": {"type": "kubernetes_logs"}},
        "sinks": {"out": {"type": "blackhole", "inputs": ["in"]}},
    });
    object(kind, namespace, name, &spec)
}

fn is_judged(object: &DynamicObject, is_valid: bool) -> bool {
    let status = &object.data["status"];
    let generation = object.metadata.generation;
    let valid = condition(object, "Valid");
    let said = if is_valid { "True" } else { "False" };
    status["configCheckResult"] == is_valid
        && valid
            .is_some_and(|valid| valid.status == said && valid.observed_generation == generation)
}

async fn is_valid(world: &World, pipeline: &Value) {
    becomes(world, pipeline, "valid", |object| is_judged(object, true)).await;
}

/// Waits until it is told, in its status, of whose components have its names.
async fn is_told(world: &World, pipeline: &Value, of: &str) {
    let told = ["in", "out"].map(|id| {
        format!("would be called `a-b-c-{id}` in Vector, as a component of {of} is; rename this component, or its pipeline [names-apart]")
    });
    becomes(world, pipeline, &format!("told of {of}"), |object| {
        let reason = object.data["status"]["reason"].as_str().unwrap_or_default();
        is_judged(object, false) && told.iter().all(|told| reason.contains(told))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_two_pipelines_have_components_of_one_name() {
    let cluster = Cluster::start().await.expect("a cluster");
    let moto = Moto::start(&cluster.logs()).await.expect("moto");
    // It does not matter who runs them.
    let detours = Detours {
        kinds: Some("VectorPipeline,ClusterVectorPipeline"),
        ..Detours::default()
    };
    let world = World::install(cluster, moto, detours).await;
    for namespace in ["a", "a-b"] {
        let made = world.kubectl(&["create", "namespace", namespace]);
        made.expect("a namespace");
    }
    let first = alike("VectorPipeline", Some("a-b"), "c");
    make(&world, first.clone()).await;
    is_valid(&world, &first).await;
    // A tenant is not told whose they are, an administrator is.
    let tenants = alike("VectorPipeline", Some("a"), "b-c");
    let administrators = alike("ClusterVectorPipeline", None, "a-b-c");
    for pipeline in [&tenants, &administrators] {
        make(&world, pipeline.clone()).await;
    }
    is_told(&world, &tenants, "a pipeline that is not of this namespace").await;
    is_told(&world, &administrators, "VectorPipeline a-b/c").await;
    // Whoever has a name keeps it through a change of what has it.
    let other_options = json!({"spec": {"sources": {"in": {"max_line_bytes": 1024}}}});
    edit(&world, &first, &other_options).await;
    is_valid(&world, &first).await;
    edit(&world, &tenants, &other_options).await;
    is_told(&world, &tenants, "a pipeline that is not of this namespace").await;

    delete(&world, &first).await;
    let (_, waits) = holder(&world, &tenants, &administrators).await;
    let of = if waits == &administrators {
        "VectorPipeline a/b-c"
    } else {
        "a pipeline that is not of this namespace"
    };
    is_told(&world, waits, of).await;
    let renamed = json!({"spec": {
        "sources": {"in": null, "read": {"type": "kubernetes_logs"}},
        "sinks": {"out": null, "written": {"type": "blackhole", "inputs": ["read"]}},
    }});
    edit(&world, waits, &renamed).await;
    for pipeline in [&tenants, &administrators] {
        is_valid(&world, pipeline).await;
    }
}
