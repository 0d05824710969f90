//! Layout: the options of a workload that decide the names of its components, and so of Vector's data.

use std::fmt;
use std::str::FromStr;

use lockstep_vector_api::ComponentNames;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::part::PipelinePart;

/// Options of a workload that decide the names of its components.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct DataLayout {
    /// Format of the names.
    pub component_names: ComponentNames,
    /// If true, sources that differ only in their namespace are one source.
    pub merge_sources: bool,
}

impl DataLayout {
    /// Returns the layout in which parts were published. None if they do not tell.
    #[must_use]
    pub fn of_parts<'p>(parts: impl Iterator<Item = &'p PipelinePart>) -> Option<Self> {
        let mut names = None;
        let mut merge_sources = false;
        for part in parts {
            names = names.or_else(|| part.component_names());
            merge_sources |= !part.merged_sources.is_empty();
        }
        Some(Self {
            component_names: names?,
            merge_sources,
        })
    }
}

impl fmt::Display for DataLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.component_names {
            ComponentNames::Underscores => "underscores",
            ComponentNames::Dashes => "dashes",
        })?;
        f.write_str(if self.merge_sources { "-merged" } else { "" })
    }
}

impl From<DataLayout> for String {
    fn from(layout: DataLayout) -> Self {
        layout.to_string()
    }
}

impl TryFrom<String> for DataLayout {
    type Error = UnknownLayout;

    fn try_from(text: String) -> Result<Self, UnknownLayout> {
        text.parse()
    }
}

/// Reason why a text is no layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("it is no layout of component names")]
pub struct UnknownLayout;

impl FromStr for DataLayout {
    type Err = UnknownLayout;

    fn from_str(text: &str) -> Result<Self, UnknownLayout> {
        let (names, merge_sources) = match text.strip_suffix("-merged") {
            Some(names) => (names, true),
            None => (text, false),
        };
        let component_names = match names {
            "underscores" => ComponentNames::Underscores,
            "dashes" => ComponentNames::Dashes,
            _ => return Err(UnknownLayout),
        };
        Ok(Self {
            component_names,
            merge_sources,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_is_read_as_it_is_written() {
        for component_names in [ComponentNames::Underscores, ComponentNames::Dashes] {
            for merge_sources in [false, true] {
                let layout = DataLayout {
                    component_names,
                    merge_sources,
                };
                assert_eq!(layout.to_string().parse(), Ok(layout));
            }
        }
        assert_eq!("opt".parse::<DataLayout>(), Err(UnknownLayout));
    }
}
