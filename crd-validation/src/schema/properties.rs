//! Fields of an object that a schema lists.

use crate::schema::Schema;

/// Schemas of fields, by name, in the order of the names.
///
/// A schema is large and most objects have few fields: a tree would keep room for several schemas in each of its nodes.
#[derive(Default)]
pub(crate) struct Properties(Box<[(String, Schema)]>);

impl Properties {
    pub(crate) fn get(&self, name: &str) -> Option<&Schema> {
        let at = self.0.binary_search_by(|(own, _)| own.as_str().cmp(name));
        at.ok().map(|at| &self.0[at].1)
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &Schema)> {
        self.0.iter().map(|(name, schema)| (name, schema))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.iter().map(|(name, _)| name)
    }

    pub(crate) fn schemas(&self) -> impl Iterator<Item = &Schema> {
        self.iter().map(|(_, schema)| schema)
    }
}

impl FromIterator<(String, Schema)> for Properties {
    fn from_iter<I: IntoIterator<Item = (String, Schema)>>(properties: I) -> Self {
        let mut properties: Vec<_> = properties.into_iter().collect();
        properties.sort_by(|(one, _), (other, _)| one.cmp(other));
        Self(properties.into())
    }
}
