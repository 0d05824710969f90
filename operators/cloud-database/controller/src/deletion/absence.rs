//! Absence of the instance of an object that is being deleted: what must be known before the object goes.
//!
//! One answer of RDS proves nothing, and neither does an intention that was recorded. An instance counts as absent once
//! RDS has not listed it for the grace period and a second description, by another question, does not show it either.
//! The second description alone suffices if RDS has accepted the deletion and has shown the instance as `deleting`.

use aws_sdk_rds::types::DbInstance;
use lockstep_cloud_database_api::DeletionPolicy;

/// Second description of an instance, by another question.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SecondDescription {
    /// RDS does not list the instance.
    Absent,
    /// RDS lists the instance under its identifier: the first answer was wrong.
    Listed(Box<DbInstance>),
    /// RDS lists the instance under this identifier.
    Renamed(String),
}

/// Requests to RDS for an instance, as the status records them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requested {
    /// Nothing was ever requested: the status is complete, and has no location.
    Never,
    /// The status says nothing, and may have been erased.
    Unknown,
    /// The location was recorded, so that a creation or an adoption may have been requested.
    Located,
    /// RDS has listed the instance.
    Listed,
}

/// Progress of the deletion that the controller has requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Deletion {
    None,
    /// The intention is recorded. RDS may not have received the request.
    Recorded,
    /// RDS has accepted the request.
    Accepted,
    /// RDS has accepted the request, and has shown the instance as `deleting` since then.
    Deleting,
}

/// Evidence about an instance that one description does not list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence<'a> {
    pub(crate) requested: Requested,
    pub(crate) deletion: Deletion,
    pub(crate) policy: DeletionPolicy,
    /// If true, RDS has not listed the instance by its identifier for the grace period.
    pub(crate) is_grace_period_over: bool,
    /// Second description, if RDS was asked.
    pub(crate) second: Option<&'a SecondDescription>,
    /// If true, there is a final snapshot of this deletion. None if RDS was not asked.
    pub(crate) has_final_snapshot: Option<bool>,
}

