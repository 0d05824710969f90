//! Faults that are planted into variants of the operator.

/// Mistake of an operator's author.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// None: the variant is as correct as the operator.
    Correct,
    /// Finds its record only by the id in the status: after a creation without an answer there is a second one.
    KnowsOnlyTheIdInTheStatus,
    /// Finds its record only by the id in its memory.
    KnowsOnlyTheIdInMemory,
    /// Repeats a creation without an answer at once, without looking whether it was executed.
    RepeatsCreationBlindly,
    /// Creates the record first and marks whose it is afterwards.
    MarksOwnerAfterCreation,
    /// Creates without being the leader, for an object that may not exist any more.
    CreatesWithoutLeadership,
    /// Replaces a record without being the leader and without the version that it has read.
    OverwritesAsFormerLeader,
    /// Marks its records with the name of the object, not with its UID.
    MarksWithNameInsteadOfUid,
    /// Takes over the record of another owner.
    AdoptsForeignRecord,
    /// Does not see the record of another owner, and creates a second one.
    IgnoresForeignRecord,
    /// Remembers for ever that a name is taken.
    RemembersTakenNames,
    /// Says that it is ready although the name is taken.
    ReadyDespiteTakenName,
    /// Never changes a record that exists.
    IgnoresSpecChanges,
    /// Changes the time to live and forgets the values.
    UpdatesPartially,
    /// Writes the spec back as it has read it.
    WritesSpecBack,
    /// Forgets the label on updates.
    LosesLabel,
    /// Does nothing if the status says that this generation is ready.
    TrustsItsStatus,
    /// Reads the record once, and keeps it in memory.
    CachesActualState,
    /// Treats any error of a read as if there were no record.
    TakesErrorForAbsence,
    /// Ignores errors of updates.
    SwallowsUpdateErrors,
    /// Treats every error as permanent.
    NeverRetries,
    /// Takes a gateway time-out for success.
    TakesTimeoutForSuccess,
    /// Panics on a server error.
    PanicsOnServerError,
    /// Panics if the status has no id.
    PanicsWithoutStatus,
    /// Repeats a failed call until it succeeds.
    RetriesWithoutBound,
    /// Asks for the next attempt without a delay.
    RetriesWithoutBackoff,
    /// Asks for the next reconciliation after a moment, also in the desired state.
    RequeuesForEver,
    /// Leaves the record with the former name.
    LeavesOldName,
    /// Deletes the record with the new name instead of that with the former one.
    DeletesWrongRecordAfterRename,
    /// Deletes nothing with its object.
    IgnoresDeletion,
    /// Has no finalizer.
    HasNoFinalizer,
    /// Lets its object go although the deletion has failed.
    RemovesFinalizerOnError,
    /// Takes a failed read for the absence of its records, and lets its object go.
    TakesErrorForAbsenceOnDeletion,
    /// Fails if the record to delete does not exist.
    NeedsRecordToDelete,
    /// Deletes whatever has the name in the spec.
    DeletesByName,
    /// Deletes only if the object was ready.
    DeletesOnlyIfReady,
    /// Never finishes a deletion.
    NeverFinishesDeletion,
    /// Adds a second finalizer and forgets it.
    LeavesSecondFinalizer,
    /// Keeps the object of the current reconciliation in a field that all reconciliations share.
    SharesMutableState,
    /// Changes the record in the background and reports success at once.
    WritesInBackground,
    /// Has a value in its owned object that changes each time.
    HasUnstableOwnedObject,
    /// Creates its owned object without an owner reference.
    ForgetsOwnerReference,
    /// Does not watch its owned object.
    DoesNotWatchOwnedObject,
    /// Makes its owned object from the status, which is older.
    MakesOwnedObjectFromStatus,
    /// Writes its record each time.
    UpdatesEachTime,
    /// Has a status field that changes each time.
    HasUnstableStatus,
    /// Writes its status only once.
    WritesStatusOnce,
    /// Publishes an Event each time.
    PublishesEventEachTime,
    /// Says that it is ready before it is.
    ReportsReadyTooEarly,
    /// Reports the previous generation.
    ReportsWrongGeneration,
    /// Has the token of the API in its status.
    ReportsToken,
}

/// All faults.
pub const ALL: [Fault; 50] = [
    Fault::KnowsOnlyTheIdInTheStatus,
    Fault::KnowsOnlyTheIdInMemory,
    Fault::RepeatsCreationBlindly,
    Fault::MarksOwnerAfterCreation,
    Fault::CreatesWithoutLeadership,
    Fault::OverwritesAsFormerLeader,
    Fault::MarksWithNameInsteadOfUid,
    Fault::AdoptsForeignRecord,
    Fault::IgnoresForeignRecord,
    Fault::RemembersTakenNames,
    Fault::ReadyDespiteTakenName,
    Fault::IgnoresSpecChanges,
    Fault::UpdatesPartially,
    Fault::WritesSpecBack,
    Fault::LosesLabel,
    Fault::TrustsItsStatus,
    Fault::CachesActualState,
    Fault::TakesErrorForAbsence,
    Fault::SwallowsUpdateErrors,
    Fault::NeverRetries,
    Fault::TakesTimeoutForSuccess,
    Fault::PanicsOnServerError,
    Fault::PanicsWithoutStatus,
    Fault::RetriesWithoutBound,
    Fault::RetriesWithoutBackoff,
    Fault::RequeuesForEver,
    Fault::LeavesOldName,
    Fault::DeletesWrongRecordAfterRename,
    Fault::IgnoresDeletion,
    Fault::HasNoFinalizer,
    Fault::RemovesFinalizerOnError,
    Fault::TakesErrorForAbsenceOnDeletion,
    Fault::NeedsRecordToDelete,
    Fault::DeletesByName,
    Fault::DeletesOnlyIfReady,
    Fault::NeverFinishesDeletion,
    Fault::LeavesSecondFinalizer,
    Fault::SharesMutableState,
    Fault::WritesInBackground,
    Fault::HasUnstableOwnedObject,
    Fault::ForgetsOwnerReference,
    Fault::DoesNotWatchOwnedObject,
    Fault::MakesOwnedObjectFromStatus,
    Fault::UpdatesEachTime,
    Fault::HasUnstableStatus,
    Fault::WritesStatusOnce,
    Fault::PublishesEventEachTime,
    Fault::ReportsReadyTooEarly,
    Fault::ReportsWrongGeneration,
    Fault::ReportsToken,
];
