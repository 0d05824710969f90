//! Rules on upgrades of the engine, and on its life cycle.

use lockstep_shared_validation::{Diagnostics, Rule, RuleContext, Severity};

use crate::engine::Engine;
use crate::references::CREATE;
use crate::spec::CloudDatabase;

const MAJOR: &str = "https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_UpgradeDBInstance.Upgrading.html#USER_UpgradeDBInstance.Upgrading.Overview";
const MINOR: &str = "https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_UpgradeDBInstance.Upgrading.html#USER_UpgradeDBInstance.Upgrading.AutoMinorVersionUpgrades";

pub(super) fn rules() -> Vec<Rule<CloudDatabase>> {
    vec![
        Rule {
            id: "allowed-version-form",
            description: "`allowMajorVersionUpgrade` must name a major version of the engine.",
            severity: Severity::Error,
            reference: MAJOR,
            fields: &["spec.allowMajorVersionUpgrade", "spec.engine"],
            validate: allowed_version_form,
        },
        Rule {
            id: "major-version-upgrade-not-allowed",
            description: "An upgrade to another major version should be allowed by `allowMajorVersionUpgrade`.",
            severity: Severity::Warning,
            reference: MAJOR,
            fields: &[
                "spec.allowMajorVersionUpgrade",
                "spec.engine",
                "spec.engineVersion",
            ],
            validate: upgrade_not_allowed,
        },
        Rule {
            id: "automatic-upgrade-of-exact-version",
            description: "An exact engine version should not be upgraded automatically.",
            severity: Severity::Warning,
            reference: MINOR,
            fields: &[
                "spec.autoMinorVersionUpgrade",
                "spec.engine",
                "spec.engineVersion",
            ],
            validate: automatic_upgrade,
        },
        Rule {
            id: "engine-lifecycle-support-engine",
            description: "`engineLifecycleSupport` may be set only for PostgreSQL and MySQL.",
            severity: Severity::Error,
            reference: CREATE,
            fields: &["spec.engine", "spec.engineLifecycleSupport"],
            validate: lifecycle_support,
        },
    ]
}

fn allowed_version_form(context: &RuleContext<'_, CloudDatabase>, diagnostics: &mut Diagnostics) {
    let spec = &context.object.spec;
    let Some(allowed) = &spec.allow_major_version_upgrade else {
        return;
    };
    // The schema reports what is no version.
    if !allowed.starts_with(|c: char| c.is_ascii_digit()) {
        return;
    }
    let components = allowed.split('.').count();
    if components != spec.engine.major_components(allowed) {
        let engine = spec.engine.as_str();
        let detail = format!(
            "is no major version of {engine}, such as {}",
            spec.engine.default_version()
        );
        diagnostics.invalid("spec.allowMajorVersionUpgrade", allowed.as_str(), detail);
    }
}

fn upgrade_not_allowed(context: &RuleContext<'_, CloudDatabase>, diagnostics: &mut Diagnostics) {
    let spec = &context.object.spec;
    let status = context.object.status.as_ref();
    let running = status.and_then(|status| status.engine_version.as_deref());
    let before = context.old.filter(|old| old.spec.engine == spec.engine);
    let before = before.and_then(|old| old.spec.engine_version.as_deref());
    let (Some(running), Some(wanted)) = (running.or(before), spec.engine_version.as_deref()) else {
        return;
    };
    if context.old.is_some()
        && spec.engine.is_major_upgrade(running, wanted)
        && !spec.allows_major_version(wanted)
    {
        let major = spec.engine.major_version(wanted);
        let detail = format!(
            "is an upgrade from {running} to another major version, which cannot be undone and is not requested; set `allowMajorVersionUpgrade` to '{major}' to allow it"
        );
        diagnostics.invalid("spec.engineVersion", wanted, detail);
    }
}

fn automatic_upgrade(context: &RuleContext<'_, CloudDatabase>, diagnostics: &mut Diagnostics) {
    let spec = &context.object.spec;
    if let Some(version) = spec.engine_version.as_deref()
        && spec.lets_rds_upgrade()
        && spec.engine.is_minor_version(version)
    {
        let major = spec.engine.major_version(version);
        let detail = format!(
            "upgrades the instance beyond '{version}', and it cannot be downgraded; set `engineVersion` to '{major}', or remove this field"
        );
        diagnostics.invalid("spec.autoMinorVersionUpgrade", true, detail);
    }
}

fn lifecycle_support(context: &RuleContext<'_, CloudDatabase>, diagnostics: &mut Diagnostics) {
    let spec = &context.object.spec;
    if let Some(support) = spec.engine_lifecycle_support
        && spec.engine == Engine::Mariadb
    {
        let detail = "may be set only for postgres and mysql: RDS has no Extended Support for mariadb; remove it";
        diagnostics.invalid("spec.engineLifecycleSupport", support.as_str(), detail);
    }
}
