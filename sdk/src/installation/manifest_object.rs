//! Objects of the manifests, as they exist in the cluster.

use std::path::Path;

use anyhow::Context;
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::discovery::Scope;
use lockstep_controller::LEADER_ELECTION_ID_LABEL;
use lockstep_manifests::{InstallOptions, render_at};
use serde_json::Value;

use crate::installation::Installation;

/// Object that the manifests of an installation contain, or that the controller creates for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ManifestObject {
    api_version: String,
    pub(crate) kind: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

impl ManifestObject {
    fn of(object: &Value, installation: &Installation<'_>) -> Option<Self> {
        let text = |pointer: &str| Some(object.pointer(pointer)?.as_str()?.to_owned());
        // A kustomization has no name.
        let (kind, mut name) = (text("/kind")?, text("/metadata/name")?);
        let at_home = |namespace: String| installation.namespace_of(&namespace);
        name = match kind.as_str() {
            "Namespace" => at_home(name),
            _ => installation.names.of(&name),
        };
        Some(Self {
            api_version: text("/apiVersion")?,
            kind,
            namespace: text("/metadata/namespace").map(at_home),
            name,
        })
    }

    fn named(api_version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
        }
    }
}

/// Manifest object that exists in the cluster.
#[derive(Clone)]
pub(crate) struct ExistingObject {
    pub(crate) manifest: ManifestObject,
    pub(crate) resource: ApiResource,
    pub(crate) api: Api<DynamicObject>,
}

impl ExistingObject {
    /// Returns the object if it exists, together with the client for its type.
    pub(crate) async fn find(
        installation: &Installation<'_>,
        manifest: &ManifestObject,
    ) -> anyhow::Result<Option<Self>> {
        let client = &installation.client;
        let (group, version) = manifest
            .api_version
            .split_once('/')
            .unwrap_or(("", &manifest.api_version));
        let gvk = GroupVersionKind::gvk(group, version, &manifest.kind);
        let found = kube::discovery::pinned_kind(client, &gvk).await;
        let (resource, capabilities) = match found {
            Ok(found) => found,
            // The manifests also contain objects of types that not every cluster has.
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
            Err(kube::Error::Discovery(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let api: Api<DynamicObject> = match (&capabilities.scope, &manifest.namespace) {
            (Scope::Namespaced, Some(namespace)) => {
                Api::namespaced_with(client.clone(), namespace, &resource)
            }
            _ => Api::all_with(client.clone(), &resource),
        };
        let exists = api.get_metadata_opt(&manifest.name).await?.is_some();
        Ok(exists.then(|| Self {
            manifest: manifest.clone(),
            resource,
            api,
        }))
    }
}

/// Returns the Leases of the shards and of the replicas that share them. Their names contain those of Pods.
pub(crate) async fn shard_leases(
    installation: &Installation<'_>,
) -> Result<Vec<ExistingObject>, kube::Error> {
    let home = installation.home.as_str();
    let resource = ApiResource::erase::<Lease>(&());
    let api: Api<DynamicObject> =
        Api::namespaced_with(installation.client.clone(), home, &resource);
    let selector = format!("{LEADER_ELECTION_ID_LABEL}={}", installation.names.lease());
    let params = ListParams::default().labels(&selector);
    let found = match api.list_metadata(&params).await {
        Ok(found) => found,
        // Who may not list Leases may still remove an installation, and most have no shards.
        Err(kube::Error::Api(status)) if status.code == 403 => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let names = found.items.iter().map(ResourceExt::name_any);
    let leases = names.map(|name| ExistingObject {
        manifest: ManifestObject::named(&resource.api_version, &resource.kind, home, &name),
        resource: resource.clone(),
        api: api.clone(),
    });
    Ok(leases.collect())
}

/// Returns the content of the manifests of an installation.
pub(crate) fn documents(installation: &Installation<'_>) -> anyhow::Result<Vec<Value>> {
    let validators = installation.kinds.validators();
    let tenant_validators = installation.kinds.tenant_validators();
    let install = InstallOptions {
        names: installation.names.manifests().clone(),
        image: String::new(),
        environment_config_maps: Vec::new(),
        validators: &validators,
        tenant_validators: &tenant_validators,
        rbac_rules: installation.kinds.rbac_rules(),
        tenant_rbac_rules: installation.kinds.tenant_rbac_rules(),
        own_namespace_rules: installation.kinds.own_namespace_rules(),
        admission_check_rules: installation.kinds.admission_check_rules(),
        controller_args: Vec::new(),
        policy_folder_args: Vec::new(),
        config_map_args: Vec::new(),
        has_admission_checks: false,
        namespaces: installation.namespaces.clone(),
        webhook_only: installation.is_webhook_only,
        no_webhook: !installation.has_webhook && !installation.is_namespaced(),
        shards: None,
    };
    let files = render_at(&install, Some(&installation.home));
    let yaml = files
        .iter()
        .filter(|file| Path::new(&file.name).extension() == Some("yaml".as_ref()));
    let mut documents = Vec::new();
    for file in yaml {
        // The cluster-scoped objects of namespaced installations belong to all of them.
        if installation.is_namespaced() && file.name.starts_with("cluster/") {
            continue;
        }
        let parsed: Vec<Value> = serde_saphyr::from_multiple(&file.content)
            .with_context(|| format!("cannot parse the manifest {}", file.name))?;
        documents.extend(parsed);
    }
    Ok(documents)
}

/// Returns all objects of an installation: those of its manifests, and those that its controllers create.
pub(crate) fn all(installation: &Installation<'_>) -> anyhow::Result<Vec<ManifestObject>> {
    let home = installation.home.as_str();
    let mut objects: Vec<ManifestObject> = Vec::new();
    let documents = documents(installation)?;
    for object in documents
        .iter()
        .filter_map(|one| ManifestObject::of(one, installation))
    {
        if !objects.contains(&object) {
            objects.push(object);
        }
    }
    objects.push(ManifestObject::named(
        "v1",
        "Secret",
        home,
        installation.names.tls_secret(),
    ));
    // The second one is for the tasks that one replica runs for all, if they share the objects by shards.
    let election = installation.names.lease();
    objects.extend(
        [election.to_owned(), format!("{election}-tasks")]
            .map(|name| ManifestObject::named("coordination.k8s.io/v1", "Lease", home, &name)),
    );
    Ok(objects)
}
