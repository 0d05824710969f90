//! Statements of Lua 5.4 that the parser does not know: an empty one, and `break` before others. They are replaced by
//! text of the same length, so that positions in the program stay the same.

use std::borrow::Cow;
use std::collections::BTreeSet;

use full_moon::tokenizer::{Symbol, Token, TokenType};

/// Statement in the place of a `break`.
const CALL: &str = "_()  ";

/// Program without these statements.
pub(crate) struct Rewritten<'a> {
    pub(crate) text: Cow<'a, str>,
    /// Positions of the calls in the place of a `break`.
    pub(crate) breaks: BTreeSet<usize>,
}

/// Returns a program without these statements.
pub(crate) fn rewritten<'a>(text: &'a str, tokens: &[Token]) -> Rewritten<'a> {
    let mut rewritten = Cow::Borrowed(text);
    let mut breaks = BTreeSet::new();
    let mut replace = |token: &Token, by: &str| {
        let at = token.start_position().bytes();
        let range = at..at + by.len();
        if text.is_char_boundary(range.start) && text.is_char_boundary(range.end) {
            rewritten.to_mut().replace_range(range, by);
        }
    };
    let tokens: Vec<_> = tokens.iter().filter(|token| !is_trivia(token)).collect();
    // True for each table that is open, false for each block.
    let mut open = Vec::new();
    let mut before = None;
    for (index, token) in tokens.iter().enumerate() {
        let Some(symbol) = symbol(token) else {
            before = None;
            continue;
        };
        let mut following = tokens[index + 1..].iter().copied();
        match symbol {
            Symbol::LeftBrace => open.push(true),
            Symbol::Function | Symbol::If | Symbol::Do | Symbol::Repeat => open.push(false),
            Symbol::RightBrace | Symbol::End | Symbol::Until => {
                open.pop();
            }
            Symbol::Semicolon if open.last() != Some(&true) => {
                let next = following.next().and_then(self::symbol);
                // A bracket after a value would call it.
                if next != Some(Symbol::LeftParen) || is_statement_start(before) {
                    replace(token, " ");
                    continue;
                }
            }
            Symbol::Break => {
                let next = following.find(|token| self::symbol(token) != Some(Symbol::Semicolon));
                if next.is_some_and(|next| !ends_block(next)) {
                    replace(token, CALL);
                    breaks.insert(token.start_position().bytes());
                }
            }
            _ => {}
        }
        before = Some(symbol);
    }
    Rewritten {
        text: rewritten,
        breaks,
    }
}

fn is_trivia(token: &Token) -> bool {
    matches!(
        token.token_type(),
        TokenType::Whitespace { .. }
            | TokenType::SingleLineComment { .. }
            | TokenType::MultiLineComment { .. }
            | TokenType::Shebang { .. }
    )
}

fn symbol(token: &Token) -> Option<Symbol> {
    match token.token_type() {
        TokenType::Symbol { symbol } => Some(*symbol),
        _ => None,
    }
}

/// Returns true if a statement begins behind a symbol.
fn is_statement_start(symbol: Option<Symbol>) -> bool {
    matches!(
        symbol,
        Some(Symbol::Do | Symbol::Then | Symbol::Else | Symbol::Repeat | Symbol::Semicolon)
    )
}

fn ends_block(token: &Token) -> bool {
    let ends = matches!(
        symbol(token),
        Some(Symbol::End | Symbol::Else | Symbol::ElseIf | Symbol::Until)
    );
    ends || matches!(token.token_type(), TokenType::Eof)
}

#[cfg(test)]
mod tests {
    use full_moon::LuaVersion;
    use full_moon::tokenizer::{Lexer, LexerResult};

    use super::rewritten;

    #[test]
    fn only_what_the_parser_does_not_know_is_replaced() {
        for (text, expected) in [
            (";;x = 1;; y = 2;", "  x = 1   y = 2 "),
            ("x = 1; (f)()", "x = 1; (f)()"),
            ("if x then ; (f)() end", "if x then   (f)() end"),
            (
                "x = {1; 2; function () ; end; 3}",
                "x = {1; 2; function ()   end; 3}",
            ),
            ("while x do break f() end", "while x do _()   f() end"),
            ("while x do break; end", "while x do break  end"),
            ("-- ;\nx = ';'", "-- ;\nx = ';'"),
        ] {
            let LexerResult::Ok(tokens) = Lexer::new(text, LuaVersion::lua54()).collect() else {
                panic!("{text}");
            };
            assert_eq!(rewritten(text, &tokens).text, expected);
        }
    }
}
