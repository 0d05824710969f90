//! Configuration → what the owned objects are made of.

use std::collections::{BTreeMap, BTreeSet};

use lockstep_controller::ReconcileError;
use lockstep_vector_api::RunnerKind;
use lockstep_vector_assembly::{Assembly, DataMoves, PublicationLimits, TooLarge, publish};

use crate::owned::{self, MovedData, PreviousPublication, Publication};
use crate::run::data_migration::{self, PublishedNames};

/// Sources that read the Kubernetes API.
const READ_THE_API: [&str; 1] = ["kubernetes_logs"];

/// Returns the files of a configuration. `present` are the numbers of those that the Pods read now.
///
/// # Errors
///
/// The configuration does not fit into Secrets.
pub(crate) fn files(
    kind: RunnerKind,
    assembly: &Assembly,
    is_compressed: bool,
    present: &BTreeSet<usize>,
) -> Result<BTreeMap<String, Vec<u8>>, TooLarge> {
    let stem = match kind {
        RunnerKind::Agent => "agent",
        RunnerKind::Aggregator => "config",
    };
    let limits = PublicationLimits {
        // Compressed files are in one Secret, so that dividing the configuration gains nothing. Its size is checked later.
        max_file_bytes: if is_compressed {
            usize::MAX
        } else {
            owned::MAX_SECRET_BYTES
        },
        present,
    };
    publish(assembly, stem, limits)
}

/// Returns what is published. `secrets` are the values of the Secrets that the configuration refers to; `adopted_hash`,
/// see [`Publication::adopted_hash`]; `image` is that of the init container that moves data.
///
/// # Errors
///
/// The configuration does not fit into Secrets.
pub(crate) fn of(
    kind: RunnerKind,
    assembly: &Assembly,
    is_compressed: bool,
    secrets: BTreeMap<String, Vec<u8>>,
    adopted_hash: Option<String>,
    names: PublishedNames,
    image: Option<&str>,
    mounted: MountedSecrets<'_>,
) -> Result<Publication, TooLarge> {
    let files = |assembly, suffix: Option<&str>| {
        let present = present_files(mounted, suffix);
        files(kind, assembly, is_compressed, &present)
    };
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
        secret_suffix: names.suffix,
        data_layout: Some(names.layout.to_string()),
        previous,
        moved_data,
        secrets,
        roll_hash: assembly.global_hash(),
        adopted_hash,
        services: assembly.services.clone(),
        reads_kubernetes_api: types.any(|type_| READ_THE_API.contains(&type_)),
        checks: Vec::new(),
        validator: None,
    })
}

/// Secrets with the configuration that the Pods mount.
#[derive(Clone, Copy)]
pub(crate) struct MountedSecrets<'a> {
    pub(crate) names: &'a BTreeSet<String>,
    /// Name of most owned objects, which is the beginning of these names.
    pub(crate) object_name: &'a str,
}

/// Returns the numbers of the files in the Secrets that have the end of a layout.
fn present_files(mounted: MountedSecrets<'_>, suffix: Option<&str>) -> BTreeSet<usize> {
    let MountedSecrets { names, object_name } = mounted;
    let first = match suffix {
        Some(suffix) => format!("{object_name}-{suffix}"),
        None => object_name.to_owned(),
    };
    let numbers = names.iter().filter_map(|name| {
        let end = name.strip_prefix(&first)?;
        match end.strip_prefix('-') {
            Some(number) => number.parse().ok(),
            None => end.is_empty().then_some(0),
        }
    });
    numbers.collect()
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
        moves: data_migration::compressed(moves),
    }
}
