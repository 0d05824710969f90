//! Contents that a user can read: rights on the resources of a cluster, and the content of a namespace.

use std::collections::BTreeSet;

use futures::StreamExt;
use futures::stream;
use k8s_openapi::ByteString;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, PostParams};
use kube::discovery::{Discovery, Scope, verbs};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use crate::env::TestEnv;

/// Number of requests at the same time.
const CONCURRENCY: usize = 16;

/// User or service account.
pub struct Subject {
    pub user: String,
    pub groups: Vec<String>,
}

/// Rights to read that subjects are asked for.
pub struct Access {
    client: Client,
    questions: Vec<Question>,
}

#[derive(Clone)]
struct Question {
    verb: &'static str,
    resource: ApiResource,
    /// Namespace; empty for cluster-scoped resources.
    namespace: String,
}

impl Access {
    /// Returns the rights to read each resource in a namespace, and each cluster-scoped one.
    pub async fn discover(client: &Client, namespace: &str) -> Self {
        let mut questions = Vec::new();
        for (resource, scope) in resources(client).await {
            let namespace = if scope == Scope::Namespaced {
                namespace
            } else {
                ""
            };
            for verb in ["get", "list", "watch"] {
                questions.push(Question {
                    verb,
                    resource: resource.clone(),
                    namespace: namespace.to_owned(),
                });
            }
        }
        Self {
            client: client.clone(),
            questions,
        }
    }

    /// Returns the rights that a subject has.
    pub async fn of_subject(&self, subject: &Subject) -> BTreeSet<String> {
        let answers = stream::iter(self.questions.clone()).map(async |question| {
            let is_allowed = self.is_allowed(subject, &question).await;
            is_allowed.then(|| {
                let Question {
                    verb,
                    resource,
                    namespace,
                } = question;
                format!(
                    "{} may {verb} {} in '{namespace}'",
                    subject.user, resource.plural
                )
            })
        });
        let answers = answers.buffer_unordered(CONCURRENCY);
        answers.filter_map(async |right| right).collect().await
    }

    async fn is_allowed(&self, subject: &Subject, question: &Question) -> bool {
        let Question {
            verb,
            resource,
            namespace,
        } = question;
        let review = json!({"metadata": {}, "spec": {
            "user": subject.user,
            "groups": subject.groups,
            "resourceAttributes": {
                "verb": verb, "group": resource.group, "resource": resource.plural, "namespace": namespace,
            },
        }});
        let review = serde_json::from_value(review).expect("a review");
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let reviewed = reviews.create(&PostParams::default(), &review).await;
        reviewed
            .expect("an answer")
            .status
            .is_some_and(|status| status.allowed)
    }
}

/// Returns all resources that can be listed.
async fn resources(client: &Client) -> Vec<(ApiResource, Scope)> {
    let discovery = Discovery::new(client.clone()).run().await;
    let discovery = discovery.expect("the API server lists its resources");
    let groups = discovery.groups();
    let all = groups.flat_map(kube::discovery::ApiGroup::recommended_resources);
    all.filter(|(_, capabilities)| capabilities.supports_operation(verbs::LIST))
        .map(|(resource, capabilities)| (resource, capabilities.scope))
        .collect()
}

/// Objects of a namespace: a user with all rights in it can read them.
pub struct Readable(Vec<DynamicObject>);

/// Returns all objects of a namespace.
pub async fn everything_in(env: &TestEnv, namespace: &str) -> Readable {
    let client = env.cluster.client();
    let resources = resources(&client).await;
    let namespaced = resources
        .into_iter()
        .filter(|(_, scope)| *scope == Scope::Namespaced);
    let listed = stream::iter(namespaced).map(async |(resource, _)| {
        let objects: Api<DynamicObject> =
            Api::namespaced_with(client.clone(), namespace, &resource);
        // Metrics of Pods, for example, have no server here.
        let listed = objects.list(&ListParams::default()).await;
        listed.map_or_else(|_| Vec::new(), |list| list.items)
    });
    let listed: Vec<_> = listed.buffer_unordered(CONCURRENCY).collect().await;
    Readable(listed.concat())
}

impl Readable {
    /// Returns the names of the objects that contain a text, also as a value of a Secret.
    pub fn containing(&self, text: &str) -> Vec<String> {
        let found = self.0.iter().filter(|object| {
            let plain = object.data.to_string();
            let metadata = json!(object.metadata).to_string();
            [plain, metadata, values_of_secret(&object.data)]
                .iter()
                .any(|part| part.contains(text))
        });
        found
            .map(|object| {
                let kind = object.types.as_ref().map_or("object", |types| &types.kind);
                let namespace = object.namespace().unwrap_or_default();
                format!("{kind} {namespace}/{}", object.name_any())
            })
            .collect()
    }
}

fn values_of_secret(object: &Value) -> String {
    let values = object["data"].as_object().into_iter().flatten();
    let values = values.filter_map(|(_, value)| {
        let value: ByteString = serde_json::from_value(value.clone()).ok()?;
        Some(String::from_utf8_lossy(&value.0).into_owned())
    });
    values.collect()
}
