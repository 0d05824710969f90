//! Options that have two names, of which one may stand there.

use jsonschema::paths::{LazyLocation, Location};
use jsonschema::{Keyword, ValidationError};
use serde_json::Value;

/// Other names of the options of an object.
pub(crate) struct Aliases(Vec<(String, String)>);

impl Aliases {
    /// As the catalogue has them: each with the name in whose place it may stand.
    pub(crate) fn of(aliases: &Value) -> Self {
        let aliases = aliases.as_object().into_iter().flatten();
        let pairs =
            aliases.filter_map(|(alias, name)| Some((alias.clone(), name.as_str()?.to_owned())));
        Self(pairs.collect())
    }

    /// One that stands there under both.
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
            format!("`{alias}` is another name of `{name}`, which is there as well"),
        ))
    }

    fn is_valid(&self, value: &Value) -> bool {
        self.twice(value).is_none()
    }
}
