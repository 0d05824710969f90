//! Instances as RDS reports them.

use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};

use crate::fields::Fields;
use crate::rules::{storage, tags};
use crate::state::instance::Instance;
use crate::state::region::Region;
use crate::state::resources;

/// Settings that an instance reports under the same name.
const SAME: &[&str] = &[
    "AllocatedStorage",
    "AutoMinorVersionUpgrade",
    "AvailabilityZone",
    "BackupRetentionPeriod",
    "BackupTarget",
    "CACertificateIdentifier",
    "CharacterSetName",
    "CopyTagsToSnapshot",
    "DBInstanceClass",
    "DBInstanceIdentifier",
    "DBName",
    "DatabaseInsightsMode",
    "DedicatedLogVolume",
    "DeletionProtection",
    "Engine",
    "EngineLifecycleSupport",
    "EngineVersion",
    "Iops",
    "KmsKeyId",
    "LicenseModel",
    "MasterUsername",
    "MaxAllocatedStorage",
    "MonitoringInterval",
    "MonitoringRoleArn",
    "MultiAZ",
    "NetworkType",
    "PerformanceInsightsKMSKeyId",
    "PerformanceInsightsRetentionPeriod",
    "PreferredBackupWindow",
    "PreferredMaintenanceWindow",
    "ProcessorFeatures",
    "PromotionTier",
    "PubliclyAccessible",
    "StorageEncrypted",
    "StorageThroughput",
    "StorageType",
    "Timezone",
];

/// Settings that RDS reports as pending, with the names that it gives them there.
const PENDING: &[(&str, &str)] = &[
    ("AllocatedStorage", "AllocatedStorage"),
    ("BackupRetentionPeriod", "BackupRetentionPeriod"),
    ("CACertificateIdentifier", "CACertificateIdentifier"),
    ("DBInstanceClass", "DBInstanceClass"),
    ("DBSubnetGroupName", "DBSubnetGroupName"),
    ("DedicatedLogVolume", "DedicatedLogVolume"),
    (
        "EnableIAMDatabaseAuthentication",
        "IAMDatabaseAuthenticationEnabled",
    ),
    ("EngineVersion", "EngineVersion"),
    ("Iops", "Iops"),
    ("LicenseModel", "LicenseModel"),
    ("MultiAZ", "MultiAZ"),
    ("NewDBInstanceIdentifier", "DBInstanceIdentifier"),
    ("Port", "Port"),
    ("ProcessorFeatures", "ProcessorFeatures"),
    ("StorageThroughput", "StorageThroughput"),
    ("StorageType", "StorageType"),
];

/// Flags that RDS reports by another name than that of the request.
const RENAMED_FLAGS: [(&str, &str); 3] = [
    (
        "EnableIAMDatabaseAuthentication",
        "IAMDatabaseAuthenticationEnabled",
    ),
    ("EnableCustomerOwnedIp", "CustomerOwnedIpEnabled"),
    ("EnablePerformanceInsights", "PerformanceInsightsEnabled"),
];

/// Returns an instance as RDS reports it.
pub(crate) fn instance(region: &Region, instance: &Instance, now: Timestamp) -> Value {
    let mut settings = instance.settings.clone();
    storage::report(&mut settings);
    let mut reported = settings.only(SAME);
    reported.set("DBInstanceStatus", instance.status());
    reported.set("DbiResourceId", instance.resource_id.clone());
    reported.set("DBInstanceArn", region.place.arn("db", instance.id()));
    reported.set("DbInstancePort", 0);
    reported.set("DBSecurityGroups", json!([]));
    for (requested, name) in RENAMED_FLAGS {
        reported.set(name, settings.flag(requested));
    }
    if let Some(types) = settings.get("EnableCloudwatchLogsExports") {
        reported.set("EnabledCloudwatchLogsExports", types.clone());
    }
    reported.set("VpcSecurityGroups", security_groups(instance));
    reported.set("DBParameterGroups", parameter_groups(instance));
    reported.set("OptionGroupMemberships", option_groups(instance));
    let subnets = settings
        .given_text("DBSubnetGroupName")
        .unwrap_or("default");
    let subnets = resources::subnet_group(subnets, &region.place.name);
    reported.set("DBSubnetGroup", subnets);
    let certificate = settings.text("CACertificateIdentifier");
    let valid_till = instance.certified + (24 * 365).hours();
    reported.set(
        "CertificateDetails",
        json!({"CAIdentifier": certificate, "ValidTill": valid_till.to_string()}),
    );
    reported.set("PendingModifiedValues", pending(instance));
    reported.set("TagList", tags::list(&instance.tags));
    replication(region, instance, &mut reported);
    let will_be_managed = instance.soon.flag("ManageMasterUserPassword");
    if settings.flag("ManageMasterUserPassword") || will_be_managed {
        reported.set("MasterUserSecret", master_user_secret(region, instance));
    }
    if let Some(created) = instance.created {
        reported.set("InstanceCreateTime", created.to_string());
        let address = address(region, instance.id());
        reported.set(
            "Endpoint",
            json!({"Address": address, "Port": settings.number("Port"), "HostedZoneId": "Z1D15EA5E0000"}),
        );
    }
    if let Some(since) = instance.backed_up {
        // Transaction logs are stored every five minutes.
        let latest = since.max(now - 5.minutes());
        reported.set("LatestRestorableTime", latest.to_string());
    }
    if instance.status() == "stopped" {
        let restart = instance.entered + (7 * 24).hours();
        reported.set("AutomaticRestartTime", restart.to_string());
    }
    if settings.flag("MultiAZ") {
        let zone = format!("{}b", region.place.name);
        reported.set("SecondaryAvailabilityZone", zone);
    }
    reported.overlay(&instance.overrides);
    reported.into()
}

