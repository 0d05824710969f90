//! Values that are computed from a watched object and stored under its index keys.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Index keys of an object, and its value under them.
#[derive(Clone)]
pub(crate) struct IndexEntry {
    pub(crate) keys: BTreeSet<String>,
    pub(crate) value: Arc<dyn IndexValue>,
}

impl IndexEntry {
    pub(crate) fn new<T: PartialEq + Send + Sync + 'static>(keys: Vec<String>, value: T) -> Self {
        Self {
            keys: keys.into_iter().collect(),
            value: Arc::new(value),
        }
    }
}

/// Value of a type that the operator author chooses.
pub(crate) trait IndexValue: Send + Sync {
    fn is_equal_to(&self, other: &dyn IndexValue) -> bool;

    fn as_any(&self) -> &dyn Any;

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<T: PartialEq + Send + Sync + 'static> IndexValue for T {
    fn is_equal_to(&self, other: &dyn IndexValue) -> bool {
        other.as_any().downcast_ref() == Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}
