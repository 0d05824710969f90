//! Section `settings.vector` of the policy: a preset, and the restrictions for the pipelines of tenants.

mod preset;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use glob::{MatchOptions, Pattern};
use lockstep_shared_validation::{Settings, did_you_mean};
use lockstep_vector_config::{
    Catalogue, Component, ComponentKind, Interpolation, VectorVersion, confinement,
};
use lockstep_vector_vrl::is_known_function;
use serde::Deserialize;
use serde_json::Value;

use crate::tenancy::policy::preset::Preset;
use crate::tenancy::quota::Quota;

/// Returns the section of the policy file.
#[allow(
    clippy::unnecessary_wraps,
    reason = "the signature is that of `ValidatedResource::settings`"
)]
pub(crate) fn settings() -> Option<Settings> {
    Some(Settings {
        section: "vector",
        validate: check,
        actions: |section| {
            let preset = Section::of(Some(section)).preset;
            preset.map_or_else(Vec::new, Preset::actions)
        },
    })
}

/// Section `settings.vector` of a policy.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Section {
    /// Actions of rules, selected by one name.
    preset: Option<Preset>,
    pub(crate) tenants: TenantPolicy,
    /// Quota of each namespace, unless `namespaces` has another one. It is read alone.
    quota: Quota,
    namespaces: BTreeMap<String, NamespaceSettings>,
    /// Limits of each workload.
    workloads: WorkloadLimits,
    /// Version of Vector that runs pipelines whose workloads are not known. Default: the one of the shipped catalogue.
    pub(crate) version: Option<VectorVersion>,
    /// Source of catalogues of versions that workloads run.
    catalogue: CatalogueMode,
    /// If true, the webhook asks the validators of the workloads that select a pipeline.
    pub(crate) exact: bool,
    /// If true, agents and aggregators replace environment variables in their configuration.
    pub(crate) env_var_interpolation: bool,
    /// If true, another operator runs the pipelines and joins the parts of a name with dashes only.
    pub(crate) forbid_dashes_in_names: bool,
}

impl Section {
    /// Returns the section of an installation, or the defaults.
    pub(crate) fn of(settings: Option<&Value>) -> Self {
        // The section was validated when the policy was read.
        let section = settings.and_then(|settings| Self::deserialize(settings).ok());
        section.unwrap_or_default()
    }

    /// Returns true if the controller learns the catalogue of a version from the image of a workload.
    pub(crate) fn learns_catalogues(&self) -> bool {
        self.catalogue == CatalogueMode::Learn
    }

    pub(crate) fn interpolation(&self) -> Interpolation {
        if self.env_var_interpolation {
            Interpolation::On
        } else {
            Interpolation::Off
        }
    }
}

/// Settings of a namespace.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct NamespaceSettings {
    quota: Quota,
    /// If true, its components may use the identity of the agent at a cloud.
    agent_identity: bool,
}

/// Returns true if the components of a namespace may use the identity of the agent at a cloud.
pub(crate) fn may_use_agent_identity(settings: Option<&Value>, namespace: &str) -> bool {
    of_namespace(settings, namespace).is_some_and(|own| own["agentIdentity"] == true)
}

/// Returns the settings of a namespace.
pub(crate) fn of_namespace<'a>(settings: Option<&'a Value>, namespace: &str) -> Option<&'a Value> {
    settings?.get("namespaces")?.get(namespace)
}

/// Limits of what all pipelines of a workload take together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkloadLimits {
    /// Bytes of disk buffers in each Pod. Vector does not start if its buffers do not fit on their disk.
    pub disk_bytes: u64,
    /// Bytes of the configuration, as JSON.
    pub configuration_bytes: u64,
}

impl Default for WorkloadLimits {
    fn default() -> Self {
        Self {
            disk_bytes: 32 << 30,
            configuration_bytes: 16 << 20,
        }
    }
}

impl WorkloadLimits {
    /// Reads the limits. `settings` is the section of the policy.
    #[must_use]
    pub fn read(settings: Option<&Value>) -> Self {
        Section::of(settings).workloads
    }
}

/// Returns true if the webhook is to ask the validators of the workloads that select a pipeline. `settings` is the section of
/// the policy.
#[must_use]
pub fn is_exact(settings: Option<&Value>) -> bool {
    Section::of(settings).exact
}

/// Returns true if the policy has the preset for the operator of kaasops. `settings` is the section of the policy.
#[must_use]
pub fn is_kaasops(settings: Option<&Value>) -> bool {
    let preset = settings.and_then(|settings| settings.get(preset::KEY));
    let preset = preset.and_then(|preset| Preset::deserialize(preset).ok());
    preset == Some(Preset::Kaasops)
}

