//! Values that the user may lack the right to read.

use serde::Serialize;

/// Value from the cluster, or the reason for which it is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum Visible<T> {
    Known(T),
    Unknown { unknown: String },
}

impl<T> Visible<T> {
    /// Turns a missing right into an unknown value.
    ///
    /// # Errors
    ///
    /// The request failed for another reason.
    pub(crate) fn of(result: Result<T, kube::Error>) -> Result<Self, kube::Error> {
        match result {
            Ok(value) => Ok(Self::Known(value)),
            Err(kube::Error::Api(status)) if status.code == 403 => Ok(Self::forbidden()),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn forbidden() -> Self {
        Self::because("forbidden")
    }

    pub(crate) fn because(reason: &str) -> Self {
        Self::Unknown {
            unknown: reason.to_owned(),
        }
    }

    pub(crate) fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown { .. } => None,
        }
    }

    pub(crate) fn map<U>(self, f: impl FnOnce(T) -> U) -> Visible<U> {
        match self {
            Self::Known(value) => Visible::Known(f(value)),
            Self::Unknown { unknown } => Visible::Unknown { unknown },
        }
    }

    /// Returns the value as text, or that it is unknown.
    pub(crate) fn text(&self, show: impl FnOnce(&T) -> String) -> String {
        match self {
            Self::Known(value) => show(value),
            Self::Unknown { unknown } => format!("unknown ({unknown})"),
        }
    }
}
