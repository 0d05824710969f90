//! Warnings about settings that work and can cost data or availability.

use lockstep_shared_validation::{Diagnostics, Rule, RuleContext, Severity};

use crate::spec::{CloudDatabase, DeletionPolicy};

const BACKUPS: &str =
    "https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_WorkingWithAutomatedBackups.html";
const DELETION: &str =
    "https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_DeleteInstance.html";
const CLASSES: &str =
    "https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/Concepts.DBInstanceClass.Types.html";
const CERTIFICATES: &str = "https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/UsingWithRDS.SSL-certificate-rotation.html";

/// Certificate authorities that have expired, with the month of their end ([`CERTIFICATES`]).
const EXPIRED_AUTHORITIES: &[(&str, &str)] = &[
    ("rds-ca-2015", "March 2020"),
    ("rds-ca-2019", "August 2024"),
];

pub(super) fn rules() -> Vec<Rule<CloudDatabase>> {
    vec![
        Rule {
            id: "no-automated-backups",
            description: "Automated backups should be enabled.",
            severity: Severity::Warning,
            reference: BACKUPS,
            fields: &["spec.backup.retentionDays"],
            validate: no_backups,
        },
        Rule {
            id: "deletion-without-protection",
            description: "An instance that is deleted with all its data should have deletion protection.",
            severity: Severity::Warning,
            reference: DELETION,
            fields: &["spec.deletionPolicy", "spec.deletionProtection"],
            validate: unprotected,
        },
        Rule {
            id: "burstable-multi-az",
            description: "A Multi-AZ instance should not have a burstable class.",
            severity: Severity::Warning,
            reference: CLASSES,
            fields: &["spec.instanceClass", "spec.multiAz"],
            validate: burstable,
        },
        Rule {
            id: "ca-certificate-expired",
            description: "The certificate authority should not have expired.",
            severity: Severity::Warning,
            reference: CERTIFICATES,
            fields: &["spec.caCertificate"],
            validate: expired_authority,
        },
    ]
}

fn no_backups(context: &RuleContext<'_, CloudDatabase>, diagnostics: &mut Diagnostics) {
    if context.object.spec.backup.retention_days == Some(0) {
        let detail = "disables automated backups: existing ones are deleted, and the data cannot be restored to a point in time";
        diagnostics.invalid("spec.backup.retentionDays", 0, detail);
    }
}

fn unprotected(context: &RuleContext<'_, CloudDatabase>, diagnostics: &mut Diagnostics) {
    let spec = &context.object.spec;
    if spec.deletion_policy == DeletionPolicy::Delete && spec.deletion_protection != Some(true) {
        let detail = "deletes the instance with all its data and without a final snapshot as soon as the object is deleted; \
            set `deletionProtection` to true if this data must not be lost by mistake";
        diagnostics.invalid("spec.deletionPolicy", "Delete", detail);
    }
}

fn burstable(context: &RuleContext<'_, CloudDatabase>, diagnostics: &mut Diagnostics) {
    let spec = &context.object.spec;
    let class = spec.instance_class.as_str();
    if spec.multi_az == Some(true) && class.starts_with("db.t") {
        let detail = "is burstable: while its CPU credits are used up, it is slow, and so is the standby after a failover; \
            choose a class such as 'db.m7g.large' for production";
        diagnostics.invalid("spec.instanceClass", class, detail);
    }
}

/// Suggests authorities that are valid for decades: `rds-ca-rsa2048-g1` until 2061, and the others until 2121
/// (<https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/UsingWithRDS.SSL.html>).
fn expired_authority(context: &RuleContext<'_, CloudDatabase>, diagnostics: &mut Diagnostics) {
    let Some(authority) = context.object.spec.ca_certificate.as_deref() else {
        return;
    };
    let mut expired = EXPIRED_AUTHORITIES.iter();
    if let Some((_, end)) = expired.find(|(name, _)| *name == authority) {
        let detail = format!(
            "expired in {end}: clients that verify the certificate of the server cannot connect; \
            set 'rds-ca-rsa2048-g1', 'rds-ca-rsa4096-g1' or 'rds-ca-ecc384-g1'"
        );
        diagnostics.invalid("spec.caCertificate", authority, detail);
    }
}