/// Next step of the finalization.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Decision<'a> {
    /// RDS is asked for a second description.
    DescribeAgain,
    /// RDS is asked for the final snapshot.
    FindFinalSnapshot,
    /// RDS lists the instance, which is deleted.
    Listed(&'a DbInstance),
    /// RDS lists the instance under this identifier.
    Renamed(&'a str),
    /// Absence is not proven yet.
    Wait,
    /// Nothing is left: the object goes.
    Gone,
    /// Nothing is found, and nothing says whether there was an instance: the object goes, and an Event tells it.
    GoneUnrecorded,
    /// RDS has never listed the instance, and its creation may have been requested: the object goes, and an Event tells it.
    GoneUnlisted,
    /// The instance is absent, and there is no proof that the controller has deleted it.
    Missing,
}

/// Decides about the finalization of an object whose instance a description does not list.
pub(crate) fn decide<'a>(evidence: &Evidence<'a>) -> Decision<'a> {
    if evidence.requested == Requested::Never {
        return Decision::Gone;
    }
    match evidence.second {
        None => return Decision::DescribeAgain,
        Some(SecondDescription::Listed(instance)) => return Decision::Listed(instance),
        Some(SecondDescription::Renamed(now)) => return Decision::Renamed(now),
        Some(SecondDescription::Absent) => {}
    }
    if !evidence.is_grace_period_over && evidence.deletion != Deletion::Deleting {
        return Decision::Wait;
    }
    let without_proof = match evidence.requested {
        Requested::Never => return Decision::Gone,
        Requested::Located => return Decision::GoneUnlisted,
        Requested::Unknown => Decision::GoneUnrecorded,
        Requested::Listed => Decision::Missing,
    };
    let wants_snapshot = evidence.policy != DeletionPolicy::Delete;
    let is_requested = evidence.deletion != Deletion::None;
    match evidence.has_final_snapshot {
        // The user wanted the instance to be deleted with its data, and it is absent after the request.
        _ if is_requested && !wants_snapshot => Decision::Gone,
        None => Decision::FindFinalSnapshot,
        Some(true) => Decision::Gone,
        Some(false) => without_proof,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUESTED: [Requested; 4] = [
        Requested::Never,
        Requested::Unknown,
        Requested::Located,
        Requested::Listed,
    ];
    const DELETIONS: [Deletion; 4] = [
        Deletion::None,
        Deletion::Recorded,
        Deletion::Accepted,
        Deletion::Deleting,
    ];

    /// Calls a function with all evidence that there can be.
    fn for_all(check: impl Fn(&Evidence<'_>, Decision<'_>)) {
        let instance = Box::new(DbInstance::builder().build());
        let answers = [
            SecondDescription::Absent,
            SecondDescription::Listed(instance),
            SecondDescription::Renamed("orders-old".to_owned()),
        ];
        let seconds = answers.iter().map(Some).chain([None]);
        for second in seconds {
            for requested in REQUESTED {
                for deletion in DELETIONS {
                    for policy in [DeletionPolicy::Delete, DeletionPolicy::Snapshot] {
                        for is_grace_period_over in [false, true] {
                            for has_final_snapshot in [None, Some(false), Some(true)] {
                                let evidence = Evidence {
                                    requested,
                                    deletion,
                                    policy,
                                    is_grace_period_over,
                                    second,
                                    has_final_snapshot,
                                };
                                check(&evidence, decide(&evidence));
                            }
                        }
                    }
                }
            }
        }
    }

    fn is_end(decision: Decision<'_>) -> bool {
        matches!(
            decision,
            Decision::Gone | Decision::GoneUnrecorded | Decision::GoneUnlisted | Decision::Missing
        )
    }

    #[test]
    fn no_object_goes_before_the_absence_is_proven() {
        for_all(|evidence, decision| {
            if evidence.requested == Requested::Never {
                assert_eq!(decision, Decision::Gone, "{evidence:?}");
                return;
            }
            let is_absent = matches!(evidence.second, Some(SecondDescription::Absent));
            let is_long = evidence.is_grace_period_over || evidence.deletion == Deletion::Deleting;
            if is_end(decision) {
                assert!(is_absent && is_long, "{evidence:?} {decision:?}");
            }
            if is_absent && !is_long {
                assert_eq!(decision, Decision::Wait, "{evidence:?}");
            }
        });
    }

    #[test]
    fn what_is_listed_is_never_absent() {
        for_all(|evidence, decision| {
            let expected = match evidence.second {
                _ if evidence.requested == Requested::Never => return,
                Some(SecondDescription::Listed(instance)) => Decision::Listed(instance),
                Some(SecondDescription::Renamed(now)) => Decision::Renamed(now),
                Some(SecondDescription::Absent) => return,
                None => Decision::DescribeAgain,
            };
            assert_eq!(decision, expected, "{evidence:?}");
        });
    }

    #[test]
    fn a_listed_instance_goes_without_complaint_only_with_a_proof() {
        for_all(|evidence, decision| {
            let is_wanted =
                evidence.policy == DeletionPolicy::Delete && evidence.deletion != Deletion::None;
            let is_proven = is_wanted || evidence.has_final_snapshot == Some(true);
            match (evidence.requested, decision) {
                (Requested::Listed | Requested::Unknown, Decision::Gone) => {
                    assert!(is_proven, "{evidence:?}");
                }
                (Requested::Listed, Decision::Missing) => assert!(!is_proven, "{evidence:?}"),
                (_, Decision::Missing) => panic!("{evidence:?} was never listed"),
                (Requested::Unknown, Decision::GoneUnrecorded) => assert!(!is_proven),
                (_, Decision::GoneUnrecorded) => panic!("{evidence:?} is recorded"),
                (Requested::Located, Decision::Gone) => panic!("{evidence:?} is not told"),
                _ => {}
            }
        });
    }

    #[test]
    fn no_question_is_asked_twice() {
        for_all(|evidence, decision| match decision {
            Decision::DescribeAgain => assert!(evidence.second.is_none(), "{evidence:?}"),
            Decision::FindFinalSnapshot => {
                assert!(evidence.has_final_snapshot.is_none(), "{evidence:?}");
            }
            _ => {}
        });
    }
}
