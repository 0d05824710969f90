//! Values that are computed from a watched object and stored under its index keys.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Index keys of an object, and its value under them.
#[derive(Clone)]
pub(crate) struct Filed {
    pub(crate) keys: BTreeSet<String>,
    pub(crate) told: Arc<dyn Tellable>,
}

impl Filed {
    pub(crate) fn under<T: PartialEq + Send + Sync + 'static>(keys: Vec<String>, told: T) -> Self {
        Self {
            keys: keys.into_iter().collect(),
            told: Arc::new(told),
        }
    }
}

/// Value of a type that the operator author chooses.
pub(crate) trait Tellable: Send + Sync {
    fn says_the_same_as(&self, other: &dyn Tellable) -> bool;

    fn as_any(&self) -> &dyn Any;

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<T: PartialEq + Send + Sync + 'static> Tellable for T {
    fn says_the_same_as(&self, other: &dyn Tellable) -> bool {
        other.as_any().downcast_ref() == Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}
