//! Statuses of instances in RDS, and what each means to clients, modifications and deletions:
//! <https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/accessing-monitoring.html>.

/// Modifications that RDS accepts in a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepts {
    All,
    AllButStorage,
    OnlyStorage,
    OnlyParameterGroup,
    Nothing,
}

impl Accepts {
    /// Returns true if a refusal because of the status is unexpected: it may not end by waiting.
    pub(crate) fn is_open(self) -> bool {
        matches!(self, Self::All | Self::OnlyParameterGroup)
    }
}

/// Status that does not pass by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Reason for programs.
    pub(crate) reason: &'static str,
    /// Problem, and what to do.
    pub(crate) message: &'static str,
}

impl Problem {
    /// Returns the message about an instance.
    pub(crate) fn of_instance(self, id: &str, status: &str) -> String {
        let message = self.message;
        format!("RDS reports the instance '{id}' as '{status}': {message}")
    }
}

/// Meaning of a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    /// If true, clients can use the database.
    pub(crate) serves: bool,
    pub(crate) accepts: Accepts,
    /// If true, RDS takes a final snapshot of the instance when it is deleted.
    pub(crate) has_final_snapshot: bool,
    pub(crate) problem: Option<Problem>,
}

/// Passes by itself, and clients cannot rely on the database.
const PASSES: Meaning = Meaning {
    serves: false,
    accepts: Accepts::Nothing,
    has_final_snapshot: true,
    problem: None,
};

/// Passes by itself, and clients can use the database.
const SERVES: Meaning = Meaning {
    serves: true,
    ..PASSES
};

const fn problem(reason: &'static str, message: &'static str) -> Meaning {
    Meaning {
        problem: Some(Problem { reason, message }),
        ..PASSES
    }
}

/// Cannot be deleted with a final snapshot (`DeleteDBInstance`, `SkipFinalSnapshot`).
const fn without_snapshot(meaning: Meaning) -> Meaning {
    Meaning {
        has_final_snapshot: false,
        ..meaning
    }
}

/// Status in which RDS rewrites the storage after a change.
pub(crate) const STORAGE_OPTIMIZATION: &str = "storage-optimization";

