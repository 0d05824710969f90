//! Event types: logs, metrics and traces.

use serde::{Deserialize, Deserializer};

/// Set of event types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataType(u8);

impl DataType {
    pub(crate) const LOG: Self = Self(1);
    pub(crate) const METRIC: Self = Self(2);
    pub(crate) const TRACE: Self = Self(4);
    pub(crate) const ALL: Self = Self(7);

    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the types in words, such as `logs` or `logs and metrics`.
    pub(crate) fn words(self) -> String {
        let all = [
            (Self::LOG, "logs"),
            (Self::METRIC, "metrics"),
            (Self::TRACE, "traces"),
        ];
        let own = all
            .into_iter()
            .filter(|(one, _)| !self.and(*one).is_empty());
        let own: Vec<_> = own.map(|(_, word)| word).collect();
        match own.as_slice() {
            [] => "nothing".to_owned(),
            [one] => (*one).to_owned(),
            [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
        }
    }
}

impl<'de> Deserialize<'de> for DataType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Name {
            Log,
            Metric,
            Trace,
        }
        let names = Vec::<Name>::deserialize(deserializer)?;
        let types = names.into_iter().map(|name| match name {
            Name::Log => Self::LOG,
            Name::Metric => Self::METRIC,
            Name::Trace => Self::TRACE,
        });
        Ok(types.fold(Self::default(), Self::or))
    }
}
