//! Objects as the watches last reported them, found by key, by index and by reference.

pub(crate) mod bidirectional_map;
pub(crate) mod capacity;
pub(crate) mod counted_set;
pub(crate) mod index_entry;
pub(crate) mod object_key;
pub(crate) mod reference_index;
pub(crate) mod related;
pub(crate) mod store;
pub(crate) mod write_through;
