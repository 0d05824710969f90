//! Configuration → what the owned objects are made of.

use std::collections::{BTreeMap, BTreeSet};

use lockstep_controller::ReconcileError;
use lockstep_vector_api::WorkloadRole;
use lockstep_vector_assembly::{Assembly, DataMoves, TooLarge};

use crate::owned::{MovedData, PreviousPublication, Publication};
use crate::run::assemble::config_files::files;
use crate::run::migrate::{self, PublishedNames};

/// Sources that read the Kubernetes API.
const READ_THE_API: [&str; 1] = ["kubernetes_logs"];

/// Returns what is published. `secrets` are the values of the Secrets that the configuration refers to; `adopted_hash`,
/// see [`Publication::adopted_hash`]; `image` is that of the init container that moves data.
///
/// # Errors
///
/// The configuration does not fit into Secrets.
pub(crate) fn publication(
    secrets_of_files: SecretsOfFiles<'_>,
    assembly: &Assembly,
    secrets: BTreeMap<String, Vec<u8>>,
    adopted_hash: Option<String>,
    names: PublishedNames,
    image: Option<&str>,
) -> Result<Publication, TooLarge> {
    let files = |assembly, suffix| secrets_of_files.files(assembly, suffix);
    let sources = assembly.config["sources"].as_object().into_iter().flatten();
    let mut types = sources.filter_map(|(_, source)| source["type"].as_str());
    let (mut previous, mut moved_data) = (None, None);
    if let Some((migration, old, moves)) = &names.running {
        previous = Some(PreviousPublication {
            secret_suffix: migration.old_suffix().map(str::to_owned),
            files: files(old, migration.old_suffix())?,
            annotation: migration.to_annotation(),
        });
        moved_data = moves
            .as_ref()
            .zip(image)
            .map(|(moves, image)| moved(image, moves));
    }
    Ok(Publication {
        files: files(assembly, names.suffix.as_deref())?,
        load_lines: BTreeMap::new(),
        secret_suffix: names.suffix,
        data_layout: Some(names.layout.to_string()),
        previous,
        moved_data,
        secrets,
        roll_hash: assembly.global_hash(),
        adopted_hash,
        services: assembly.services.clone(),
        reads_kubernetes_api: types.any(|type_| READ_THE_API.contains(&type_)),
        data_directory: None,
        checks: Vec::new(),
        validator: None,
    })
}

/// Secrets in which the files of a configuration are.
#[derive(Clone, Copy)]
pub(crate) struct SecretsOfFiles<'a> {
    pub(crate) kind: WorkloadRole,
    pub(crate) is_compressed: bool,
    /// Names of those that the Pods mount now.
    pub(crate) mounted: &'a BTreeSet<String>,
    /// Name of most owned objects, which is the beginning of these names.
    pub(crate) object_name: &'a str,
}

impl SecretsOfFiles<'_> {
    /// Returns the files of a configuration. `suffix` is the end of the names for its layout.
    fn files(
        self,
        assembly: &Assembly,
        suffix: Option<&str>,
    ) -> Result<BTreeMap<String, Vec<u8>>, TooLarge> {
        files(
            self.kind,
            assembly,
            self.is_compressed,
            &self.present(suffix),
        )
    }

    /// Returns the numbers of the files in the Secrets that the Pods mount.
    fn present(self, suffix: Option<&str>) -> BTreeSet<usize> {
        let first = match suffix {
            Some(suffix) => format!("{}-{suffix}", self.object_name),
            None => self.object_name.to_owned(),
        };
        let numbers = self.mounted.iter().filter_map(|name| {
            let end = name.strip_prefix(&first)?;
            match end.strip_prefix('-') {
                Some(number) => number.parse().ok(),
                None => end.is_empty().then_some(0),
            }
        });
        numbers.collect()
    }
}

/// Returns the error of a configuration that does not fit into Secrets.
#[expect(clippy::needless_pass_by_value, reason = "it is used with `map_err`")]
pub(crate) fn too_large(error: TooLarge) -> ReconcileError {
    ReconcileError::Permanent {
        reason: "ConfigurationTooLarge",
        message: error.to_string(),
    }
}

/// Returns the data that an init container with this image moves.
pub(crate) fn moved(image: &str, moves: &DataMoves) -> MovedData {
    MovedData {
        image: image.to_owned(),
        moves: migrate::compressed(moves),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_that_pods_read_are_those_of_their_layout() {
        let mounted = [
            "a-agent",
            "a-agent-1",
            "a-agent-underscores",
            "a-agent-underscores-3",
            "b",
        ];
        let mounted = mounted.map(str::to_owned).into();
        let secrets = SecretsOfFiles {
            kind: WorkloadRole::Agent,
            is_compressed: false,
            mounted: &mounted,
            object_name: "a-agent",
        };
        assert_eq!(secrets.present(None), BTreeSet::from([0, 1]));
        let underscores = secrets.present(Some("underscores"));
        assert_eq!(underscores, BTreeSet::from([0, 3]));
        assert_eq!(secrets.present(Some("dashes")), BTreeSet::new());
    }
}
