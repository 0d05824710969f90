//! Requests to RDS, and the parts of them that it does not offer.

use rds_catalogue::MatchingVersions;
use serde_json::Value;

use crate::offers::ApplicableOffers;
use crate::spec::CloudDatabaseSpec;
use crate::status::CloudDatabaseStatus;

/// Something that RDS does not offer.
pub(super) struct NotOffered {
    pub(super) path: &'static str,
    pub(super) value: Value,
    /// Problem, which is followed by the name of the catalogue.
    pub(super) problem: String,
    /// Nearest offers, or another remedy.
    pub(super) alternatives: String,
    /// False if AWS may have begun to offer it after the catalogue was read.
    pub(super) is_certain: bool,
}

/// Request to RDS: a new instance, or a change.
pub(super) struct Request<'a> {
    pub(super) spec: &'a CloudDatabaseSpec,
    /// Spec before the change. None for a new instance.
    pub(super) old: Option<&'a CloudDatabaseSpec>,
    pub(super) status: Option<&'a CloudDatabaseStatus>,
    pub(super) offers: &'a ApplicableOffers<'a>,
}

impl<'a> Request<'a> {
    /// Returns the versions of the catalogue that the version of the spec stands for: all, if it has none.
    pub(super) fn versions(&self) -> Option<&'a MatchingVersions> {
        self.offers.versions(self.spec.engine_version.as_deref())
    }

    /// Returns true if the request is about a new instance, or if this part of the spec differs from the one before.
    pub(super) fn is_new(
        &self,
        is_equal: impl Fn(&CloudDatabaseSpec, &CloudDatabaseSpec) -> bool,
    ) -> bool {
        self.old.is_none_or(|old| !is_equal(old, self.spec))
    }

    /// Returns true if the class is that of a new instance or another one than before.
    pub(super) fn has_new_class(&self) -> bool {
        self.is_new(|old, new| old.instance_class == new.instance_class)
    }

    /// Returns true if the version is that of a new instance or another one than before.
    pub(super) fn has_new_version(&self) -> bool {
        self.is_new(|old, new| old.engine_version == new.engine_version)
    }
}
