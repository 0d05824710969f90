//! Statuses of instances in RDS, from its User Guide, with what each means to clients.

/// Statuses in which clients are served.
pub const SERVING: [&str; 10] = [
    "available",
    "backing-up",
    "configuring-enhanced-monitoring",
    "configuring-iam-database-auth",
    "configuring-log-exports",
    "modifying",
    "resetting-master-credentials",
    "storage-config-upgrade",
    "storage-initialization",
    "storage-optimization",
];

/// Statuses that pass, one of which no release of RDS has.
pub const PASSING: [&str; 12] = [
    "converting-to-vpc",
    "creating",
    "delete-precheck",
    "deleting",
    "maintenance",
    "moving-to-vpc",
    "rebooting",
    "renaming",
    "starting",
    "stopping",
    "upgrading",
    "of-a-later-release",
];

/// Statuses in which an administrator has to act, with the reason of the object.
pub const STALLED: [(&str, &str); 12] = [
    ("failed", "InstanceFailed"),
    ("inaccessible-encryption-credentials", "EncryptionKeyLost"),
    (
        "inaccessible-encryption-credentials-recoverable",
        "EncryptionKeyInaccessible",
    ),
    ("incompatible-create", "InstanceNotCreated"),
    ("incompatible-network", "IncompatibleNetwork"),
    ("incompatible-option-group", "IncompatibleOptionGroup"),
    ("incompatible-parameters", "IncompatibleParameters"),
    ("incompatible-restore", "IncompatibleRestore"),
    ("insufficient-capacity", "InsufficientCapacity"),
    ("restore-error", "RestoreFailed"),
    ("stopped", "InstanceStopped"),
    ("storage-full", "StorageFull"),
];
