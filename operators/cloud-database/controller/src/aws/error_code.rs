//! Error codes of RDS, and what each means for the next attempt of the call:
//! <https://docs.aws.amazon.com/AmazonRDS/latest/APIReference/CommonErrors.html>, and the errors of each operation there.

use aws_runtime::retries::classifiers::{THROTTLING_ERRORS, TRANSIENT_ERRORS};

/// Meaning of an error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// RDS can never do what the spec says: the object has to change.
    Object,
    /// Something outside of the object has to change, such as a quota, or a group that the object names.
    Outside,
    /// The credentials or the permissions of the controller have to change, or its clock.
    Access,
    /// RDS accepts the call when a resource has another state, which it reaches by itself.
    Busy,
    /// RDS did not carry the call out now, and accepts it later.
    Unavailable,
    /// An earlier call has had the effect.
    Repeated,
}

use Class::{Access, Busy, Object, Outside, Repeated};

/// Codes that RDS documents for the operations that this operator calls, and those that each operation can answer.
const CODES: &[(&str, Class)] = &[
    ("AccessDenied", Access),
    ("AccessDeniedException", Access),
    ("AuthFailure", Access),
    ("AuthorizationNotFound", Outside),
    ("BackupPolicyNotFoundFault", Outside),
    ("BlueGreenDeploymentNotFoundFault", Outside),
    ("CertificateNotFound", Outside),
    ("DBCapacityReservationNotFound", Outside),
    ("DBClusterNotFoundFault", Outside),
    ("DBClusterSnapshotNotFoundFault", Outside),
    ("DBInstanceAlreadyExists", Repeated),
    ("DBInstanceAutomatedBackupNotFound", Outside),
    ("DBInstanceAutomatedBackupQuotaExceeded", Outside),
    ("DBInstanceNotFound", Outside),
    ("DBParameterGroupNotFound", Outside),
    ("DBProxyEndpointNotFoundFault", Outside),
    ("DBProxyNotFoundFault", Outside),
    ("DBProxyTargetGroupNotFoundFault", Outside),
    ("DBSecurityGroupNotFound", Outside),
    ("DBShardGroupNotFound", Outside),
    ("DBSnapshotAlreadyExists", Repeated),
    ("DBSnapshotNotFound", Outside),
    ("DBSnapshotTenantDatabaseNotFoundFault", Outside),
    ("DBSubnetGroupDoesNotCoverEnoughAZs", Outside),
    ("DBSubnetGroupNotAllowedFault", Object),
    ("DBSubnetGroupNotFoundFault", Outside),
    ("DBUpgradeDependencyFailure", Outside),
    ("DomainNotFoundFault", Outside),
    ("ExpiredToken", Access),
    ("ExpiredTokenException", Access),
    ("IncompleteSignature", Access),
    ("InstanceQuotaExceeded", Outside),
    ("InsufficientDBInstanceCapacity", Outside),
    ("IntegrationNotFoundFault", Outside),
    ("InvalidAction", Outside),
    ("InvalidClientTokenId", Access),
    ("InvalidDBCapacityReservationState", Busy),
    ("InvalidDBClusterEndpointStateFault", Busy),
    ("InvalidDBClusterStateFault", Busy),
    ("InvalidDBInstanceState", Busy),
    ("InvalidDBSecurityGroupState", Busy),
    ("InvalidDBSnapshotState", Busy),
    ("InvalidDBSubnetGroupFault", Object),
    ("InvalidParameterCombination", Object),
    ("InvalidParameterValue", Object),
    ("InvalidRestoreFault", Object),
    ("InvalidSignatureException", Access),
    ("InvalidSubnet", Outside),
    ("InvalidVPCNetworkStateFault", Outside),
    ("KMSKeyNotAccessibleFault", Outside),
    ("MissingAction", Outside),
    ("MissingAuthenticationToken", Access),
    ("MissingParameter", Object),
    ("NetworkTypeNotSupported", Object),
    ("NotAuthorized", Access),
    ("OptInRequired", Access),
    ("OptionGroupNotFoundFault", Outside),
    ("PointInTimeRestoreNotEnabled", Outside),
    ("ProvisionedIopsNotAvailableInAZFault", Outside),
    ("RequestExpired", Access),
    ("RequestTimeTooSkewed", Access),
    ("SignatureDoesNotMatch", Access),
    ("SnapshotQuotaExceeded", Outside),
    ("StorageQuotaExceeded", Outside),
    ("StorageTypeNotSupported", Object),
    ("TenantDatabaseNotFound", Outside),
    ("TenantDatabaseQuotaExceeded", Outside),
    ("UnrecognizedClientException", Access),
    ("ValidationError", Object),
    ("VpcEncryptionControlViolationException", Outside),
];

/// Returns the meaning of an error: `code` is that of AWS, and `status` that of HTTP, if there was a response.
pub(crate) fn class(code: Option<&str>, status: Option<u16>) -> Class {
    let (Some(code), Some(400..500)) = (code, status) else {
        return Class::Unavailable;
    };
    if THROTTLING_ERRORS.contains(&code) || TRANSIENT_ERRORS.contains(&code) {
        return Class::Unavailable;
    }
    let found = CODES.iter().find(|(known, _)| *known == code);
    // A refusal that this release does not know is reported, and tried again.
    found.map_or(Outside, |(_, class)| *class)
}

