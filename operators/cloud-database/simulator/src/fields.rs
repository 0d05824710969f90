//! Named values: parameters of a request, or members of a result.

use serde_json::{Map, Value};

/// Named values with typed access.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fields(Map<String, Value>);

impl Fields {
    /// Returns the text of a field, or an empty one if it is not set.
    pub fn text(&self, name: &str) -> &str {
        self.given_text(name).unwrap_or_default()
    }

    /// Returns the text of a field, if it is set.
    pub fn given_text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    /// Returns the number in a field, if it is set.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.0.get(name)?.as_i64()
    }

    /// Returns the truth value of a field, if it is set.
    pub fn given_flag(&self, name: &str) -> Option<bool> {
        self.0.get(name)?.as_bool()
    }

    /// Returns true if a field is set to true.
    pub fn flag(&self, name: &str) -> bool {
        self.given_flag(name) == Some(true)
    }

    /// Returns the texts of a list, or none if it is not set.
    pub fn texts(&self, name: &str) -> Vec<&str> {
        let list = self.0.get(name).and_then(Value::as_array);
        let list = list.into_iter().flatten();
        list.filter_map(Value::as_str).collect()
    }

    /// Returns the value of a field, if it is set.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Returns true if a field is set.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns true if no field is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the names of all fields.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Sets a field.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Sets a field, or removes it if there is no value.
    pub fn put(&mut self, name: &str, value: Option<impl Into<Value>>) {
        match value {
            Some(value) => self.set(name, value),
            None => drop(self.0.remove(name)),
        }
    }

    /// Sets a field that is not set yet.
    pub fn set_default(&mut self, name: &str, value: impl Into<Value>) {
        if !self.has(name) {
            self.set(name, value);
        }
    }

    /// Removes a field and returns its value.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name)
    }

    /// Sets all fields of another value.
    pub fn overlay(&mut self, other: &Self) {
        let others = other.0.iter();
        self.0
            .extend(others.map(|(name, value)| (name.clone(), value.clone())));
    }

    /// Moves the fields with some names out of this value.
    pub fn split_off(&mut self, names: &[&str]) -> Self {
        let moved = names.iter();
        let moved = moved.filter_map(|name| Some(((*name).to_owned(), self.0.remove(*name)?)));
        Self(moved.collect())
    }

    /// Returns the fields with some names.
    pub fn only(&self, names: &[&str]) -> Self {
        self.clone().split_off(names)
    }
}

impl From<Map<String, Value>> for Fields {
    fn from(fields: Map<String, Value>) -> Self {
        Self(fields)
    }
}

impl From<Fields> for Value {
    fn from(fields: Fields) -> Self {
        Self::Object(fields.0)
    }
}
