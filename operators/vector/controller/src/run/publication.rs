//! Configuration → what the owned objects are made of.

use std::collections::BTreeMap;

use lockstep_controller::ReconcileError;
use lockstep_vector_api::RunnerKind;
use lockstep_vector_assembly::{Assembly, PublicationLimits, TooLarge, publish};

use crate::owned::{self, PipelinePort, Publication};

/// Sources that read the Kubernetes API.
const READ_THE_API: [&str; 1] = ["kubernetes_logs"];

/// Returns the files of a configuration.
///
/// # Errors
///
/// The configuration does not fit into Secrets.
pub(crate) fn files(
    kind: RunnerKind,
    assembly: &Assembly,
    is_compressed: bool,
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
        compress_above: None,
    };
    let files = publish(assembly, stem, limits)?;
    Ok(files.into_iter().map(|it| (it.name, it.content)).collect())
}

/// Returns what is published. `secrets` are the values of the Secrets that the configuration refers to; `adopted_hash`,
/// see [`Publication::adopted_hash`].
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
) -> Result<Publication, TooLarge> {
    let sources = assembly.config["sources"].as_object().into_iter().flatten();
    let mut types = sources.filter_map(|(_, source)| source["type"].as_str());
    Ok(Publication {
        files: files(kind, assembly, is_compressed)?,
        secrets,
        roll_hash: assembly.global_hash(),
        adopted_hash,
        services: assembly.services.iter().map(service).collect(),
        reads_kubernetes_api: types.any(|type_| READ_THE_API.contains(&type_)),
        checks: Vec::new(),
    })
}

/// Returns the error of a configuration that does not fit into Secrets.
#[expect(clippy::needless_pass_by_value, reason = "it is used with `map_err`")]
pub(crate) fn too_large(error: TooLarge) -> ReconcileError {
    ReconcileError::Permanent {
        reason: "ConfigurationTooLarge",
        message: error.to_string(),
    }
}

fn service(service: &lockstep_vector_assembly::PipelineService) -> owned::PipelineService {
    let ports = service.ports.iter().map(|port| PipelinePort {
        source: port.name.clone(),
        port: port.port,
        protocol: match port.protocol {
            lockstep_vector_assembly::Protocol::Tcp => owned::Protocol::Tcp,
            lockstep_vector_assembly::Protocol::Udp => owned::Protocol::Udp,
        },
        receives_kubernetes_events: port.is_for_events,
    });
    owned::PipelineService {
        namespace: service.pipeline.namespace.clone(),
        pipeline: service.pipeline.name.clone(),
        service_name: service.service_name.clone(),
        ports: ports.collect(),
    }
}
