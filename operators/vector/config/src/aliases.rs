//! Options with two names, of which only one may be set.

use jsonschema::paths::{LazyLocation, Location};
use jsonschema::{Keyword, ValidationError};
use serde_json::Value;

/// Aliases of the options of an object.
pub(crate) struct Aliases(Vec<(String, String)>);

impl Aliases {
    /// Reads the aliases from the catalogue, each with the name that it can replace.
    pub(crate) fn of(aliases: &Value) -> Self {
        let aliases = aliases.as_object().into_iter().flatten();
        let pairs =
            aliases.filter_map(|(alias, name)| Some((alias.clone(), name.as_str()?.to_owned())));
        Self(pairs.collect())
    }

    /// Returns an alias if both it and its name are set.
    fn twice(&self, value: &Value) -> Option<&(String, String)> {
        let fields = value.as_object()?;
        let mut pairs = self.0.iter();
        pairs.find(|(alias, name)| fields.contains_key(alias) && fields.contains_key(name))
    }
}

impl Keyword for Aliases {
    fn validate<'i>(
        &self,
        value: &'i Value,
        location: &LazyLocation,
    ) -> Result<(), ValidationError<'i>> {
        let Some((alias, name)) = self.twice(value) else {
            return Ok(());
        };
        Err(ValidationError::custom(
            Location::new(),
            location.into(),
            value,
            format!("`{alias}` is another name of `{name}`, which is also set; remove one of them"),
        ))
    }

    fn is_valid(&self, value: &Value) -> bool {
        self.twice(value).is_none()
    }
}
