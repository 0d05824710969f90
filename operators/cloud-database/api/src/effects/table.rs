//! Table of the fields of the spec, and what a change of each does.

use crate::effects::effect::{Effect, Timing};

/// Field of the spec that is a setting of the instance.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Field, without `spec.`.
    pub field: &'static str,
    /// Parameter of RDS that it is, of `ModifyDBInstance` if the field can be changed.
    pub parameter: &'static str,
    /// Effect of a change.
    pub effect: Effect,
    /// Time of the effect.
    pub timing: Timing,
    /// Reason, if the effect needs one.
    pub reason: &'static str,
    /// Circumstances in which it differs. The first one that applies counts.
    pub exceptions: &'static [Exception],
}

/// Circumstance in which the change of a field has another effect.
#[derive(Clone, Copy, Debug)]
pub struct Exception {
    /// Circumstance.
    pub circumstance: Circumstance,
    /// Effect of a change.
    pub effect: Effect,
    /// Time of the effect.
    pub timing: Timing,
    /// Reason, if the effect needs one.
    pub reason: &'static str,
}

/// Circumstance on which the effect of a change depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Circumstance {
    /// The instance has a standby.
    MultiAz,
    /// Changes wait for the maintenance window.
    InMaintenanceWindow,
    /// Automated backups are enabled or disabled.
    BackupsToggled,
    /// The size falls.
    StorageShrinks,
    /// The version falls.
    VersionFalls,
    /// The upgrade is to a major version that `allowMajorVersionUpgrade` does not name.
    UpgradeNotAllowed,
    /// `allowMajorVersionUpgrade` begins to name the version of the spec.
    UpgradeAllowed,
    /// Automatic upgrades of minor versions become enabled.
    AutomaticUpgradesEnabled,
    /// The instance has magnetic storage, which no spec has: only an adopted or restored instance can have it.
    MagneticStorage,
    /// The version or the class changes, too.
    RestartsAnyway,
    /// The engine has an option whose installation restarts it.
    OptionsCanRestart,
    /// Performance Insights is and stays enabled.
    InsightsEnabled,
}

impl Circumstance {
    /// Returns the words for this circumstance, after "if".
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::MultiAz => "the instance is Multi-AZ",
            Self::InMaintenanceWindow => "`applyChanges` is MaintenanceWindow",
            Self::BackupsToggled => "backups become enabled or disabled",
            Self::StorageShrinks => "the size falls",
            Self::VersionFalls => "the version falls",
            Self::UpgradeNotAllowed => "the major version is not allowed",
            Self::UpgradeAllowed => "it allows the version of the spec",
            Self::AutomaticUpgradesEnabled => "it becomes true",
            Self::MagneticStorage => "the instance has magnetic storage",
            Self::RestartsAnyway => "the version or the class changes, too",
            Self::OptionsCanRestart => "the engine is MySQL or MariaDB",
            Self::InsightsEnabled => "Performance Insights stays enabled",
        }
    }
}

/// Fields of the spec that are no settings of the instance, or change none by themselves.
pub const WITHOUT_EFFECT: &[&str] = &[
    "adopt",
    "applyChanges",
    "connectionSecret",
    "deletionPolicy",
    "managementPolicy",
    "restoreFrom",
    "retainAutomatedBackups",
];

const fn setting(
    field: &'static str,
    parameter: &'static str,
    effect: Effect,
    timing: Timing,
) -> Setting {
    Setting {
        field,
        parameter,
        effect,
        timing,
        reason: "",
        exceptions: &[],
    }
}

/// Returns a setting whose change RDS applies at once and without an outage.
const fn online(field: &'static str, parameter: &'static str) -> Setting {
    setting(field, parameter, Effect::Online, Timing::Now)
}

/// Returns a setting whose change RDS applies as the spec demands, and without an outage.
const fn scheduled(field: &'static str, parameter: &'static str) -> Setting {
    setting(field, parameter, Effect::Online, Timing::AsApplyChanges)
}

/// Returns a setting that is set at creation only.
const fn fixed(field: &'static str, parameter: &'static str) -> Setting {
    setting(field, parameter, Effect::Denied, Timing::Now)
}

const fn because(setting: Setting, reason: &'static str) -> Setting {
    Setting { reason, ..setting }
}

const fn except(setting: Setting, exceptions: &'static [Exception]) -> Setting {
    Setting {
        exceptions,
        ..setting
    }
}

const fn if_(circumstance: Circumstance, effect: Effect, timing: Timing) -> Exception {
    Exception {
        circumstance,
        effect,
        timing,
        reason: "",
    }
}

