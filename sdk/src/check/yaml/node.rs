//! A YAML value with the source location of each value in it, and lookup by field path.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::rc::Rc;

use serde_json::{Map, Value};

/// Range in a text where something is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    /// First byte.
    pub(crate) start: usize,
    /// End, in bytes.
    pub(crate) end: usize,
    /// Line of the first byte, which begins with 1.
    pub(crate) line: u64,
}

/// A value and where it is written. An alias is written in another place than the value that it shares with its anchor.
#[derive(Clone)]
pub(crate) struct Located {
    pub(crate) node: Rc<Node>,
    pub(crate) at: Span,
}

/// A YAML value.
pub(crate) enum Node {
    Scalar(Value),
    List(Vec<Located>),
    Map(PathIndex),
}

impl Node {
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Self::Scalar(value) => value.clone(),
            Self::List(items) => items.iter().map(|item| item.node.to_value()).collect(),
            Self::Map(fields) => {
                let fields = fields
                    .entries
                    .iter()
                    .map(|entry| (entry.name.clone(), entry.value.node.to_value()));
                Value::Object(fields.collect::<Map<_, _>>())
            }
        }
    }
}

/// Number of fields from which names are looked up in a hash map instead of compared one by one.
const MANY: usize = 16;

/// Field of a mapping.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// Place of the name.
    pub(crate) at: Span,
    pub(crate) value: Located,
}

/// A mapping, with its fields in the order of the text.
pub(crate) struct PathIndex {
    pub(crate) entries: Vec<Entry>,
    by_name: OnceCell<HashMap<String, usize>>,
}

impl PathIndex {
    pub(crate) fn new(entries: Vec<Entry>) -> Self {
        Self {
            entries,
            by_name: OnceCell::new(),
        }
    }

    /// Returns the field at the beginning of a path, written `name` or `[name]`, and the rest of the path. A name
    /// can contain dots; the longest name that matches is used.
    pub(crate) fn find<'p>(&self, path: &'p str) -> Option<(&Entry, &'p str)> {
        let ends = ends(path);
        // A path with so many possible ends contains a malicious name; trying each end would be slow.
        if self.entries.len() < MANY || ends.len() > MANY {
            let fits = self.entries.iter().filter_map(|entry| {
                let rest = rest(path, &entry.name)?;
                Some((entry, rest))
            });
            return fits.min_by_key(|(_, rest)| rest.len());
        }
        let by_name = self.by_name.get_or_init(|| {
            let names = self.entries.iter().enumerate();
            names
                .map(|(index, entry)| (entry.name.clone(), index))
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
        Some((&self.entries[*index], rest))
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
