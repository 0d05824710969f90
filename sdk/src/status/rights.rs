//! Rights of the controller's `ServiceAccount`, compared with those that the manifests grant.

use std::collections::BTreeSet;

use futures::stream::{self, StreamExt, TryStreamExt};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::Value;

use crate::installation::{Installation, manifest_object};
use crate::status::section::Section;
use crate::status::visible::Visible;

/// Number of reviews at a time.
const CONCURRENT: usize = 8;

/// Number of missing rights that a sentence lists.
const SHOWN: usize = 10;

/// Right on a resource; in all namespaces, or in one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Right {
    namespace: Option<String>,
    group: String,
    resource: String,
    subresource: Option<String>,
    verb: String,
    /// Name of the only object that the right is for.
    name: Option<String>,
}

/// Returns the missing rights, as text.
pub(crate) async fn read(
    installation: &Installation<'_>,
    deployments: &[Deployment],
) -> anyhow::Result<Section<Visible<Vec<String>>>> {
    let Some(account) = deployments.iter().find_map(service_account) else {
        return Ok(Section {
            content: Visible::because("no Deployment"),
            problems: Vec::new(),
        });
    };
    let rights = granted(installation)?;
    let missing = missing(&installation.client, &installation.home, account, rights).await;
    let content = Visible::of(missing)?;
    let problem = content.known().filter(|missing| !missing.is_empty());
    let problem = problem.map(|missing| {
        let shown = missing[..missing.len().min(SHOWN)].join(", ");
        let more = match missing.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        format!(
            "the ServiceAccount {}/{account} lacks rights that the manifests grant; apply them again: {shown}{more}",
            installation.home
        )
    });
    Ok(Section {
        problems: problem.into_iter().collect(),
        content,
    })
}

/// Returns the `ServiceAccount` of a Deployment, if its Pods run a controller.
fn service_account(deployment: &Deployment) -> Option<&str> {
    let pod = deployment.spec.as_ref()?.template.spec.as_ref()?;
    let mut containers = pod.containers.iter();
    let runs_controller = containers.any(|container| container.name == "controller");
    let account = pod.service_account_name.as_deref();
    account.filter(|_| runs_controller)
}

async fn missing(
    client: &Client,
    home: &str,
    account: &str,
    rights: BTreeSet<Right>,
) -> Result<Vec<String>, kube::Error> {
    let missing = stream::iter(rights).map(|right| async move {
        let is_allowed = is_allowed(client, home, account, &right).await?;
        Ok::<_, kube::Error>((!is_allowed).then(|| right.to_string()))
    });
    let missing: Vec<_> = missing.buffered(CONCURRENT).try_collect().await?;
    Ok(missing.into_iter().flatten().collect())
}