/// Statuses with their meaning. Any other status is one that passes.
pub(crate) const STATUSES: &[(&str, Meaning)] = &[
    (
        "available",
        Meaning {
            accepts: Accepts::All,
            ..SERVES
        },
    ),
    (
        STORAGE_OPTIMIZATION,
        Meaning {
            accepts: Accepts::AllButStorage,
            ..SERVES
        },
    ),
    ("backing-up", SERVES),
    ("configuring-enhanced-monitoring", SERVES),
    ("configuring-iam-database-auth", SERVES),
    ("configuring-log-exports", SERVES),
    ("modifying", SERVES),
    ("resetting-master-credentials", SERVES),
    ("storage-config-upgrade", SERVES),
    ("storage-initialization", SERVES),
    ("converting-to-vpc", PASSES),
    ("creating", without_snapshot(PASSES)),
    ("delete-precheck", PASSES),
    ("deleting", PASSES),
    ("maintenance", PASSES),
    ("moving-to-vpc", PASSES),
    ("rebooting", PASSES),
    ("renaming", PASSES),
    ("starting", PASSES),
    ("stopping", PASSES),
    ("upgrading", PASSES),
    (
        "failed",
        without_snapshot(problem(
            "InstanceFailed",
            "RDS cannot recover the instance; restore its data to the latest restorable time",
        )),
    ),
    (
        "inaccessible-encryption-credentials",
        problem(
            "EncryptionKeyLost",
            "RDS cannot use the KMS key of the instance, and cannot recover it; restore its data from a backup with another key",
        ),
    ),
    (
        "inaccessible-encryption-credentials-recoverable",
        problem(
            "EncryptionKeyInaccessible",
            "RDS cannot use the KMS key of the instance. Enable the key, or give RDS access to it, and start the instance in RDS within seven days: later it cannot be recovered",
        ),
    ),
    (
        "incompatible-create",
        problem(
            "InstanceNotCreated",
            "RDS could not create the instance with these settings; see its events in RDS, delete the object, and create it with other settings",
        ),
    ),
    (
        "incompatible-network",
        without_snapshot(problem(
            "IncompatibleNetwork",
            "RDS cannot recover the instance in its subnets, for example because no IP address is free; correct the network, see the events of the instance in RDS",
        )),
    ),
    (
        "incompatible-option-group",
        problem(
            "IncompatibleOptionGroup",
            "RDS could not apply a change of the option group; see the events of the instance in RDS",
        ),
    ),
    (
        "incompatible-parameters",
        Meaning {
            accepts: Accepts::OnlyParameterGroup,
            ..problem(
                "IncompatibleParameters",
                "the instance cannot start with its parameter group; correct the parameters, or name another group in `spec.parameterGroup`, and reboot the instance in RDS",
            )
        },
    ),
    (
        "incompatible-restore",
        without_snapshot(problem(
            "IncompatibleRestore",
            "RDS could not restore the instance to a point in time, for example because of temporary tables or MyISAM tables",
        )),
    ),
    (
        "insufficient-capacity",
        problem(
            "InsufficientCapacity",
            "RDS has no capacity for the instance class in its availability zone at the moment; delete the object, and create it with another class, or some hours later",
        ),
    ),
    (
        "restore-error",
        problem(
            "RestoreFailed",
            "RDS could not restore the instance to a point in time, or from a snapshot; see its events in RDS",
        ),
    ),
    (
        "stopped",
        problem(
            "InstanceStopped",
            "the instance was stopped in RDS and is not started by this controller; start it in RDS, which otherwise starts it after seven days",
        ),
    ),
    (
        "storage-full",
        Meaning {
            accepts: Accepts::OnlyStorage,
            ..problem(
                "StorageFull",
                "the storage is full, so that clients cannot write; raise `spec.storage.sizeGib` to at least 10 % above `status.allocatedStorageGib`",
            )
        },
    ),
];

/// Returns the meaning of a status, also of an unknown one.
pub(crate) fn meaning(status: &str) -> Meaning {
    let mut all = STATUSES.iter();
    let found = all.find(|(name, _)| *name == status);
    found.map_or(PASSES, |(_, meaning)| *meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_in_which_clients_can_work_have_no_problem() {
        for (name, meaning) in STATUSES {
            assert!(!(meaning.serves && meaning.problem.is_some()), "{name}");
            if meaning.accepts == Accepts::All {
                assert!(meaning.serves, "{name}");
            }
        }
        assert!(meaning("modifying").serves);
        assert!(!meaning("rebooting").serves);
        assert_eq!(meaning("of-a-later-release"), PASSES);
    }

    #[test]
    fn the_documentation_has_each_status() {
        let text = include_str!("../../../../../docs/cloud-database.md");
        for (name, meaning) in STATUSES {
            assert!(text.contains(&format!("`{name}`")), "{name}");
            if let Some(problem) = meaning.problem {
                let reason = problem.reason;
                let is_named = text.contains(&format!("`{reason}`"))
                    || reason.starts_with("Incompatible") && text.contains("`Incompatible…`");
                assert!(is_named, "{reason}");
            }
        }
    }

    #[test]
    fn a_final_snapshot_is_impossible_where_rds_says_so() {
        let without = STATUSES.iter().filter(|(_, it)| !it.has_final_snapshot);
        let without: Vec<_> = without.map(|(name, _)| *name).collect();
        let expected = [
            "creating",
            "failed",
            "incompatible-network",
            "incompatible-restore",
        ];
        assert_eq!(without, expected);
    }

    #[test]
    fn storage_can_be_changed_only_if_it_is_full_or_the_instance_is_available() {
        let takes =
            |status: &str| matches!(meaning(status).accepts, Accepts::All | Accepts::OnlyStorage);
        assert!(takes("available") && takes("storage-full"));
        assert!(!takes("storage-optimization") && !takes("modifying") && !takes("stopped"));
    }
}
