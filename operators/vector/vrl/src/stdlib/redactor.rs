//! The redactors of `redact` that hash. The VRL library knows their names only if it is built with its hash functions,
//! which are not needed for programs that are never run.

use std::collections::HashMap;

use vrl::compiler::expression::Expr;
use vrl::compiler::function::Error;
use vrl::compiler::state::TypeState;
use vrl::prelude::{ArgumentList, Compiled, Function, FunctionCompileContext, Value};

const REDACTOR: &str = "redactor";

/// Hash functions of a redactor, by its type.
const VARIANTS: [(&str, &[&str]); 2] = [
    (
        "sha2",
        &[
            "SHA-224",
            "SHA-256",
            "SHA-384",
            "SHA-512",
            "SHA-512/224",
            "SHA-512/256",
        ],
    ),
    ("sha3", &["SHA3-224", "SHA3-256", "SHA3-384", "SHA3-512"]),
];

const ENCODINGS: [&str; 3] = ["base64", "base16", "hex"];

/// Call of `redact` with a redactor that hashes.
pub(crate) struct HashRedactor {
    redactor: Value,
    variants: &'static [&'static str],
    /// The other arguments.
    others: ArgumentList,
}

impl HashRedactor {
    /// Returns the redactor of a call, if it hashes.
    pub(crate) fn of(function: &str, arguments: &ArgumentList, state: &TypeState) -> Option<Self> {
        if function != "redact" {
            return None;
        }
        let redactor = arguments.optional(REDACTOR)?.resolve_constant(state)?;
        let kind = match &redactor {
            Value::Object(fields) => fields.get("type")?.as_str()?,
            other => other.as_str()?,
        };
        let mut variants = VARIANTS.into_iter();
        let (_, variants) = variants.find(|(name, _)| *name == kind)?;
        let others = ["value", "filters"];
        let others: HashMap<&'static str, Expr> = others
            .into_iter()
            .map(|keyword| (keyword, arguments.required_expr(keyword)))
            .collect();
        drop(kind);
        Some(Self {
            redactor,
            variants,
            others: others.into(),
        })
    }

    /// Compiles the call with the default redactor, which has the same result type, and validates the redactor.
    pub(crate) fn compile(
        self,
        redact: &dyn Function,
        state: &TypeState,
        context: &mut FunctionCompileContext,
    ) -> Compiled {
        let call = redact.compile(state, context, self.others)?;
        let options = self.redactor.as_object();
        let is_one_of = |option: &str, names: &[&str]| {
            let value = options.and_then(|options| options.get(option));
            value.is_none_or(|value| value.as_str().is_some_and(|name| names.contains(&&*name)))
        };
        let error = if !is_one_of("variant", self.variants) {
            "unknown `variant` of the hash function"
        } else if !is_one_of("encoding", &ENCODINGS) {
            "unknown `encoding`; use `base64` or `base16`"
        } else {
            return Ok(call);
        };
        Err(Error::InvalidArgument {
            keyword: REDACTOR,
            value: self.redactor,
            error,
        }
        .into())
    }
}
