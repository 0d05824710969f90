//! What CEL rules may call here: the functions that mean the same in this process and in the API
//! server. A rule that calls another one stops the start.

use std::sync::Arc;

use ::cel::{Env, extensions};

/// Operators and functions whose meaning is the API server's own.
///
/// `matches` is left out: RE2 and Rust's expressions differ in their character classes.
const KNOWN: &[&str] = &[
    "_&&_",
    "_||_",
    "!_",
    "_==_",
    "_!=_",
    "_<_",
    "_<=_",
    "_>_",
    "_>=_",
    "_+_",
    "_-_",
    "_*_",
    "_/_",
    "_%_",
    "-_",
    "_?_:_",
    "_[_]",
    "@in",
    "_in_",
    "@not_strictly_false",
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "int",
    "string",
    "charAt",
    "indexOf",
    "lastIndexOf",
    "join",
    "lowerAscii",
    "upperAscii",
    "replace",
    "split",
    "substring",
    "trim",
];

/// The environment that rules are compiled and run in.
pub(super) fn environment() -> Arc<Env> {
    let mut environment = Env::stdlib();
    environment
        .add_extension(extensions::strings)
        .expect("the extension is added once, to an environment without it");
    Arc::new(environment)
}

pub(super) fn is_known(function: &str) -> bool {
    KNOWN.contains(&function)
}
