//! Programs: compiled in process, by the compiler that the catalogue's Vector has.

use std::ops::Range;

use shared_validation::{FieldError, FieldPath};
use vrl::compiler::state::ExternalEnv;
use vrl::compiler::{CompilationResult, CompileConfig, Program, compile_with_external};
use vrl::datadog_search_syntax::QueryNode;
use vrl::diagnostic::{Diagnostic, DiagnosticList, Formatter};
use vrl::path::PathPrefix;

use crate::functions::{self, Meanings, Tables};
use crate::language::Language;
use crate::limits;
use crate::problem::{Check, Problems};

/// How many of the compiler's findings in one program are told.
const MOST_TOLD: usize = 10;

/// The longest line that is drawn, in bytes.
const LONGEST_DRAWN: usize = 400;

/// What a program is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It changes events.
    Remap,
    /// It says yes or no, and changes nothing.
    Condition,
}

/// Judges one program.
pub(crate) fn judge(
    source: &str,
    purpose: Purpose,
    language: &Language,
    path: &FieldPath,
    problems: &mut Problems,
) {
    if let Some(detail) = limits::exceeded(source) {
        return problems.add(
            Check::Limits,
            FieldError::invalid_hidden(path.clone(), detail),
        );
    }
    let compiled = limits::on_a_large_stack(|| compile(source, purpose, language));
    let wrong = |detail: String| FieldError::invalid_hidden(path.clone(), detail);
    match compiled {
        Err(diagnostics) => {
            let mut diagnostics = diagnostics.into_iter();
            for diagnostic in diagnostics.by_ref().take(MOST_TOLD) {
                let bytes = span(source, &diagnostic);
                let error = wrong(told(source, diagnostic, true)).within(bytes);
                problems.add(Check::Programs, error);
            }
            let more = diagnostics.count();
            if more > 0 {
                let detail = format!("and {more} more, which may come of those before");
                problems.add(Check::Programs, wrong(detail));
            }
        }
        Ok(Compiled { warnings, problem }) => {
            if let Some(problem) = problem {
                problems.add(Check::Programs, wrong(problem));
            }
            for diagnostic in warnings.into_iter().take(MOST_TOLD) {
                let bytes = span(source, &diagnostic);
                let error = wrong(told(source, diagnostic, false)).within(bytes);
                problems.add(Check::ProgramAdvice, error);
            }
        }
    }
}

/// Judges a query in Datadog's search syntax.
pub(crate) fn judge_search(source: &str, path: &FieldPath, problems: &mut Problems) {
    if let Some(detail) = limits::exceeded(source) {
        return problems.add(
            Check::Limits,
            FieldError::invalid_hidden(path.clone(), detail),
        );
    }
    if let Err(error) = limits::on_a_large_stack(|| source.parse::<QueryNode>()) {
        let detail = format!("is no search query: {error}");
        problems.add(
            Check::Programs,
            FieldError::invalid(path.clone(), source, detail),
        );
    }
}

struct Compiled {
    warnings: DiagnosticList,
    /// What is wrong with a program that compiles.
    problem: Option<String>,
}

fn compile(
    source: &str,
    purpose: Purpose,
    language: &Language,
) -> Result<Compiled, DiagnosticList> {
    let mut config = CompileConfig::default();
    config.set_custom(Tables(language.tables.clone()));
    config.set_custom(Meanings::default());
    if purpose == Purpose::Condition {
        config.set_read_only();
    }
    let environment = ExternalEnv::default();
    let CompilationResult {
        program,
        warnings,
        config,
    } = compile_with_external(
        source,
        &functions::but(&language.denied),
        &environment,
        config,
    )?;
    let problem = match purpose {
        Purpose::Condition => not_boolean(&program),
        Purpose::Remap => config
            .get_custom()
            .and_then(|meanings| dangling(&program, meanings)),
    };
    Ok(Compiled { warnings, problem })
}

fn not_boolean(program: &Program) -> Option<String> {
    let result = program.final_type_info().result;
    let detail = || {
        format!(
            "a condition must be a boolean, and this is {}",
            result.kind()
        )
    };
    (!result.is_boolean()).then(detail)
}

/// A meaning that is given to a field which the program then removes: Vector aborts on that.
fn dangling(program: &Program, meanings: &Meanings) -> Option<String> {
    let after = program.final_type_info().state.external;
    let gone = meanings.0.iter().find(|(_, path)| {
        let kind = match path.prefix {
            PathPrefix::Event => after.target_kind(),
            PathPrefix::Metadata => after.metadata_kind(),
        };
        !kind.at_path(&path.path).contains_any_defined()
    });
    gone.map(|(meaning, path)| {
        format!("the meaning `{meaning}` is given to `{path}`, which is no more at the end of the program")
    })
}

/// What a diagnostic points at.
fn span(source: &str, diagnostic: &Diagnostic) -> Option<Range<usize>> {
    let mut labels = diagnostic.labels.iter();
    let label = labels.find(|label| label.primary);
    let span = label.or(diagnostic.labels.first())?.span;
    source.get(span.start()..span.end())?;
    Some(span.start()..span.end())
}

/// A diagnostic with the place in the program; drawn, with the line and what is under it as well.
fn told(source: &str, diagnostic: Diagnostic, is_drawn: bool) -> String {
    let at = span(source, &diagnostic).map(|bytes| bytes.start);
    let place = at.map(|at| {
        let before = &source[..at];
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        format!(
            "line {line}, column {}: ",
            before[start..].chars().count() + 1
        )
    });
    let mut message = diagnostic.message.clone();
    if let Some(label) = diagnostic.labels.iter().find(|label| label.primary)
        && !label.message.is_empty()
        && label.message != message
    {
        message = format!("{message}: {}", label.message);
    }
    let is_drawable = diagnostic
        .labels
        .iter()
        .all(|label| source.get(label.span.start()..label.span.end()).is_some());
    if !is_drawn || !is_drawable || source.lines().any(|line| line.len() > LONGEST_DRAWN) {
        return format!("{}{message}", place.unwrap_or_default());
    }
    let drawn = Formatter::new(source, diagnostic).to_string();
    // Not the message again, nor where to read more in general.
    let lines = drawn.lines().skip_while(|line| !line.contains('┌'));
    let lines = lines.filter(|line| !line.trim_start().starts_with("= "));
    let drawn: Vec<_> = lines.collect();
    let drawn = drawn.join("\n");
    let drawn = drawn.trim_end_matches(['│', ' ', '\n']);
    format!("{}{message}\n{drawn}", place.unwrap_or_default())
}
