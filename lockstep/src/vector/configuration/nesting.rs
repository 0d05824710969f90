//! Depth of the lists and mappings in brackets of a YAML text, without parsing it.

/// Number of open brackets from which no text is parsed. The parser rejects far fewer, and is fast up to here.
const MAX_OPEN: usize = 1_000;

/// Position in a YAML text.
#[derive(Default)]
struct Scanner {
    open: usize,
    /// Quotation mark of the text that is read.
    quote: Option<char>,
}

/// Returns the line in which too many brackets are open.
///
/// Brackets in comments, in quotation marks and in block scalars do not count, nor those within a text.
pub(crate) fn too_deep(text: &str) -> Option<usize> {
    let mut scanner = Scanner::default();
    // Indentation of the line that begins the block scalar that is read.
    let mut scalar = None;
    for (index, line) in text.lines().enumerate() {
        let content = line.trim_start_matches(' ');
        let indentation = line.len() - content.len();
        if scalar.is_some_and(|outside| content.is_empty() || indentation > outside) {
            continue;
        }
        let is_inside = scanner.open > 0 || scanner.quote.is_some();
        scalar = (!is_inside && begins_block_scalar(content)).then_some(indentation);
        if scanner.read(content) {
            return Some(index + 1);
        }
    }
    None
}

impl Scanner {
    /// Reads a line. Returns true if too many brackets are open.
    fn read(&mut self, line: &str) -> bool {
        let mut is_escaped = false;
        // The last character, and the last one that is no space.
        let (mut before, mut last) = (' ', ',');
        for (at, character) in line.char_indices() {
            if let Some(mark) = self.quote {
                if is_escaped {
                    is_escaped = false;
                } else if character == mark {
                    self.quote = None;
                } else {
                    is_escaped = character == '\\' && mark == '"';
                }
            } else if character == '#' && is_space(before) {
                break;
            } else if self.begins_value(&line[..at], before, last) {
                match character {
                    '"' | '\'' => self.quote = Some(character),
                    '[' | '{' => self.open += 1,
                    ']' | '}' => self.open = self.open.saturating_sub(1),
                    _ => {}
                }
            } else if matches!(character, ']' | '}') {
                self.open = self.open.saturating_sub(1);
            }
            if self.open > MAX_OPEN {
                return true;
            }
            before = character;
            if !is_space(character) {
                last = character;
            }
        }
        false
    }

    /// Returns true if a value can begin behind a part of a line.
    fn begins_value(&self, part: &str, before: char, last: char) -> bool {
        if self.open > 0 && matches!(last, '[' | '{' | ',' | ':' | '?') {
            return is_space(before) || before == last;
        }
        let part = part.trim_end();
        let word = part.rsplit(is_space).next().unwrap_or_default();
        let is_property = word.starts_with(['!', '&']);
        let is_indicator =
            self.open == 0 && (word.ends_with(':') || matches!(word, "" | "-" | "?"));
        is_space(before) && (is_property || is_indicator)
    }
}

/// Returns true if a line ends with the indicator of a block scalar, such as `|` or `>2-`.
fn begins_block_scalar(line: &str) -> bool {
    let line = line.split(" #").next().unwrap_or_default();
    let word = line.trim_end().rsplit(is_space).next().unwrap_or_default();
    let modifiers = word.strip_prefix(['|', '>']);
    modifiers.is_some_and(|it| it.chars().all(|c| matches!(c, '+' | '-' | '1'..='9')))
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t')
}

#[cfg(test)]
mod tests {
    use super::{MAX_OPEN, too_deep};

    #[test]
    fn open_brackets_count_wherever_a_value_can_begin() {
        let many = MAX_OPEN + 1;
        for part in [
            "[", "{", "{a: ", "[a, ", "[ ", "[\n", "[!t ", "[&a ", "[{? ",
        ] {
            for before in ["", "a: ", "- ", "- a: ", "a: !t ", "&a "] {
                let text = format!("{before}{}", part.repeat(many));
                assert!(too_deep(&text).is_some(), "{before}{part}");
            }
        }
        assert_eq!(too_deep(&format!("a: 1\nb: {}", "[".repeat(many))), Some(2));
    }

    #[test]
    fn brackets_that_are_text_or_are_closed_do_not_count() {
        let many = "[".repeat(MAX_OPEN + 1);
        for text in [
            format!("a: x{many}"),
            format!("a: \"\\\"{many}\"\nb: '{many}'"),
            format!("# {many}\na: 1 # {many}"),
            format!("a: |\n  {many}\n\n  {many}\nb: >2-\n    {many}\n"),
            format!("- a: |+ # text\n    {many}\n"),
            "- [a, {b: ['c]', \"d]\"]}]\n".repeat(MAX_OPEN + 1),
            format!("a: [x{many}]"),
            "a: b[c\n".repeat(MAX_OPEN + 1),
            "a: it's [b\n".repeat(MAX_OPEN + 1),
            "a: [it's, b]\n".repeat(MAX_OPEN + 1),
        ] {
            assert_eq!(too_deep(&text), None, "{}", &text[..30]);
        }
    }
}
