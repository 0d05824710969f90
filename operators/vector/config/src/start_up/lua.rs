//! Programs of the transform `lua`.

mod literals;
mod mistake;
mod rewritten;
mod scopes;

use full_moon::ast::{Ast, Expression, LastStmt};
use full_moon::tokenizer::{Lexer, LexerResult, Symbol, Token, TokenType};
use full_moon::{LuaVersion, parse_fallible};
use lockstep_shared_validation::FieldPath;
use serde_json::Value;

use crate::component::ComponentKind;
use crate::diagnostic::DiagnosticList;
use crate::start_up::component_options::{ComponentOptions, refuse};
use crate::start_up::lua::mistake::Mistake;

/// Maximum number of blocks, brackets and operators that contain each other. A program with more is not validated: the
/// parser calls itself for each of them.
const MAX_DEPTH: usize = 200;

/// Stack of the parser in bytes, for programs of the maximum depth.
const STACK_BYTES: usize = 64 * 1024 * 1024;

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    if !options.is(ComponentKind::Transform, "lua") {
        return;
    }
    let source = options.text("source");
    let is_first_version =
        options.equals("version", "1") || (!options.has("version") && source.is_some());
    if let Some((path, text)) = source {
        // Version 2 evaluates the text, first as an expression.
        let is_expression = !is_first_version && matches!(expression(text), Parsed::Valid(_));
        if !is_expression && let Parsed::Invalid(error) = parse(text) {
            refuse(path, text, error, problems);
        }
    }
    if is_first_version {
        return;
    }
    for hook in ["hooks.init", "hooks.process", "hooks.shutdown"] {
        if let Some((path, text)) = options.text(hook) {
            function(path, text, problems);
        }
    }
    let timers = options.get("timers");
    let list = timers.as_ref().and_then(|found| found.value.as_array());
    for (index, timer) in list.into_iter().flatten().enumerate() {
        if let Some(timers) = &timers
            && let Some(text) = timer.get("handler").and_then(Value::as_str)
            && !options.interpolation.is_replaced(text)
        {
            function(timers.path.index(index).child("handler"), text, problems);
        }
    }
}

/// Validates that a text can be evaluated to a function.
fn function(path: FieldPath, text: &str, problems: &mut DiagnosticList) {
    let form = "must be a function or its name, such as `function (event, emit) emit(event) end`";
    match expression(text) {
        Parsed::Unknown => {}
        Parsed::Valid(program) => {
            if returned(&program).is_some_and(is_constant) {
                refuse(path, text, form, problems);
            }
        }
        Parsed::Invalid(_) => match parse(text) {
            Parsed::Unknown => {}
            Parsed::Invalid(error) => refuse(path, text, error, problems),
            Parsed::Valid(program) => {
                if returned(&program).is_none() {
                    let detail = format!("{form}: this text defines a function, but returns none");
                    refuse(path, text, detail, problems);
                }
            }
        },
    }
}

enum Parsed {
    Valid(Box<Ast>),
    /// The message for the user.
    Invalid(String),
    /// Too deep for the parser, or with an escape sequence that it does not know.
    Unknown,
}

fn expression(text: &str) -> Parsed {
    parse(&format!("return {text}"))
}

fn parse(text: &str) -> Parsed {
    let tokens = match Lexer::new(text, LuaVersion::lua54()).collect() {
        LexerResult::Ok(tokens) | LexerResult::Recovered(tokens, _) => tokens,
        // The parser reports the error before it builds a tree.
        LexerResult::Fatal(_) => Vec::new(),
    };
    if depth(&tokens) > MAX_DEPTH {
        return Parsed::Unknown;
    }
    let known = rewritten::rewritten(text, &tokens);
    stacker::grow(STACK_BYTES, || {
        match parse_fallible(&known.text, LuaVersion::lua54()).into_result() {
            Ok(program) => {
                let mistake = literals::mistake(text, &tokens);
                match mistake.or_else(|| scopes::mistake(&program, known.breaks)) {
                    Some(mistake) => mistake.into(),
                    None => Parsed::Valid(Box::new(program)),
                }
            }
            Err(errors) => {
                let first = errors.first();
                let place = first.map(|error| error.range().0);
                // The parser reads `\z` only before a single line break.
                if text.contains("\\z") {
                    return Parsed::Unknown;
                }
                let message = first.map(full_moon::Error::error_message);
                let message = message.unwrap_or_default().to_string();
                Mistake { place, message }.into()
            }
        }
    })
}

