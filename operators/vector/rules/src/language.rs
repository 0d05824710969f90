//! What the programs of a configuration can refer to.

use std::collections::BTreeSet;

/// What is there for programs besides the event.
#[derive(Clone, Debug, Default)]
pub struct Language {
    /// The names of the enrichment tables.
    pub(crate) tables: Vec<String>,
    /// Functions that may not be called.
    pub denied: BTreeSet<String>,
}
