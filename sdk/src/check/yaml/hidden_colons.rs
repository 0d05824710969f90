//! Colons at the end of plain scalars in flow collections, such as `[fd00::, 10.0.0.1]`.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::check::yaml::node::Span;

/// Maximum number of bytes that are read again: a text is read once more for each colon.
const MAX_READ_BYTES: usize = 256 << 20;

/// Returns true for libyaml's error about such a colon. Only its text says so.
pub(crate) fn is_about_a_colon(error: &libyaml_safer::Error) -> bool {
    error.problem() == "found unexpected ':'"
}

/// Text in which letters stand for colons that libyaml does not accept and `kubectl` does: its library is of an earlier version
/// of libyaml. Each is the last character of its scalar.
pub(crate) struct HiddenColons<'a> {
    text: Cow<'a, [u8]>,
    at: HashSet<usize>,
}

impl<'a> HiddenColons<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text: text.as_bytes().into(),
            at: HashSet::new(),
        }
    }

    /// Returns the text for libyaml.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Hides a colon. Returns false if there is none, or one that does not end a scalar.
    pub(crate) fn hide(&mut self, at: usize) -> bool {
        let is_last = matches!(
            self.text.get(at + 1),
            Some(b',' | b'[' | b']' | b'{' | b'}')
        );
        let is_read_too_often = self.at.len() * self.text.len() > MAX_READ_BYTES;
        if self.text.get(at) != Some(&b':') || !is_last || is_read_too_often {
            return false;
        }
        self.text.to_mut()[at] = b'x';
        self.at.insert(at)
    }

    /// Returns the value of a scalar.
    pub(crate) fn restored(&self, mut value: String, at: Span) -> String {
        if at.start < at.end && self.at.contains(&(at.end - 1)) {
            value.pop();
            value.push(':');
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::check::yaml::document::read_all;

    #[test]
    fn a_plain_scalar_of_a_flow_collection_may_end_in_a_colon() {
        let addresses = vec!["fd00::"; 500];
        let text = format!("a: [{}]\n", addresses.join(", "));
        let documents = read_all(&text).expect("a document");
        assert_eq!(documents[0].to_value(), json!({"a": addresses}));
    }
}