impl Quota {
    /// Reads the quota of a namespace. `settings` is the section of the policy. With the preset for kaasops, there are only
    /// those maxima that the policy names: what ran there runs on.
    #[must_use]
    pub fn read(settings: Option<&Value>, namespace: &str) -> Self {
        let default = if is_kaasops(settings) {
            Self::default()
        } else {
            Self::DEFAULT
        };
        Self::named(settings, namespace).or(default)
    }

    /// Reads the quota of a namespace to which each pipeline is compared. The preset makes the rule warn.
    pub(crate) fn for_rule(settings: Option<&Value>, namespace: &str) -> Self {
        Self::named(settings, namespace).or(Self::DEFAULT)
    }

    /// Reads the maxima that the policy names for a namespace. It reads no more of the section: each review needs them.
    fn named(settings: Option<&Value>, namespace: &str) -> Self {
        let read = |section: Option<&Value>| {
            let quota = section.and_then(|section| section.get("quota"));
            let quota = quota.and_then(|quota| Self::deserialize(quota).ok());
            quota.unwrap_or_default()
        };
        read(of_namespace(settings, namespace)).or(read(settings))
    }
}

/// Source of catalogues of versions that workloads run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
enum CatalogueMode {
    /// Only files.
    #[default]
    Files,
    /// The image of a workload, if there is no file.
    Learn,
}

/// Restrictions for VectorPipelines. Each list that is set replaces the default list.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TenantPolicy {
    /// Types of sources that tenants must not use.
    pub(crate) denied_sources: BTreeSet<String>,
    /// Types of transforms that tenants must not use.
    pub(crate) denied_transforms: BTreeSet<String>,
    /// Types of sinks that tenants must not use.
    pub(crate) denied_sinks: BTreeSet<String>,
    /// Options that tenants must not use, in any component and at any depth.
    pub(crate) denied_options: BTreeSet<String>,
    /// VRL functions that programs of tenants must not call.
    pub(crate) denied_functions: BTreeSet<String>,
    /// Glob patterns of the files that options may refer to.
    pub(crate) files: Vec<String>,
    /// Environment variables of the agent that tenants may refer to.
    pub(crate) environment: BTreeSet<String>,
    /// Types of components that may use the identity of the agent at a cloud.
    pub(crate) agent_identity: BTreeSet<String>,
    /// If true, tenants may turn template confinement off in `loki`, for the values of labels.
    pub(crate) unconfined_loki_labels: bool,
}

impl Default for TenantPolicy {
    fn default() -> Self {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self {
            // The internal sources expose data of all pipelines in the same process.
            // `http_client` sends requests to any URL, such as the metadata service that returns the credentials of a
            // machine, and outputs the responses.
            denied_sources: set(&["http_client", "internal_logs", "internal_metrics"]),
            // `lua` programs can read and write files and end the process. `aws_ec2_metadata` exposes data of the node.
            denied_transforms: set(&["aws_ec2_metadata", "lua"]),
            denied_sinks: set(&["file"]),
            // With these options, librdkafka can load libraries, run commands and read files.
            // Without confinement, the author of a log record chooses where the sink sends it, with the credentials of
            // the sink.
            denied_options: set(&[confinement::OPT_OUT, "librdkafka_options"]),
            denied_functions: set(&[
                "aggregate_vector_metrics",
                "dns_lookup",
                "encode_proto",
                "find_vector_metrics",
                "get_env_var",
                "get_vector_metric",
                "http_request",
                "parse_proto",
                "reverse_dns",
                "validate_json_schema",
            ]),
            files: vec!["/etc/ssl/certs/**".to_owned()],
            environment: set(&["VECTOR_SELF_NODE_NAME"]),
            agent_identity: BTreeSet::new(),
            unconfined_loki_labels: false,
        }
    }
}

impl TenantPolicy {
    /// Returns true if tenants may turn template confinement off only in a `loki` sink, and only for the values of labels.
    pub(crate) fn confines_names_of_labels(&self, component: &Component<'_>) -> bool {
        self.unconfined_loki_labels
            && self.denied_options.contains(confinement::OPT_OUT)
            && component.family == ComponentKind::Sink
            && component.kind() == Some("loki")
    }

    pub(crate) fn denied(&self, family: ComponentKind) -> &BTreeSet<String> {
        match family {
            ComponentKind::Source => &self.denied_sources,
            ComponentKind::Transform => &self.denied_transforms,
            ComponentKind::Sink => &self.denied_sinks,
        }
    }

    /// Returns true if an option may refer to this file.
    pub(crate) fn allows_file(&self, name: &str) -> bool {
        let leads_up = name.split('/').any(|part| part == "..");
        let options = MatchOptions {
            require_literal_separator: true,
            ..MatchOptions::default()
        };
        let patterns = self
            .files
            .iter()
            .filter_map(|pattern| Pattern::new(pattern).ok());
        !leads_up
            && patterns
                .into_iter()
                .any(|pattern| pattern.matches_with(name, options))
    }
}

