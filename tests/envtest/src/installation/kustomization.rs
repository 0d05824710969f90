//! Folder with a kustomization that only lists files: its objects are applied without kubectl.
//!
//! Each `kubectl apply` asks the API server for the schemas of all its kinds, which it computes again after each change of a
//! CRD. Together that takes more CPU time than the rest of most tests.

use std::fs;
use std::path::Path;

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::error::Error;

/// Field manager of what `kubectl apply --server-side` applies.
const FIELD_MANAGER: &str = "kubectl";

/// Content of a kustomization. Another field is an error, because it would have to be carried out.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Kustomization {
    resources: Vec<String>,
    #[serde(default, rename = "apiVersion")]
    _api_version: IgnoredAny,
    #[serde(default, rename = "kind")]
    _kind: IgnoredAny,
    #[serde(default, rename = "sortOptions")]
    _sort_options: IgnoredAny,
}

/// Applies the objects of a folder in their order, as `kubectl apply --server-side --force-conflicts -k`.
pub(super) async fn apply(client: &Client, folder: &Path) -> Result<(), Error> {
    let file = folder.join("kustomization.yaml");
    let kustomization: Kustomization =
        serde_saphyr::from_str(&read(&file)?).map_err(invalid(&file))?;
    for name in &kustomization.resources {
        let file = folder.join(name);
        let text = read(&file)?;
        let objects: Vec<DynamicObject> =
            serde_saphyr::from_multiple(&text).map_err(invalid(&file))?;
        for object in objects {
            apply_object(client, &object).await?;
        }
    }
    Ok(())
}

async fn apply_object(client: &Client, object: &DynamicObject) -> Result<(), Error> {
    let types = object.types.clone().unwrap_or_default();
    let kind = GroupVersionKind::try_from(&types)
        .map_err(|error| Error::Manifest(format!("{types:?}: {error}")))?;
    let resource = ApiResource::from_gvk(&kind);
    let metadata = &object.metadata;
    let api: Api<DynamicObject> = match &metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let name = metadata.name.as_deref().unwrap_or_default();
    let params = PatchParams::apply(FIELD_MANAGER).force();
    api.patch(name, &params, &Patch::Apply(object)).await?;
    Ok(())
}

fn read(file: &Path) -> Result<String, Error> {
    fs::read_to_string(file).map_err(Error::file(file))
}

fn invalid(file: &Path) -> impl Fn(serde_saphyr::Error) -> Error {
    let file = file.display();
    move |error| Error::Manifest(format!("{file}: {error}"))
}
