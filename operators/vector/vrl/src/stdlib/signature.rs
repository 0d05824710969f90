//! Signature of a function for the compiler: its parameters, its result type, and the validation of its calls.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use vrl::compiler::function::{Error, Parameter};
use vrl::compiler::state::TypeState;
use vrl::path::{OwnedTargetPath, PathPrefix};
use vrl::prelude::{
    ArgumentList, Compiled, Context, DiagnosticMessage, Example, Expression, Function,
    FunctionCompileContext, FunctionExpression, Kind, Resolved, TypeDef, Value,
};

use crate::stdlib::call_error::wrong;

/// Function that is compiled and never run.
#[derive(Debug)]
pub(crate) struct Signature {
    pub(crate) name: &'static str,
    pub(crate) parameters: &'static [Parameter],
    /// Result type, including whether the function is fallible.
    pub(crate) gives: fn() -> TypeDef,
    /// Result type as a set of kinds.
    pub(crate) kind: u16,
    pub(crate) demand: CallRequirement,
}

/// Requirement for a call, beyond the types of its arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CallRequirement {
    Nothing,
    /// The call cannot fail if this argument is absent or one of these values (case-insensitive).
    SafeWith(&'static str, &'static [&'static str]),
    /// This argument, if it is a constant, is one of these values (case-insensitive).
    Known(&'static str, &'static [&'static str]),
    /// This argument is a literal and one of these values.
    OneOf(&'static str, &'static [&'static str]),
    /// This argument is a literal.
    Literal(&'static str),
    /// This argument is the name of an enrichment table.
    Table(&'static str),
    /// This argument, if present, is the name of a file that the compiler reads.
    File(&'static str),
    /// The first argument is an existing field, the second is the meaning that is assigned to it.
    Meaning,
    /// These arguments are URLs of proxies. They are checked if all that are present are constants.
    Proxies(&'static [&'static str]),
}

/// Names of the enrichment tables of a configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables(pub(crate) Vec<String>);

/// Files that the compiler of Vector reads for a program, with the calls that name them. They are known only if the
/// caller of the compiler validates them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files(pub(crate) Vec<(String, Range<usize>)>);

/// Functions that a program calls and that are only compiled.
#[derive(Clone, Debug, Default)]
pub(crate) struct NotRun(pub(crate) BTreeSet<String>);

/// Fields to which a program assigned a meaning.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meanings(pub(crate) BTreeMap<String, OwnedTargetPath>);

impl Function for &'static Signature {
    fn identifier(&self) -> &'static str {
        self.name
    }

    fn usage(&self) -> &'static str {
        ""
    }

    fn category(&self) -> &'static str {
        ""
    }

    fn return_kind(&self) -> u16 {
        self.kind
    }

    fn examples(&self) -> &'static [Example] {
        &[]
    }

    fn parameters(&self) -> &'static [Parameter] {
        self.parameters
    }

    fn compile(
        &self,
        state: &TypeState,
        context: &mut FunctionCompileContext,
        arguments: ArgumentList,
    ) -> Compiled {
        tags(state, &arguments)?;
        let result = (self.gives)();
        let result = match self.demand {
            CallRequirement::Nothing => result,
            CallRequirement::SafeWith(keyword, names) => match arguments.optional(keyword) {
                None => result.infallible(),
                Some(given) if is_one_of(given.as_ref(), names, state) => result.infallible(),
                Some(_) => result.fallible(),
            },
            CallRequirement::Known(keyword, names) => {
                let given = arguments.required(keyword);
                if let Some(value) = given.resolve_constant(state)
                    && !is_one_of(given.as_ref(), names, state)
                {
                    return Err(invalid(keyword, value, "Invalid algorithm"));
                }
                result
            }
            CallRequirement::OneOf(keyword, names) => {
                let names: Vec<Value> = names.iter().map(|name| Value::from(*name)).collect();
                arguments.optional_enum(keyword, &names, state)?;
                result
            }
            CallRequirement::Literal(keyword) => {
                arguments.required_literal(keyword, state)?;
                result
            }
            CallRequirement::Table(keyword) => {
                let tables = context.get_external_context::<Tables>();
                let tables = tables.into_iter().flat_map(|tables| &tables.0);
                let tables: Vec<Value> = tables.map(|name| Value::from(name.as_str())).collect();
                arguments.required_enum(keyword, &tables, state)?;
                arguments.required_object("condition")?;
                arguments.optional_literal("case_sensitive", state)?;
                result
            }
            CallRequirement::File(keyword) => {
                if let Some(value) = arguments.optional_literal(keyword, state)? {
                    file(keyword, value, context)?;
                }
                result
            }
            CallRequirement::Proxies(keywords) => {
                proxies(keywords, state, &arguments)?;
                result
            }
            CallRequirement::Meaning => {
                meaning(state, context, &arguments)?;
                result
            }
        };
        not_run(self.name, context);
        Ok(not_compiled(result))
    }
}

/// Notes a function that is only compiled.
pub(crate) fn not_run(name: &str, context: &mut FunctionCompileContext) {
    if let Some(functions) = context.get_external_context_mut::<NotRun>() {
        functions.0.insert(name.to_owned());
    }
}

/// Notes a file that is read when the program is compiled, or rejects it.
fn file(
    keyword: &'static str,
    value: Value,
    context: &mut FunctionCompileContext,
) -> Result<(), Box<dyn DiagnosticMessage>> {
    let call = context.span();
    let name = value.as_str().map(|name| name.into_owned());
    match (context.get_external_context_mut::<Files>(), name) {
        (Some(files), Some(name)) => {
            files.0.push((name, call.start()..call.end()));
            Ok(())
        }
        _ => {
            let error = "a file that is read when the program is compiled cannot be validated";
            Err(invalid(keyword, value, error))
        }
    }
}

fn invalid(keyword: &'static str, value: Value, error: &'static str) -> Box<dyn DiagnosticMessage> {
    Error::InvalidArgument {
        keyword,
        value,
        error,
    }
    .into()
}

/// Validates the tags of a metric: the argument is an object literal whose values are strings.
fn tags(state: &TypeState, arguments: &ArgumentList) -> Result<(), Box<dyn DiagnosticMessage>> {
    let tags = arguments.optional_object("tags")?.unwrap_or_default();
    let mut values = tags.values();
    match values.find(|value| *value.type_def(state).kind() != Kind::bytes()) {
        None => Ok(()),
        Some(value) => {
            let value = value.resolve_constant(state).unwrap_or(Value::Null);
            Err(invalid("tags", value, "must be strings"))
        }
    }
}

fn is_one_of(given: &dyn Expression, names: &[&str], state: &TypeState) -> bool {
    let value = given.resolve_constant(state);
    let text = value.as_ref().and_then(Value::as_str);
    text.is_some_and(|text| names.contains(&text.to_uppercase().as_str()))
}

fn proxies(
    keywords: &[&'static str],
    state: &TypeState,
    arguments: &ArgumentList,
) -> Result<(), Box<dyn DiagnosticMessage>> {
    let given = keywords.iter().filter_map(|keyword| {
        let argument = arguments.optional(keyword)?;
        Some((*keyword, argument.resolve_constant(state)))
    });
    let given: Vec<_> = given.collect();
    if given.iter().any(|(_, value)| value.is_none()) {
        return Ok(());
    }
    for (keyword, value) in given {
        let value = value.unwrap_or(Value::Null);
        let text = value.as_str().unwrap_or_default();
        let has_host = |text: &str| {
            let uri = text.parse::<http::Uri>();
            uri.is_ok_and(|uri| uri.scheme().is_some() && uri.host().is_some())
        };
        if !has_host(&text) && !has_host(&format!("http://{text}")) {
            drop(text);
            return Err(invalid(keyword, value, "must be the URL of a proxy"));
        }
    }
    Ok(())
}

fn meaning(
    state: &TypeState,
    context: &mut FunctionCompileContext,
    arguments: &ArgumentList,
) -> Result<(), Box<dyn DiagnosticMessage>> {
    let span = context.span();
    let wrong = |message: &str| Err(wrong(message, message, span));
    let query = arguments.required_query("target")?;
    let name = arguments.required_literal("meaning", state)?;
    let name = name
        .as_str()
        .map(|name| name.into_owned())
        .unwrap_or_default();
    let Some(path) = query.external_path() else {
        return wrong("only a field of the event or of its metadata can have a meaning");
    };
    let kind = match path.prefix {
        PathPrefix::Event => state.external.target_kind(),
        PathPrefix::Metadata => state.external.metadata_kind(),
    };
    if !kind.at_path(&path.path).contains_any_defined() {
        return wrong("a field that does not exist cannot have a meaning");
    }
    if let Some(meanings) = context.get_external_context_mut::<Meanings>() {
        let other = meanings.0.get(&name).filter(|other| **other != path);
        if other.is_some() {
            return wrong("two fields cannot have the same meaning");
        }
        meanings.0.insert(name, path);
    }
    Ok(())
}

/// Returns a call with this result type, whatever its arguments are.
pub(crate) fn not_compiled(gives: TypeDef) -> Box<dyn Expression> {
    Call { gives }.as_expr()
}

/// Function call that is never run.
#[derive(Clone, Debug)]
struct Call {
    gives: TypeDef,
}

impl FunctionExpression for Call {
    fn resolve(&self, _: &mut Context<'_>) -> Resolved {
        Err("programs are compiled and not run".into())
    }

    fn type_def(&self, _: &TypeState) -> TypeDef {
        self.gives.clone()
    }
}