/// Validates a section: it can be deserialized, and the types, functions and patterns in it are valid.
fn check(section: &Value) -> Result<(), String> {
    check_structure(section)?;
    let Section {
        tenants, version, ..
    } = Section::deserialize(section)
        .map_err(|error| format!("the section cannot be read: {error}; correct this value"))?;
    let shipped = Catalogue::shipped();
    // Another version may have other types.
    let is_shipped = version.is_none_or(|version| version == shipped.number());
    for family in ComponentKind::ALL.into_iter().filter(|_| is_shipped) {
        let known = shipped.kinds(family);
        for kind in tenants.denied(family) {
            if !known.contains(&kind.as_str()) {
                let question = did_you_mean(kind, known.iter().copied());
                return Err(format!(
                    "tenants: the {} type `{kind}` is unknown{question}",
                    family.noun()
                ));
            }
        }
    }
    let unknown = tenants
        .denied_functions
        .iter()
        .find(|name| !is_known_function(name));
    if let Some(name) = unknown {
        return Err(format!(
            "tenants.deniedFunctions: the function `{name}` is unknown; name a function of VRL"
        ));
    }
    for pattern in &tenants.files {
        Pattern::new(pattern)
            .map_err(|error| format!("tenants.files: the pattern `{pattern}` is invalid: {error}; name a path in which `*` matches a part of a name and `**` any number of folders"))?;
    }
    Ok(())
}

/// Key in `tenants` that is no list.
const UNCONFINED_LABELS: &str = "unconfinedLokiLabels";

/// Lists in `tenants`.
const LISTS: [&str; 8] = [
    "agentIdentity",
    "deniedFunctions",
    "deniedOptions",
    "deniedSinks",
    "deniedSources",
    "deniedTransforms",
    "environment",
    "files",
];

/// Checks the keys of a section and the types of its values.
fn check_structure(section: &Value) -> Result<(), String> {
    let Some(section) = section.as_object() else {
        return Err("the section must be a mapping".to_owned());
    };
    for (key, value) in section {
        match key.as_str() {
            preset::KEY => Preset::check(value)?,
            "envVarInterpolation" | "exact" | "forbidDashesInNames" if value.is_boolean() => {}
            "envVarInterpolation" | "exact" | "forbidDashesInNames" => {
                return Err(format!("{key}: the value must be true or false"));
            }
            "catalogue" if CatalogueMode::deserialize(value).is_ok() => {}
            "catalogue" => {
                return Err(format!(
                    "catalogue: {value} is unknown; the values are `Files` and `Learn`"
                ));
            }
            "namespaces" => {
                let namespaces = BTreeMap::<String, NamespaceSettings>::deserialize(value);
                namespaces.map_err(|error| {
                    format!("namespaces: {error}; write names of namespaces, each with `agentIdentity` and `quota`")
                })?;
            }
            "quota" => {
                let names = Quota::NAMES.join("`, `");
                Quota::deserialize(value)
                    .map_err(|error| format!("quota: {error}; the keys are `{names}`"))?;
            }
            "tenants" => check_tenants(value)?,
            "version" => check_version(value)?,
            "workloads" => {
                WorkloadLimits::deserialize(value).map_err(|error| {
                    format!("workloads: {error}; the keys are `configurationBytes` and `diskBytes`")
                })?;
            }
            _ => {
                return Err(format!(
                    "{key}: the key is unknown; the keys are `catalogue`, `envVarInterpolation`, `exact`, `forbidDashesInNames`, `namespaces`, `preset`, `quota`, `tenants`, `version` and `workloads`"
                ));
            }
        }
    }
    Ok(())
}

fn check_version(version: &Value) -> Result<(), String> {
    let is_version = |text: &str| {
        let version = VectorVersion::parse(text);
        version.is_some_and(|version| version.to_string() == text)
    };
    // Without quotes, YAML reads 0.50 as the number 0.5.
    if version.as_str().is_some_and(is_version) {
        Ok(())
    } else {
        Err(format!(
            "version: {version} is no minor version of Vector; write one in quotes, such as `\"0.57\"`"
        ))
    }
}

fn check_tenants(tenants: &Value) -> Result<(), String> {
    let Some(tenants) = tenants.as_object() else {
        return Err("tenants: the value must be a mapping".to_owned());
    };
    for (key, value) in tenants {
        if key == UNCONFINED_LABELS {
            if !value.is_boolean() {
                return Err(format!("tenants.{key}: the value must be true or false"));
            }
            continue;
        }
        if !LISTS.contains(&key.as_str()) {
            let known = LISTS.join("`, `");
            return Err(format!(
                "tenants.{key}: the key is unknown; the keys are `{known}` and `{UNCONFINED_LABELS}`"
            ));
        }
        let items = value.as_array();
        if !items.is_some_and(|items| items.iter().all(Value::is_string)) {
            return Err(format!("tenants.{key}: the value must be a list of texts"));
        }
    }
    Ok(())
}
