//! Maximum lengths of the parts of a response, in bytes of JSON. They apply while the response is built.

use lockstep_shared_validation::AND_MORE;

/// Maximum length of the message of a denial.
pub(crate) const MESSAGE_BYTES: usize = 64 << 10;

/// Maximum length of all causes of a denial.
pub(crate) const CAUSES_BYTES: usize = 96 << 10;

/// Maximum length of all warnings.
pub(crate) const WARNINGS_BYTES: usize = 48 << 10;

/// Maximum length of the audit annotation.
pub(crate) const ANNOTATION_BYTES: usize = 32 << 10;

/// Room for texts in a part of a response.
pub(crate) struct Room {
    left: usize,
}

impl Room {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { left: bytes }
    }

    /// Takes the room for some texts, if there is enough for all of them and for [`AND_MORE`].
    pub(crate) fn take(&mut self, texts: &[&str]) -> bool {
        /// Quotes, names and punctuation around a text.
        const AROUND: usize = 64;
        let needed: usize = texts.iter().map(|text| json_length(text) + AROUND).sum();
        let is_enough = needed + AND_MORE.len() + AROUND <= self.left;
        if is_enough {
            self.left -= needed;
        }
        is_enough
    }
}

/// Returns a text, or the beginning of a long one, with [`AND_MORE`] in place of the rest.
pub(crate) fn shortened(text: &str, max: usize) -> String {
    if json_length(text) <= max {
        return text.to_owned();
    }
    let end = format!("…, {AND_MORE}");
    let mut length = end.len();
    let fits = text.chars().take_while(|c| {
        length += json_length_of(*c);
        length <= max
    });
    let mut start: String = fits.collect();
    start.push_str(&end);
    start
}

fn json_length(text: &str) -> usize {
    text.chars().map(json_length_of).sum()
}

fn json_length_of(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\u{0}'..='\u{1f}' => 6,
        c => c.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_json() {
        let text = "a\"\\\u{1}\u{8}\n\t\u{7f}é😀";
        let json = serde_json::to_string(text).expect("JSON");
        assert_eq!(json_length(text), json.len() - r#""""#.len());
        let long = "\u{1}".repeat(100);
        let short = shortened(&long, 300);
        assert!(json_length(&short) <= 300, "{short}");
        assert!(short.ends_with("\u{1}…, and more, which are not shown"));
        assert_eq!(shortened("a", 300), "a");
    }

    #[test]
    fn there_is_room_until_it_is_taken() {
        let mut room = Room::new(400);
        assert!(room.take(&["a", "b"]));
        assert!(!room.take(&[&"c".repeat(200)]));
        assert!(room.take(&["d"]), "a shorter text fits");
    }
}
