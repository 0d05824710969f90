//! The fields of a mapping, with lookup by the beginning of a field path.

use std::cell::OnceCell;
use std::collections::HashMap;

use serde_saphyr::Spanned;

use crate::check::yaml::document::Node;

/// Number of fields from which names are looked up in a hash map instead of compared one by one.
const MANY: usize = 16;

type Entry = (Spanned<String>, Spanned<Node>);

/// A mapping, with its fields in the order of the text.
pub(crate) struct PathIndex {
    pub(crate) entries: Vec<Entry>,
    by_name: OnceCell<HashMap<String, usize>>,
}

impl PathIndex {
    pub(crate) fn of(entries: Vec<Entry>) -> Self {
        Self {
            entries,
            by_name: OnceCell::new(),
        }
    }

    /// Returns the field at the beginning of a path, written `name` or `[name]`, and the rest of the path. A name
    /// can contain dots; the longest name that matches is used.
    pub(crate) fn find<'p>(
        &self,
        path: &'p str,
    ) -> Option<(&Spanned<String>, &Spanned<Node>, &'p str)> {
        let ends = ends(path);
        // A path with so many possible ends contains a malicious name; trying each end would be slow.
        if self.entries.len() < MANY || ends.len() > MANY {
            let fits = self.entries.iter().filter_map(|(name, child)| {
                let rest = rest(path, &name.value)?;
                Some((name, child, rest))
            });
            return fits.min_by_key(|(_, _, rest)| rest.len());
        }
        let by_name = self.by_name.get_or_init(|| {
            let names = self.entries.iter().enumerate();
            names
                .map(|(index, (name, _))| (name.value.clone(), index))
                .collect()
        });
        let found = ends.into_iter().rev().find_map(|end| {
            let name = match path.strip_prefix('[') {
                Some(_) => path[1..end].strip_suffix(']')?,
                None => &path[..end],
            };
            Some((by_name.get(name)?, &path[end..]))
        });
        let (index, rest) = found?;
        let (name, child) = &self.entries[*index];
        Some((name, child, rest))
    }
}

/// Returns the positions where a name at the beginning of a path can end.
fn ends(path: &str) -> Vec<usize> {
    let inner = path.match_indices(['.', '[']).map(|(at, _)| at);
    inner.filter(|at| *at > 0).chain([path.len()]).collect()
}

/// Returns the rest of a path after a name, or `None` if the path does not begin with the name.
fn rest<'p>(path: &'p str, name: &str) -> Option<&'p str> {
    let bracketed = || {
        path.strip_prefix('[')?
            .strip_prefix(name)?
            .strip_prefix(']')
    };
    let rest = path.strip_prefix(name).or_else(bracketed)?;
    (rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
}
