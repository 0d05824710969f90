//! Rules on parameter groups and option groups, which belong to a major version of an engine.

use lockstep_shared_validation::{Diagnostics, Rule, RuleContext, Severity};

use crate::references::CREATE;
use crate::spec::CloudDatabase;

const UPGRADES: &str = "https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_UpgradeDBInstance.Upgrading.html#USER_UpgradeDBInstance.Upgrading.Overview";

pub(super) fn rules() -> Vec<Rule<CloudDatabase>> {
    vec![
        Rule {
            id: "default-parameter-group-family",
            description: "A default parameter group must be that of the engine and its major version.",
            severity: Severity::Error,
            reference: CREATE,
            fields: &["spec.engine", "spec.engineVersion", "spec.parameterGroup"],
            validate: default_parameter_group,
        },
        Rule {
            id: "default-option-group-version",
            description: "A default option group must be that of the engine and its major version.",
            severity: Severity::Error,
            reference: CREATE,
            fields: &["spec.engine", "spec.engineVersion", "spec.optionGroup"],
            validate: default_option_group,
        },
        Rule {
            id: "parameter-group-of-upgrade",
            description: "An upgrade to another major version should have another parameter group, unless the group is a default one.",
            severity: Severity::Warning,
            reference: UPGRADES,
            fields: &["spec.engine", "spec.engineVersion", "spec.parameterGroup"],
            validate: parameter_group_of_upgrade,
        },
    ]
}

/// Returns the major version of the engine in the spec.
fn major_version(object: &CloudDatabase) -> Option<&str> {
    let spec = &object.spec;
    let version = spec.engine_version.as_deref()?;
    Some(spec.engine.major_version(version))
}

fn default_parameter_group(
    context: &RuleContext<'_, CloudDatabase>,
    diagnostics: &mut Diagnostics,
) {
    let spec = &context.object.spec;
    if let Some(group) = spec.parameter_group.as_deref()
        && let Some(family) = group.strip_prefix("default.")
        && let Some(major) = major_version(context.object)
    {
        let expected = format!("{}{major}", spec.engine.as_str());
        if family != expected {
            let detail = format!(
                "is no group of the family of the engine version; set 'default.{expected}', or remove it"
            );
            diagnostics.invalid("spec.parameterGroup", group, detail);
        }
    }
}

fn default_option_group(context: &RuleContext<'_, CloudDatabase>, diagnostics: &mut Diagnostics) {
    let spec = &context.object.spec;
    if let Some(group) = spec.option_group.as_deref()
        && let Some(version) = group.strip_prefix("default:")
        && let Some(major) = major_version(context.object)
    {
        let expected = format!("{}-{}", spec.engine.as_str(), major.replace('.', "-"));
        if version != expected {
            let detail = format!(
                "is no group of the engine version; set 'default:{expected}', or remove it"
            );
            diagnostics.invalid("spec.optionGroup", group, detail);
        }
    }
}

fn parameter_group_of_upgrade(
    context: &RuleContext<'_, CloudDatabase>,
    diagnostics: &mut Diagnostics,
) {
    let spec = &context.object.spec;
    let Some(old) = context.old.filter(|old| old.spec.engine == spec.engine) else {
        return;
    };
    if let (Some(before), Some(wanted)) = (&old.spec.engine_version, &spec.engine_version)
        && let Some(group) = &spec.parameter_group
        && !group.starts_with("default.")
        && old.spec.parameter_group.as_ref() == Some(group)
        && spec.engine.is_major_upgrade(before, wanted)
    {
        let family = format!(
            "{}{}",
            spec.engine.as_str(),
            spec.engine.major_version(wanted)
        );
        let detail = format!(
            "is the group of version {before}: RDS rejects the upgrade unless it gets a group of the family {family}"
        );
        diagnostics.invalid("spec.parameterGroup", group.as_str(), detail);
    }
}