/// Returns true if an answer says that RDS did not carry out the call.
pub(crate) fn is_not_carried_out(code: Option<&str>, status: Option<u16>) -> bool {
    // The server is only overloaded, and says so whatever the status is.
    code.is_some_and(|code| THROTTLING_ERRORS.contains(&code))
        || matches!(class(code, status), Object | Outside | Access | Busy)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeSet;

    use rds_simulator::{COMMON_ERRORS, Model};

    use super::*;
    use crate::aws::metrics::OPERATIONS;

    /// Codes of AWS that clients receive although the reference of RDS does not have them.
    const UNDOCUMENTED: &[&str] = &[
        "AccessDeniedException",
        "AuthFailure",
        "ExpiredTokenException",
        "InvalidSignatureException",
        "NotAuthorized",
        "RequestTimeTooSkewed",
        "UnrecognizedClientException",
    ];

    #[test]
    fn each_code_that_rds_documents_for_a_call_of_this_operator_has_a_meaning() {
        let model = Model::rds();
        let mut documented = BTreeSet::new();
        for operation in OPERATIONS {
            documented.extend(model.operations[*operation].errors.iter().cloned());
        }
        let common = COMMON_ERRORS.iter();
        documented.extend(
            common
                .filter(|(code, status)| *status < 500 && !THROTTLING_ERRORS.contains(code))
                .map(|(code, _)| (*code).to_owned()),
        );
        let rows: BTreeSet<_> = CODES.iter().map(|(code, _)| (*code).to_owned()).collect();
        assert_eq!(rows.len(), CODES.len(), "no code has two rows");
        let missing: Vec<_> = documented.difference(&rows).collect();
        assert!(missing.is_empty(), "add rows for {missing:?}");
        let obsolete = rows.difference(&documented);
        let obsolete: Vec<_> = obsolete.map(String::as_str).collect();
        assert_eq!(obsolete, UNDOCUMENTED);
    }

    #[test]
    fn the_documentation_has_each_code() {
        let text = include_str!("../../../../../docs/cloud-database.md");
        let (_, text) = text
            .split_once("### Errors of RDS")
            .expect("the section about errors");
        let (text, _) = text.split_once("\n### ").expect("the end of the section");
        for (code, class) in CODES {
            let row = match class {
                Object => "| the object |",
                Outside => "| something outside of the object |",
                Access => "| the controller |",
                Busy => "| nothing: a resource is busy |",
                Repeated => "| nothing: it was done before |",
                Class::Unavailable => unreachable!("it has no rows"),
            };
            let mut rows = text.lines();
            let row = rows.find(|line| line.starts_with(row));
            let row = row.unwrap_or_else(|| panic!("a row for {class:?}"));
            let is_listed = row.contains(&format!("`{code}`"));
            // What this operator never uses is not listed.
            let is_foreign = [
                "BlueGreen",
                "Capacity",
                "Cluster",
                "Proxy",
                "Shard",
                "Tenant",
            ]
            .iter()
            .any(|it| code.contains(it) && *code != "InsufficientDBInstanceCapacity")
                || UNDOCUMENTED.contains(code);
            assert!(is_listed || is_foreign, "{code}");
        }
    }

    #[test]
    fn the_alert_about_failing_requests_has_each_code_that_an_administrator_resolves() {
        let rules = include_str!("../../../../../manifests/monitoring/rules.yaml");
        let (_, alert) = rules
            .split_once("alert: LockstepAWSRequestsFail")
            .expect("the alert");
        let (_, codes) = alert.split_once("code=~\"").expect("the codes");
        let (codes, _) = codes.split_once('"').expect("the end of the codes");
        // As in Prometheus, the expression has to match the whole label.
        let codes = regex::Regex::new(&format!("^(?:{codes})$")).expect("an expression");
        let of_controller = CODES.iter().filter(|(_, class)| *class == Access);
        let of_server = COMMON_ERRORS
            .iter()
            .filter(|(code, status)| *status >= 500 && !THROTTLING_ERRORS.contains(code));
        let of_controller = of_controller.map(|(code, _)| *code);
        for code in of_controller.chain(of_server.map(|(code, _)| *code)) {
            assert!(codes.is_match(code), "{code}");
        }
        for (code, class) in CODES {
            assert!(*class == Access || !codes.is_match(code), "{code}");
        }
    }

    #[test]
    fn without_an_answer_that_names_a_reason_nothing_is_known() {
        let refused = |code: Option<&str>, status: Option<u16>| class(code, status);
        let unavailable = Class::Unavailable;
        assert_eq!(refused(None, None), unavailable, "the answer was lost");
        assert_eq!(refused(None, Some(403)), unavailable, "of a proxy");
        assert_eq!(refused(Some("InternalFailure"), Some(500)), unavailable);
        assert_eq!(refused(Some("ServiceUnavailable"), Some(503)), unavailable);
        assert_eq!(refused(Some("AccessDenied"), Some(503)), unavailable);
        for code in THROTTLING_ERRORS.iter().chain(TRANSIENT_ERRORS) {
            assert_eq!(refused(Some(code), Some(400)), unavailable, "{code}");
        }
        assert_eq!(refused(Some("OfALaterRelease"), Some(400)), Outside);
    }

    #[test]
    fn a_refusal_and_throttling_say_that_nothing_was_carried_out() {
        for (code, status) in [
            ("Throttling", 400),
            ("Throttling", 503),
            ("InvalidDBInstanceState", 400),
            ("InvalidParameterValue", 400),
            ("AccessDenied", 403),
        ] {
            assert!(is_not_carried_out(Some(code), Some(status)), "{code}");
        }
        for (code, status) in [
            (None, None),
            (None, Some(403)),
            (Some("InternalFailure"), Some(500)),
            (Some("ServiceUnavailable"), Some(503)),
            (Some("RequestTimeout"), Some(400)),
            (Some("DBInstanceAlreadyExists"), Some(400)),
        ] {
            assert!(!is_not_carried_out(code, status), "{code:?}, {status:?}");
        }
    }
}
