//! Options of an installation.

use std::num::NonZeroU32;

use lockstep_shared_validation::ValidatorRegistry;
use serde_json::{Value, json};

use crate::names::Names;

/// Directory from which both containers read the policy.
pub(crate) const POLICY_FOLDER: &str = "/etc/lockstep/policy";

/// Options of an installation.
#[derive(Clone)]
pub struct InstallOptions<'a> {
    /// Names of the objects.
    pub names: Names,
    /// Container image of the program.
    pub image: String,
    /// Kinds to install.
    pub validators: &'a ValidatorRegistry,
    /// Kinds among them whose objects tenants may create. The others are for administrators.
    pub tenant_validators: &'a ValidatorRegistry,
    /// RBAC rules that the operators need besides those for their own kinds, as `PolicyRule`s.
    pub rbac_rules: Vec<Value>,
    /// Rules among the `rbac_rules` that the kinds for tenants need.
    pub tenant_rbac_rules: Vec<Value>,
    /// RBAC rules that the operators need in the namespace of the installation.
    pub own_namespace_rules: Vec<Value>,
    /// RBAC rules that the admission checks need in an installation of the webhook without controllers. The `rbac_rules` contain
    /// them otherwise.
    pub admission_check_rules: Vec<Value>,
    /// Additional arguments of the controller.
    pub controller_args: Vec<String>,
    /// Names of arguments of both containers whose value is the folder of the policy. The `ConfigMap` of the policy can have
    /// more files than the policy.
    pub policy_folder_args: Vec<&'static str>,
    /// Names of optional `ConfigMap`s that both containers mount, each with the name of the argument that gets the folder.
    pub config_map_args: Vec<(&'static str, &'static str)>,
    /// Names of optional `ConfigMap`s whose data the controller gets as environment variables.
    pub environment_config_maps: Vec<&'static str>,
    /// If true, the webhook asks the controller in its Pod for checks that need the cluster.
    pub has_admission_checks: bool,
    /// Namespaces that the installation is limited to. It runs in the first one. If empty, it covers the whole
    /// cluster.
    pub namespaces: Vec<String>,
    /// If true, only the webhook is installed. Another installation owns the CRDs, the objects and their statuses,
    /// and this one does not modify them.
    pub webhook_only: bool,
    /// If true, only the controller is installed.
    pub no_webhook: bool,
    /// Number of shards of the objects; without it, the leader reconciles all of them.
    pub shards: Option<NonZeroU32>,
}

impl InstallOptions<'_> {
    /// Returns the arguments of both containers.
    pub(crate) fn common_args(&self) -> Vec<String> {
        let folder = |name| format!("{name}={POLICY_FOLDER}");
        let of_policy = self.policy_folder_args.iter().map(folder);
        let of_config_maps = self.config_map_args.iter();
        let of_config_maps = of_config_maps
            .map(|(config_map, name)| format!("{name}={}", self.folder_of(config_map)));
        of_policy.chain(of_config_maps).collect()
    }

    /// Returns the volumes of the optional `ConfigMap`s.
    pub(crate) fn config_map_volumes(&self) -> impl Iterator<Item = Value> {
        self.config_map_args.iter().map(|(config_map, _)| {
            let source = json!({"name": config_map, "optional": true});
            json!({"name": self.volume_name(config_map), "configMap": source})
        })
    }

    /// Returns the mounts of the optional `ConfigMap`s.
    pub(crate) fn config_map_mounts(&self) -> impl Iterator<Item = Value> {
        self.config_map_args.iter().map(|(config_map, _)| {
            let (name, folder) = (self.volume_name(config_map), self.folder_of(config_map));
            json!({"name": name, "mountPath": folder, "readOnly": true})
        })
    }

    /// Returns true if the webhook changes objects: it sets defaults and converts between versions.
    pub(crate) fn webhook_changes_objects(&self) -> bool {
        !self.webhook_only && !self.no_webhook && self.namespaces.is_empty()
    }

    /// Returns the folder where a `ConfigMap` is mounted.
    fn folder_of(&self, config_map: &str) -> String {
        format!("/etc/lockstep/{}", self.volume_name(config_map))
    }

    /// Returns the name of a `ConfigMap` without that of the program.
    fn volume_name<'a>(&self, config_map: &'a str) -> &'a str {
        let suffix = config_map.strip_prefix(&self.names.program);
        let suffix = suffix.and_then(|suffix| suffix.strip_prefix('-'));
        suffix.unwrap_or(config_map)
    }
}
