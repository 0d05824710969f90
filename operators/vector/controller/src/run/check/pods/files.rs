//! Files of a configuration that is checked, with values in place of the references to Secrets.

use std::collections::{BTreeMap, BTreeSet};

use lockstep_vector_api::WorkloadRole;
use lockstep_vector_assembly::{Assembly, secrets};

use crate::owned;
use crate::run::assemble::config_files;

/// Returns the files. `vector validate` reads no secrets: it would take a reference for the value. The configuration is
/// divided after the values are inserted, because a value can be much longer than the references to it.
///
/// # Errors
///
/// The files do not fit into Secrets. This concerns only the check: the configuration that is published has references.
pub(crate) fn files(
    kind: WorkloadRole,
    assembly: &Assembly,
    values: &BTreeMap<String, Vec<u8>>,
    is_compressed: bool,
) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let text = secrets::resolve(&assembly.config.to_string(), values);
    let config = serde_json::from_str(&text);
    let config =
        config.map_err(|_| "its configuration with the values of Secrets is no JSON".to_owned())?;
    let resolved = Assembly {
        config,
        ..assembly.clone()
    };
    let too_large =
        |why: String| format!("with the values of Secrets in place of the references, {why}");
    let files = config_files::files(kind, &resolved, is_compressed, &BTreeSet::new());
    let files = files.map_err(|error| too_large(error.to_string()))?;
    if is_compressed && owned::compressed_bytes(&files) > owned::MAX_SECRET_BYTES {
        let max = owned::MAX_SECRET_BYTES;
        return Err(too_large(format!(
            "the compressed configuration has more than {max} bytes"
        )));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use lockstep_vector_assembly::{AssemblyOptions, RunnablePipeline, assemble, fingerprint};
    use serde_json::json;

    use super::*;

    /// Returns pipelines that refer to one value this many times each.
    fn assembly(pipelines: usize, references: usize) -> Assembly {
        let pipelines = (0..pipelines).map(|number| {
            let spec = json!({
                "secret": {"s": {"type": "kubernetes_secret", "name": "s"}},
                "sources": {"in": {"type": "kubernetes_logs"}},
                "sinks": {"out": {
                    "type": "blackhole", "inputs": ["in"],
                    "values": vec!["SECRET[s.k]"; references],
                }},
            });
            RunnablePipeline {
                namespace: Some("n".to_owned()),
                name: format!("p{number}"),
                spec,
                ..RunnablePipeline::default()
            }
        });
        let options = AssemblyOptions::new(WorkloadRole::Agent);
        assemble(&options, &pipelines.collect::<Vec<_>>())
    }

    fn checked(assembly: &Assembly, value: &str, is_compressed: bool) -> Result<usize, String> {
        let values = assembly.secrets.iter();
        let values = values.map(|it| (it.file_name.clone(), value.as_bytes().to_vec()));
        let files = files(
            WorkloadRole::Agent,
            assembly,
            &values.collect(),
            is_compressed,
        )?;
        for content in files.values() {
            let text = String::from_utf8_lossy(content);
            assert!(is_compressed || content.len() <= owned::MAX_SECRET_BYTES);
            assert!(!text.contains("SECRET["));
        }
        Ok(files.len())
    }

    #[test]
    fn a_configuration_is_divided_by_its_size_with_values() {
        let value = "v".repeat(owned::MAX_SECRET_BYTES / 4);
        assert_eq!(checked(&assembly(1, 1), &value, false), Ok(1));
        let divided = checked(&assembly(6, 1), &value, false).expect("files");
        assert!(divided > 1, "{divided}");
        let error = checked(&assembly(1, 5), &value, false).expect_err("it is too large");
        assert!(error.starts_with("with the values of Secrets"), "{error}");
    }

    #[test]
    fn a_compressed_configuration_must_fit_into_one_secret() {
        let value = "v".repeat(owned::MAX_SECRET_BYTES / 4);
        assert_eq!(checked(&assembly(1, 5), &value, true), Ok(1));
        let hashes = (0..owned::MAX_SECRET_BYTES / 4 / 64).map(|it| fingerprint(&json!(it)));
        let value: String = hashes.collect();
        let error = checked(&assembly(1, 9), &value, true).expect_err("it is too large");
        assert!(error.contains("compressed"), "{error}");
    }
}