async fn is_allowed(
    client: &Client,
    home: &str,
    account: &str,
    right: &Right,
) -> Result<bool, kube::Error> {
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(format!("system:serviceaccount:{home}:{account}")),
            groups: Some(vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{home}"),
                "system:authenticated".to_owned(),
            ]),
            resource_attributes: Some(ResourceAttributes {
                namespace: right.namespace.clone(),
                group: Some(right.group.clone()),
                resource: Some(right.resource.clone()),
                subresource: right.subresource.clone(),
                verb: Some(right.verb.clone()),
                name: right.name.clone(),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    let review = reviews.create(&PostParams::default(), &review).await?;
    Ok(review.status.is_some_and(|status| status.allowed))
}

/// Returns the rights that the manifests grant to the controller.
fn granted(installation: &Installation<'_>) -> anyhow::Result<BTreeSet<Right>> {
    let documents = manifest_object::documents(installation)?;
    let bindings = documents.iter().filter(|document| {
        let kind = document["kind"].as_str().unwrap_or_default();
        let mut subjects = document["subjects"].as_array().into_iter().flatten();
        kind.ends_with("RoleBinding") && subjects.any(|it| it["kind"] == "ServiceAccount")
    });
    // Operators name objects of their own, which are no part of the manifests and have the same name in each release.
    let renamed: BTreeSet<_> = documents
        .iter()
        .filter_map(|document| document["metadata"]["name"].as_str())
        .chain([installation.names.manifests().lease.as_str()])
        .chain([installation.names.manifests().tls_secret.as_str()])
        .collect();
    let installed = |name: &str| {
        if renamed.contains(name) {
            installation.names.installed(name)
        } else {
            name.to_owned()
        }
    };
    let mut rights = BTreeSet::new();
    for binding in bindings {
        let reference = &binding["roleRef"];
        let namespace = binding["metadata"]["namespace"].as_str();
        let role = documents.iter().find(|document| {
            document["kind"] == reference["kind"]
                && document["metadata"]["name"] == reference["name"]
                && (document["metadata"]["namespace"].as_str() == namespace
                    || document["kind"] == "ClusterRole")
        });
        let rules = role.and_then(|role| role["rules"].as_array());
        let namespace = namespace.map(|namespace| installation.namespace_of(namespace));
        for rule in rules.into_iter().flatten() {
            rights.extend(expand(rule, namespace.as_deref(), &installed));
        }
    }
    Ok(rights)
}

/// Returns each right of a rule. Of several names, only the first is checked.
fn expand(
    rule: &Value,
    namespace: Option<&str>,
    installed: &impl Fn(&str) -> String,
) -> Vec<Right> {
    let texts = |key: &str| -> Vec<&str> {
        let all = rule[key].as_array().into_iter().flatten();
        all.filter_map(Value::as_str).collect()
    };
    let (groups, resources, verbs) = (texts("apiGroups"), texts("resources"), texts("verbs"));
    let name = texts("resourceNames").first().map(|name| installed(name));
    let mut rights = Vec::new();
    for group in groups {
        for resource in &resources {
            let (resource, subresource) = match resource.split_once('/') {
                Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
                None => (*resource, None),
            };
            rights.extend(verbs.iter().map(|verb| Right {
                namespace: namespace.map(str::to_owned),
                group: group.to_owned(),
                resource: resource.to_owned(),
                subresource: subresource.clone(),
                verb: (*verb).to_owned(),
                name: name.clone(),
            }));
        }
    }
    rights
}

impl std::fmt::Display for Right {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(out, ".{}", self.group)?;
        }
        if let Some(subresource) = &self.subresource {
            write!(out, "/{subresource}")?;
        }
        if let Some(name) = &self.name {
            write!(out, " {name}")?;
        }
        match &self.namespace {
            Some(namespace) => write!(out, " in the namespace {namespace}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::environment::Environment;

    #[tokio::test]
    async fn a_namespaced_controller_has_its_leases_where_it_runs() {
        let environment = Environment::sample();
        for home in ["team-a", "team-b", "operators"] {
            let arguments = [&format!("--namespace={home}")[..]];
            let controller = ["controller", "--watch-namespaces=team-a,team-b"];
            let installation = Installation::sample(&arguments, &controller, &environment);
            let rights = granted(&installation).expect("rights");
            let leases = rights.iter().filter(|right| right.resource == "leases");
            let places: BTreeSet<_> = leases.map(|right| right.namespace.as_deref()).collect();
            assert_eq!(places, [Some(home)].into());
        }
    }

    #[test]
    fn each_right_of_a_rule_is_checked_under_the_installed_name() {
        let rule = json!({
            "apiGroups": ["g"], "resources": ["toys", "toys/status"], "resourceNames": ["a", "b"],
            "verbs": ["get", "patch"],
        });
        let rights = expand(&rule, Some("n"), &|name| format!("release-{name}"));
        let shown: Vec<_> = rights.iter().map(Right::to_string).collect();
        assert_eq!(
            shown,
            [
                "get toys.g release-a in the namespace n",
                "patch toys.g release-a in the namespace n",
                "get toys.g/status release-a in the namespace n",
                "patch toys.g/status release-a in the namespace n",
            ]
        );
        let rule = json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]});
        let rights = expand(&rule, None, &|name| name.to_owned());
        assert_eq!(rights[0].to_string(), "list secrets");
    }
}
