//! Rights that an uninstallation needs, checked before anything is changed.

use std::collections::BTreeSet;

use anyhow::Context;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};

use crate::installation::manifest_object::ExistingObject;
use crate::uninstall::cascade::Cascade;
use crate::uninstall::plan::Plan;

/// Maximum number of access reviews that are sent concurrently.
const CONCURRENT: usize = 8;

/// Permission to do something to objects of one type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Permission {
    verb: &'static str,
    group: String,
    resource: String,
    namespace: Option<String>,
    name: Option<String>,
}

/// Returns the rights that the user lacks, as text.
pub(crate) async fn missing(
    client: &Client,
    plan: &Plan,
    cascade: Cascade,
    with_crds: bool,
) -> anyhow::Result<Vec<String>> {
    let rights = stream::iter(rights(plan, cascade, with_crds));
    let missing = rights.map(async |right| {
        let is_allowed = is_allowed(client, &right).await?;
        anyhow::Ok((!is_allowed).then(|| right.to_string()))
    });
    let missing = missing.buffered(CONCURRENT).try_collect::<Vec<_>>().await;
    let missing = missing.context("cannot check your rights")?;
    Ok(missing.into_iter().flatten().collect())
}

fn rights(plan: &Plan, cascade: Cascade, with_crds: bool) -> BTreeSet<Permission> {
    let mut rights = BTreeSet::new();
    for object in &plan.objects {
        let verbs: &[&str] = match cascade {
            Cascade::Background => &["delete"],
            // The finalizers are removed by patches.
            Cascade::Orphan => &["delete", "patch"],
        };
        rights.extend(verbs.iter().map(|verb| Permission {
            verb,
            group: object.stored.resource.group.clone(),
            resource: object.stored.resource.plural.clone(),
            namespace: object.stored.object.namespace(),
            name: None,
        }));
    }
    rights.extend(plan.parts.iter().map(|part| of_part("delete", part)));
    let namespace = plan
        .parts
        .iter()
        .find(|part| part.manifest.kind == "Namespace");
    // A namespace with Pods of others is not deleted.
    rights.extend(namespace.map(|part| Permission {
        verb: "list",
        group: String::new(),
        resource: "pods".to_owned(),
        namespace: Some(part.manifest.name.clone()),
        name: None,
    }));
    if with_crds {
        rights.extend(plan.crds.iter().map(|part| of_part("delete", part)));
        // Each CRD gets an annotation first.
        rights.extend(plan.crds.iter().map(|part| of_part("patch", part)));
    }
    rights
}

fn of_part(verb: &'static str, part: &ExistingObject) -> Permission {
    Permission {
        verb,
        group: part.resource.group.clone(),
        resource: part.resource.plural.clone(),
        namespace: part.manifest.namespace.clone(),
        name: Some(part.manifest.name.clone()),
    }
}

async fn is_allowed(client: &Client, right: &Permission) -> Result<bool, kube::Error> {
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                verb: Some(right.verb.to_owned()),
                group: Some(right.group.clone()),
                resource: Some(right.resource.clone()),
                namespace: right.namespace.clone(),
                name: right.name.clone(),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let review = reviews.create(&PostParams::default(), &review).await?;
    Ok(review.status.is_some_and(|status| status.allowed))
}

impl std::fmt::Display for Permission {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(out, ".{}", self.group)?;
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
