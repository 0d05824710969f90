//! JSON objects of which unset fields are left out.

use serde_json::{Map, Value};

/// JSON object of which unset fields are left out: server-side apply would take the ownership of an empty field.
#[derive(Default)]
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Sets a field.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// Sets a field if it has a value.
    pub(crate) fn with_some(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Sets a field if the text is not empty: in the Kubernetes API, an empty text is an unset one.
    pub(crate) fn with_text(self, name: &str, text: Option<&str>) -> Self {
        self.with_some(name, text.filter(|text| !text.is_empty()))
    }

    /// Sets a field if the list is not empty.
    pub(crate) fn with_list<T: Into<Value>>(
        self,
        name: &str,
        items: impl IntoIterator<Item = T>,
    ) -> Self {
        let items: Vec<Value> = items.into_iter().map(Into::into).collect();
        if items.is_empty() {
            return self;
        }
        self.with(name, items)
    }
}

impl From<Fields> for Value {
    fn from(fields: Fields) -> Self {
        Self::Object(fields.0)
    }
}

impl From<Map<String, Value>> for Fields {
    fn from(fields: Map<String, Value>) -> Self {
        Self(fields)
    }
}
