//! Mistake in a Lua program.

use full_moon::tokenizer::Position;

/// Reason why Lua does not compile a program.
pub(crate) struct Mistake {
    pub(crate) place: Option<Position>,
    pub(crate) message: String,
}

impl Mistake {
    pub(crate) fn at(place: Position, message: impl Into<String>) -> Self {
        Self {
            place: Some(place),
            message: message.into(),
        }
    }
}
