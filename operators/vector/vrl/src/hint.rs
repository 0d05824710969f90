//! Hints of the VRL compiler: what its labels and notes say besides the message, each on one line.

use vrl::diagnostic::{Diagnostic, Note};

/// Beginnings of the notes that refer to documentation in general. They help with no particular error.
const GENERAL: [&str; 3] = ["see ", "learn more ", "try your code in the VRL REPL"];

/// Returns the hints of a diagnostic.
pub(crate) fn of(diagnostic: &Diagnostic) -> Vec<String> {
    let primary = diagnostic.labels.iter().position(|label| label.primary);
    let labels = diagnostic.labels.iter().enumerate();
    let labels = labels.filter(|(index, label)| {
        Some(*index) != primary && !label.message.is_empty() && label.message != diagnostic.message
    });
    let mut hints = Hints::default();
    for (_, label) in labels {
        hints.add(&label.message);
    }
    for note in &diagnostic.notes {
        match note {
            Note::Hint(text) => hints.add(text),
            Note::Example(code) => {
                hints.add("for example:");
                hints.add(code);
            }
            Note::Basic(text) => match text.strip_prefix("try: ") {
                // Lines of code follow.
                Some(title) => hints.add(&format!("{title}:")),
                None => hints.add(text),
            },
            Note::CoerceValue => {
                hints.add("coerce the value to the required type by a coercion function");
            }
            _ => {}
        }
    }
    hints.0
}

/// Returns true for a line of a formatted diagnostic that holds a general note or nothing.
pub(crate) fn is_general_note(line: &str) -> bool {
    let note = line.trim_start().strip_prefix('=').map(str::trim);
    note.is_some_and(|note| {
        note.is_empty() || GENERAL.iter().any(|beginning| note.starts_with(beginning))
    })
}

#[derive(Default)]
struct Hints(Vec<String>);

impl Hints {
    /// Adds a text. If the previous one announces it by a colon, it is code and becomes part of that one.
    fn add(&mut self, text: &str) {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if text.is_empty() {
            return;
        }
        match self.0.last_mut() {
            Some(last) if last.ends_with(':') => {
                last.push_str(" `");
                last.push_str(&text);
                last.push('`');
            }
            Some(_) => self.0.push(text),
            // An alternative to the message itself.
            None => self
                .0
                .push(text.strip_prefix("or ").unwrap_or(&text).to_owned()),
        }
    }
}
