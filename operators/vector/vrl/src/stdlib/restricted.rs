//! Wrapper for functions: calls of denied functions do not compile, and no function reads a file of the validating
//! machine, unless the files of Vector are there.

use vrl::compiler::function::{Parameter, closure};
use vrl::compiler::state::{TypeInfo, TypeState};
use vrl::prelude::{
    ArgumentList, Compiled, Context, Example, Expression, Function, FunctionCompileContext,
    Resolved, TypeDef,
};

use crate::language::Language;
use crate::stdlib::call_error::wrong;
use crate::stdlib::redactor::HashRedactor;
use crate::stdlib::signature::{Files, not_compiled, not_run};
use crate::stdlib::signatures::uncertain_object;

/// Arguments that are lists of files which the compiler would read. The result of the function is an object.
const READ_BY_THE_COMPILER: [(&str, &str); 1] = [("parse_groks", "alias_sources")];

/// Function that can be denied.
#[derive(Debug)]
pub(crate) struct RestrictedFunction {
    pub(crate) function: &'static dyn Function,
    pub(crate) is_denied: bool,
}

/// Call of `round` by a version whose result is an integer, as the compiler knows it.
#[derive(Clone, Debug)]
struct IntegerRounding(Box<dyn Expression>);

impl Expression for IntegerRounding {
    fn resolve(&self, context: &mut Context<'_>) -> Resolved {
        self.0.resolve(context)
    }

    fn type_info(&self, state: &TypeState) -> TypeInfo {
        TypeInfo::new(state, TypeDef::integer().infallible())
    }
}

impl Function for RestrictedFunction {
    fn identifier(&self) -> &'static str {
        self.function.identifier()
    }

    fn usage(&self) -> &'static str {
        self.function.usage()
    }

    fn category(&self) -> &'static str {
        self.function.category()
    }

    fn return_kind(&self) -> u16 {
        self.function.return_kind()
    }

    fn pure(&self) -> bool {
        self.function.pure()
    }

    fn examples(&self) -> &'static [Example] {
        self.function.examples()
    }

    fn parameters(&self) -> &'static [Parameter] {
        self.function.parameters()
    }

    fn closure(&self) -> Option<closure::Definition> {
        self.function.closure()
    }

    fn compile(
        &self,
        state: &TypeState,
        context: &mut FunctionCompileContext,
        arguments: ArgumentList,
    ) -> Compiled {
        let name = self.identifier();
        let span = context.span();
        if self.is_denied {
            let message = format!(
                "`{name}` is denied for tenants, because it can access resources of others"
            );
            let label = "see `settings.vector.tenants` of the policy";
            return Err(wrong(message, label, span));
        }
        let language = context.get_external_context::<Language>().copied();
        let language = language.unwrap_or(Language::NEWEST);
        if let Some(since) = language.lacks(name) {
            let message = format!("Vector has `{name}` from version 0.{since} on");
            let label = "the version that runs the program lacks it";
            return Err(wrong(message, label, span));
        }
        let mut reading = READ_BY_THE_COMPILER.iter();
        let read = reading
            .find(|(function, keyword)| *function == name && arguments.optional(keyword).is_some());
        if let Some((_, keyword)) = read {
            if let Some(files) = context.get_external_context_mut::<Files>() {
                let items = arguments.optional_array(keyword)?.unwrap_or_default();
                let names = items.iter().filter_map(|item| item.resolve_constant(state));
                let names = names.filter_map(|name| Some(name.as_str()?.into_owned()));
                files
                    .0
                    .extend(names.map(|name| (name, span.start()..span.end())));
                not_run(name, context);
                return Ok(not_compiled(uncertain_object()));
            }
            let message =
                format!("`{keyword}` refers to files, which are not read during validation");
            return Err(wrong(
                message,
                "write their contents into the program",
                span,
            ));
        }
        if name == "round" && language.rounds_to_integers() {
            let rounding = self.function.compile(state, context, arguments)?;
            return Ok(Box::new(IntegerRounding(rounding)));
        }
        match HashRedactor::of(name, &arguments, state) {
            Some(redactor) => {
                not_run(name, context);
                redactor.compile(self.function, state, context)
            }
            None => self.function.compile(state, context, arguments),
        }
    }
}
