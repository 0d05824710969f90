//! Caches that the watches fill.

use crate::cache::related::RelatedCache;
use crate::cache::store::Store;
use crate::controller::context::Context;

/// Caches that the watches fill.
pub(crate) struct Stores {
    pub(crate) parents: Store,
    /// One for each type of children.
    pub(crate) children: Vec<Store>,
    pub(crate) related: Vec<RelatedCache>,
}

impl Stores {
    pub(crate) fn of<R>(context: &Context<R>) -> Self {
        let parents = context.written.objects.delivered().clone();
        let related = context.watches.iter().map(|watch| {
            if watch.watches_all_of(&context.resource) {
                RelatedCache::of(&parents)
            } else {
                RelatedCache::default()
            }
        });
        let children = (0..context.owned_types.len())
            .map(|type_| Store::with_dictionary(context.written.children.dictionary(type_)));
        Self {
            children: children.collect(),
            related: related.collect(),
            parents,
        }
    }
}
