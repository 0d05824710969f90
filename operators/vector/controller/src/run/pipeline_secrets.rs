//! Values of the Secrets that pipelines refer to.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use lockstep_controller::{ReadObject, SecretAccess, SecretRights, path_segment};
use lockstep_vector_assembly::{PipelineKey, PipelinePart, secrets};

/// Values, and the pipelines that wait for one.
#[derive(Debug, Default)]
pub(crate) struct PipelineSecrets {
    /// Values by the name of the file from which Vector reads them.
    pub(crate) values: BTreeMap<String, Vec<u8>>,
    /// Pipelines with a Secret that cannot be used, and why. No value is part of it.
    pub(crate) waiting: BTreeMap<PipelineKey, String>,
    /// All Secrets, as they were read.
    pub(crate) reads: Vec<ReadObject>,
    /// If true, a Secret could not be read for a reason that no watch reports the end of.
    pub(crate) is_incomplete: bool,
}

/// Reads the Secrets of parts, each by its name and once. One that cannot be read concerns only the pipelines that refer to it:
/// they run as they last ran.
pub(crate) async fn read(
    client: &Client,
    access: &SecretAccess,
    parts: &[PipelinePart],
) -> PipelineSecrets {
    let references = parts.iter().flat_map(|part| &part.secrets);
    let names: BTreeSet<_> = references.map(|it| (&it.namespace, &it.name)).collect();
    let mut result = PipelineSecrets::default();
    let mut found = BTreeMap::new();
    for (namespace, name) in names {
        let secrets: Api<Secret> = Api::namespaced(client.clone(), &path_segment(namespace));
        let secret = match secrets.get_opt(&path_segment(name)).await {
            Ok(secret) => secret.ok_or_else(|| "does not exist".to_owned()),
            Err(kube::Error::Api(status)) if status.is_forbidden() => {
                let remedy = access.remedy(SecretRights::View, namespace);
                Err(format!("cannot be read by the controller; {remedy}"))
            }
            Err(error) => {
                result.is_incomplete = true;
                Err(format!("cannot be read: {error}"))
            }
        };
        let read = ReadObject::of(namespace, name, secret.as_ref().ok());
        result.reads.push(read);
        found.insert((namespace, name), secret);
    }
    for part in parts {
        for reference in &part.secrets {
            let secret = &found[&(&reference.namespace, &reference.name)];
            let value = secret.as_ref().map_err(Clone::clone);
            let value = value.and_then(|secret| {
                let values = secret.data.as_ref();
                let value = values.and_then(|values| values.get(&reference.key));
                let value = value.ok_or_else(|| format!("has no key `{}`", reference.key))?;
                secrets::validate_value(&value.0).map_err(|why| {
                    format!("has a value of the key `{}` that {why}", reference.key)
                })?;
                Ok(value.0.clone())
            });
            match value {
                Ok(value) => drop(result.values.insert(reference.file_name.clone(), value)),
                Err(why) => {
                    let why = format!("the Secret `{}` {why}", reference.name);
                    result.waiting.entry(part.pipeline.clone()).or_insert(why);
                }
            }
        }
    }
    result
}