/// Returns the host name of an instance.
fn address(region: &Region, id: &str) -> String {
    let place = &region.place;
    let mut hasher = DefaultHasher::new();
    (&place.account, &place.name).hash(&mut hasher);
    let zone = hasher.finish() & 0xff_ffff_ffff;
    format!("{id}.c{zone:010x}.{}.rds.amazonaws.com", place.name)
}

fn security_groups(instance: &Instance) -> Value {
    let active = instance.settings.texts("VpcSecurityGroupIds");
    let next = instance.soon.texts("VpcSecurityGroupIds");
    let is_changing = instance.soon.has("VpcSecurityGroupIds");
    let removed = |group: &&str| is_changing && !next.contains(group);
    let groups = active.iter().map(|group| {
        let status = if removed(group) { "removing" } else { "active" };
        json!({"VpcSecurityGroupId": group, "Status": status})
    });
    let added = next.iter().filter(|group| !active.contains(group));
    let added = added.map(|group| json!({"VpcSecurityGroupId": group, "Status": "adding"}));
    groups.chain(added).collect()
}

fn parameter_groups(instance: &Instance) -> Value {
    let settings = &instance.settings;
    let default = format!("default.{}", resources::family(settings));
    let name = settings
        .given_text("DBParameterGroupName")
        .unwrap_or(&default);
    let status = if instance.needs_reboot {
        "pending-reboot"
    } else {
        "in-sync"
    };
    json!([{"DBParameterGroupName": name, "ParameterApplyStatus": status}])
}

fn option_groups(instance: &Instance) -> Value {
    let active = resources::option_group(&instance.settings);
    let mut groups = vec![json!({"OptionGroupName": active, "Status": "in-sync"})];
    if let Some(next) = instance.pending.given_text("OptionGroupName") {
        let status = match instance.next_window {
            Some(_) => "pending-maintenance-apply",
            None => "pending-apply",
        };
        groups.push(json!({"OptionGroupName": next, "Status": status}));
    }
    groups.into()
}

fn pending(instance: &Instance) -> Value {
    let mut pending = Fields::default();
    for changed in [&instance.pending, &instance.soon, &instance.at_reboot] {
        for (name, reported) in PENDING {
            if let Some(value) = changed.get(name) {
                pending.set(reported, value.clone());
            }
        }
    }
    if instance.soon.has("MasterUserPassword") {
        pending.set("MasterUserPassword", "****");
    }
    if instance.soon.has("EnableCloudwatchLogsExports") {
        let active = instance.settings.texts("EnableCloudwatchLogsExports");
        let next = instance.soon.texts("EnableCloudwatchLogsExports");
        let added: Vec<_> = next.iter().filter(|kind| !active.contains(kind)).collect();
        let removed: Vec<_> = active.iter().filter(|kind| !next.contains(kind)).collect();
        pending.set(
            "PendingCloudwatchLogsExports",
            json!({"LogTypesToEnable": added, "LogTypesToDisable": removed}),
        );
    }
    pending.into()
}

fn replication(region: &Region, instance: &Instance, reported: &mut Fields) {
    let replicas = region.instances.iter();
    let replicas = replicas.filter(|it| it.source.as_ref() == Some(&instance.resource_id));
    let replicas: Vec<_> = replicas.map(Instance::id).collect();
    reported.set("ReadReplicaDBInstanceIdentifiers", replicas);
    let source = instance.source.as_ref();
    let mut sources = region.instances.iter();
    let source = sources.find(|it| Some(&it.resource_id) == source);
    if let Some(source) = source {
        reported.set("ReadReplicaSourceDBInstanceIdentifier", source.id());
        if instance.created.is_some() {
            reported.set(
                "StatusInfos",
                json!([{"StatusType": "read replication", "Normal": true, "Status": "replicating"}]),
            );
        }
    }
}

fn master_user_secret(region: &Region, instance: &Instance) -> Value {
    let place = &region.place;
    let name = instance.resource_id.to_ascii_lowercase();
    let (settings, soon) = (&instance.settings, &instance.soon);
    let is_being_created = instance.created.is_none() || !settings.flag("ManageMasterUserPassword");
    let status = if is_being_created {
        "creating"
    } else if soon.flag("RotateMasterUserPassword") {
        "rotating"
    } else {
        "active"
    };
    let key = soon.given_text("MasterUserSecretKmsKeyId");
    let key = key.or_else(|| settings.given_text("MasterUserSecretKmsKeyId"));
    json!({
        "SecretArn": format!("arn:aws:secretsmanager:{}:{}:secret:rds!{name}", place.name, place.account),
        "SecretStatus": status,
        "KmsKeyId": key,
    })
}
