//! Fields of an object that a schema lists.

/// Schemas of fields, by name, in the order of the names.
///
/// A schema is large and most objects have few fields: a tree would keep room for several schemas in each of its nodes.
pub(crate) struct Properties<S>(Box<[(String, S)]>);

impl<S> Properties<S> {
    pub(crate) fn get(&self, name: &str) -> Option<&S> {
        let at = self.0.binary_search_by(|(own, _)| own.as_str().cmp(name));
        at.ok().map(|at| &self.0[at].1)
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &S)> {
        self.0.iter().map(|(name, schema)| (name, schema))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.iter().map(|(name, _)| name)
    }

    pub(crate) fn schemas(&self) -> impl Iterator<Item = &S> {
        self.iter().map(|(_, schema)| schema)
    }
}

impl<S> Default for Properties<S> {
    fn default() -> Self {
        Self(Box::default())
    }
}

impl<S> FromIterator<(String, S)> for Properties<S> {
    fn from_iter<I: IntoIterator<Item = (String, S)>>(properties: I) -> Self {
        let mut properties: Vec<_> = properties.into_iter().collect();
        properties.sort_by(|(one, _), (other, _)| one.cmp(other));
        Self(properties.into())
    }
}