/// Settings, with the effects of their changes.
pub const SETTINGS: &[Setting] = &[
    fixed("engine", "Engine"),
    except(
        setting(
            "engineVersion",
            "EngineVersion",
            Effect::Restart,
            Timing::AsApplyChanges,
        ),
        &[
            if_(Circumstance::VersionFalls, Effect::Denied, Timing::Now),
            Exception {
                reason: "`allowMajorVersionUpgrade` does not name the major version",
                ..if_(
                    Circumstance::UpgradeNotAllowed,
                    Effect::NotRequested,
                    Timing::Now,
                )
            },
        ],
    ),
    except(
        online("allowMajorVersionUpgrade", "AllowMajorVersionUpgrade"),
        &[Exception {
            reason: "an upgrade that waits for it is requested",
            ..if_(
                Circumstance::UpgradeAllowed,
                Effect::Restart,
                Timing::AsApplyChanges,
            )
        }],
    ),
    except(
        online("autoMinorVersionUpgrade", "AutoMinorVersionUpgrade"),
        &[Exception {
            reason: "in the maintenance window, if RDS has enabled automatic upgrades to a newer minor version",
            ..if_(
                Circumstance::AutomaticUpgradesEnabled,
                Effect::PossibleOutage,
                Timing::Now,
            )
        }],
    ),
    online("engineLifecycleSupport", "EngineLifecycleSupport"),
    except(
        setting(
            "parameterGroup",
            "DBParameterGroupName",
            Effect::Restart,
            Timing::NextRestart,
        ),
        &[Exception {
            reason: "that of the new version or class",
            ..if_(
                Circumstance::RestartsAnyway,
                Effect::Restart,
                Timing::AsApplyChanges,
            )
        }],
    ),
    except(
        scheduled("optionGroup", "OptionGroupName"),
        &[Exception {
            reason: "if it adds the audit plugin",
            ..if_(
                Circumstance::OptionsCanRestart,
                Effect::PossibleOutage,
                Timing::AsApplyChanges,
            )
        }],
    ),
    except(
        setting(
            "instanceClass",
            "DBInstanceClass",
            Effect::Restart,
            Timing::AsApplyChanges,
        ),
        &[if_(
            Circumstance::MultiAz,
            Effect::Failover,
            Timing::AsApplyChanges,
        )],
    ),
    except(
        scheduled("storage.type", "StorageType"),
        &[if_(
            Circumstance::MagneticStorage,
            Effect::BriefOutage,
            Timing::AsApplyChanges,
        )],
    ),
    except(
        scheduled("storage.sizeGib", "AllocatedStorage"),
        &[if_(
            Circumstance::StorageShrinks,
            Effect::Denied,
            Timing::Now,
        )],
    ),
    online("storage.maxSizeGib", "MaxAllocatedStorage"),
    scheduled("storage.iops", "Iops"),
    scheduled("storage.throughputMibps", "StorageThroughput"),
    setting(
        "dedicatedLogVolume",
        "DedicatedLogVolume",
        Effect::Restart,
        Timing::NextRestart,
    ),
    fixed("databaseName", "DBName"),
    fixed("credentials.username", "MasterUsername"),
    online("credentials.secretName", "MasterUserPassword"),
    online("credentials.selectors", "MasterUserPassword"),
    online("credentials.generate", "MasterUserPassword"),
    online("credentials.managed", "ManageMasterUserPassword"),
    scheduled("iamAuthentication", "EnableIAMDatabaseAuthentication"),
    because(
        setting(
            "caCertificate",
            "CACertificateIdentifier",
            Effect::PossibleOutage,
            Timing::AsApplyChanges,
        ),
        "if the engine version cannot rotate certificates without a restart",
    ),
    fixed("network.subnetGroup", "DBSubnetGroupName"),
    online("network.securityGroups", "VpcSecurityGroupIds"),
    online("network.publiclyAccessible", "PubliclyAccessible"),
    fixed("network.availabilityZone", "AvailabilityZone"),
    setting(
        "network.networkType",
        "NetworkType",
        Effect::PossibleOutage,
        Timing::AsApplyChanges,
    ),
    setting(
        "network.customerOwnedIp",
        "EnableCustomerOwnedIp",
        Effect::PossibleOutage,
        Timing::AsApplyChanges,
    ),
    fixed("encryption.enabled", "StorageEncrypted"),
    fixed("encryption.kmsKey", "KmsKeyId"),
    scheduled("multiAz", "MultiAZ"),
    because(
        setting(
            "replicaOf",
            "SourceDBInstanceIdentifier",
            Effect::Restart,
            Timing::Now,
        ),
        "the replica is promoted",
    ),
    online("monitoring.enhanced", "MonitoringInterval"),
    online(
        "monitoring.performanceInsights.enabled",
        "EnablePerformanceInsights",
    ),
    online(
        "monitoring.performanceInsights.retentionDays",
        "PerformanceInsightsRetentionPeriod",
    ),
    except(
        online(
            "monitoring.performanceInsights.kmsKey",
            "PerformanceInsightsKMSKeyId",
        ),
        &[Exception {
            reason: "RDS sets the key when Performance Insights is enabled for the first time",
            ..if_(
                Circumstance::InsightsEnabled,
                Effect::NotRequested,
                Timing::Now,
            )
        }],
    ),
    online("monitoring.databaseInsights", "DatabaseInsightsMode"),
    online("monitoring.logExports", "CloudwatchLogsExportConfiguration"),
    except(
        online("backup.retentionDays", "BackupRetentionPeriod"),
        &[if_(
            Circumstance::BackupsToggled,
            Effect::BriefOutage,
            Timing::AsApplyChanges,
        )],
    ),
    online("backup.window", "PreferredBackupWindow"),
    online("backup.copyTagsToSnapshot", "CopyTagsToSnapshot"),
    because(
        setting(
            "maintenanceWindow",
            "PreferredMaintenanceWindow",
            Effect::PossibleOutage,
            Timing::Now,
        ),
        "if it includes the current time and a pending action restarts the database",
    ),
    except(
        setting("port", "DBPortNumber", Effect::Restart, Timing::Now),
        &[Exception {
            reason: "RDS restarts the database for it at once, and `applyChanges` is MaintenanceWindow",
            ..if_(
                Circumstance::InMaintenanceWindow,
                Effect::NotRequested,
                Timing::Now,
            )
        }],
    ),
    online("deletionProtection", "DeletionProtection"),
    online("tags", "Tags"),
];