impl From<Mistake> for Parsed {
    fn from(mistake: Mistake) -> Self {
        Self::Invalid(format!(
            "is no Lua program: line {}, column {}: {}",
            mistake.place.map_or(1, |place| place.line()),
            mistake.place.map_or(1, |place| place.character()),
            mistake.message
        ))
    }
}

/// Returns how deep blocks, brackets and operators contain each other, or more.
fn depth(tokens: &[Token]) -> usize {
    let (mut open, mut operators, mut deepest) = (0_usize, 0_usize, 0_usize);
    for token in tokens {
        let TokenType::Symbol { symbol } = token.token_type() else {
            continue;
        };
        match symbol {
            Symbol::LeftParen
            | Symbol::LeftBrace
            | Symbol::LeftBracket
            | Symbol::Function
            | Symbol::Do
            | Symbol::Then
            | Symbol::Repeat => open += 1,
            Symbol::RightParen
            | Symbol::RightBrace
            | Symbol::RightBracket
            | Symbol::End
            | Symbol::ElseIf
            | Symbol::Until => open = open.saturating_sub(1),
            // The parser reads lists without calling itself.
            Symbol::Comma => {}
            Symbol::Local | Symbol::Return | Symbol::Semicolon | Symbol::Equal => operators = 0,
            _ => operators += 1,
        }
        deepest = deepest.max(open + operators);
    }
    deepest
}

/// Returns the first value that a program returns.
fn returned(program: &Ast) -> Option<&Expression> {
    match program.nodes().last_stmt()? {
        LastStmt::Return(values) => values.returns().iter().next(),
        _ => None,
    }
}

/// Returns true for a value that is no function, whatever the program does.
fn is_constant(value: &Expression) -> bool {
    matches!(
        value,
        Expression::Number(_)
            | Expression::String(_)
            | Expression::Symbol(_)
            | Expression::TableConstructor(_)
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::catalogue::Catalogue;
    use crate::confinement::OptOut;
    use crate::interpolation::Interpolation;
    use crate::start_up::validate_start_up;

    fn messages(process: &str, source: &str) -> String {
        let hooks = json!({"process": process});
        let lua = json!({"type": "lua", "version": "2", "hooks": hooks, "source": source});
        let config = json!({"transforms": {"x": lua}});
        let found = validate_start_up(
            Catalogue::shipped(),
            &config,
            OptOut::Author,
            Interpolation::Off,
        );
        let found = found.iter().map(|problem| problem.error.to_string());
        found.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn programs_of_lua_5_4_are_accepted() {
        for source in [
            "",
            "-- a comment",
            "count = 0\nfunction process(event, emit) count = count + 1; emit(event) end",
            "local x <const> = 7 // 2 | 0x10 ~ 3 << 1\ngoto done\n::done::",
            "for i, v in ipairs({1, 2, [3] = 'a\\z\n  b'}) do if v ~= i then break end end",
            "local s = [==[ text ]] ]==] .. \"\\u{48}\\x41\"\nreturn require('os')",
            "repeat local done = true until done\nwhile false do end",
            "x = 1;;\nif x then ; end",
            "while x do ;\nf '' end",
            "while x do break\nf() end",
            "x = 'a\\z\n\n  b'",
            "x = #t; y = not -z ^ 2; t.a.b['c']:d{1}:e'f'",
        ] {
            assert_eq!(messages("process", source), "", "{source}");
        }
        for process in [
            "function (event, emit) emit(event) end",
            "process",
            "handlers.process",
            "make_handler()",
            "local function f(event, emit) emit(event) end\nreturn f",
        ] {
            assert_eq!(messages(process, ""), "", "{process}");
        }
    }

    #[test]
    fn errors_have_their_line_and_column() {
        let message = messages("process", "while x do f() end\nbreak f()");
        assert!(message.contains("line 2, column 1: `break`"), "{message}");
        let message = messages("process", "x = 1\ny = = 2");
        assert!(message.contains("line 2, column 3"), "{message}");
        let message = messages("function process(event, emit) emit(event) end", "");
        assert!(message.contains("returns none"), "{message}");
        assert!(messages("nil", "").contains("must be a function"));
    }

    /// The parser must not use up the stack, whatever a program contains.
    #[test]
    fn a_program_of_any_depth_ends_no_process() {
        for part in [
            "(",
            "{",
            "not ",
            "- ",
            "a .. ",
            "a ^ ",
            "function () ",
            "f(",
            "if x then ",
        ] {
            for count in [150, 20_000] {
                let _ = messages("process", &format!("x = {}", part.repeat(count)));
                let _ = messages("process", &part.repeat(count));
            }
        }
        let sum = format!("x = {}1", "1 + ".repeat(20_000));
        assert_eq!(messages("process", &sum), "");
    }
}
