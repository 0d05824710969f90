//! Publication: the configuration and the ports of a workload, as far as its owned objects depend on them.

use std::collections::BTreeMap;

use lockstep_vector_assembly::PipelineService;

/// Configuration and ports of a workload, as far as its owned objects depend on them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Publication {
    /// Content of Vector's configuration directory by file name, such as `agent.json`. It is not compressed yet.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Line that Vector prints once it runs a file, by the name of the file. Empty: it prints none.
    pub load_lines: BTreeMap<String, String>,
    /// Values of the Secrets that pipelines refer to, by the name of the file from which Vector reads them. Empty if no
    /// pipeline refers to a Secret.
    pub secrets: BTreeMap<String, Vec<u8>>,
    /// Fingerprint of the options that Vector does not reload. The Pods are restarted when it changes.
    pub roll_hash: String,
    /// Fingerprint of these options in Pods whose template contains none: another operator has created it, and an
    /// annotation would restart them. None if there are no such Pods.
    pub adopted_hash: Option<String>,
    /// Ports where pipelines of an aggregator listen.
    pub services: Vec<PipelineService>,
    /// End of the names of the Secrets with the files. None: they are named after the workload. While components get other
    /// names, Pods with the old and with the new ones run side by side, and each needs its own configuration.
    pub secret_suffix: Option<String>,
    /// Layout of the component names in the files.
    pub data_layout: Option<String>,
    /// Configuration of the Pods that are not replaced yet, while components get other names.
    pub previous: Option<PreviousPublication>,
    /// Data that an init container moves to other names.
    pub moved_data: Option<MovedData>,
    /// Directory of the nodes for the data of the Pods, unless the workload names one. None: that of the operator of kaasops.
    pub data_directory: Option<String>,
    /// If true, a component reads the Kubernetes API (`kubernetes_logs`), or a file of the service account. Agents
    /// always have the permissions for it; an aggregator has them only if this is set.
    pub reads_kubernetes_api: bool,
    /// Configurations that Pods check now.
    pub checks: Vec<ConfigurationCheck>,
    /// Pod that keeps running for checks. None if the workload has none.
    pub validator: Option<Validator>,
}

/// Pod that keeps running for checks of configurations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validator {
    /// If true, the workload has it although it does not demand one: its image is asked for its schema.
    pub is_for_schema: bool,
    /// Image with this program.
    pub image: String,
    /// Pods that may connect to it. None if they are not known.
    pub clients: Option<ControllerPods>,
    /// Certificate of the server, as PEM.
    pub certificate: String,
    /// Private key of the certificate, as PEM.
    pub key: String,
    /// Bearer token of the clients.
    pub token: String,
}

/// Pods of the controller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControllerPods {
    /// Namespace.
    pub namespace: String,
    /// Labels that select them.
    pub labels: BTreeMap<String, String>,
}

/// Configuration that a Pod checks before it is published.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigurationCheck {
    /// Name of the Pod and of its Secret.
    pub name: String,
    /// Fingerprint of the configuration and of what else decides the result.
    pub fingerprint: String,
    /// Content of Vector's configuration directory by file name.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Values of the Secrets that the configuration refers to, by the name of the file.
    pub secrets: BTreeMap<String, Vec<u8>>,
    /// Seconds after which the Pod is ended.
    pub timeout_seconds: u64,
}

/// Configuration of the Pods that are not replaced yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreviousPublication {
    /// End of the names of the Secrets with the files.
    pub secret_suffix: Option<String>,
    /// Content of Vector's configuration directory by file name.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Annotation of the workload by which it is recognized until all Pods are replaced.
    pub annotation: String,
}

/// Data that an init container moves to other names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MovedData {
    /// Image with this program.
    pub image: String,
    /// List of the directories, as the program reads it.
    pub moves: Vec<u8>,
}
