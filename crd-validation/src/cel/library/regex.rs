//! Regular expressions: `matches`, `find`, `findAll`.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, RwLock};

use ::cel::common::types::{CelBool, CelInt, CelList, CelString};
use ::cel::common::value::Val;
use ::cel::{DeclarationError, Env, ExecutionError};

use crate::cel::library::arguments::failed;
use crate::re2;

/// Maximum number of cached expressions. Patterns can be computed by rules, so the cache must be bounded.
const MAX_CACHED: usize = 1024;

static CACHE: LazyLock<RwLock<HashMap<String, Arc<regex::Regex>>>> = LazyLock::new(RwLock::default);

/// Compiles an expression, or returns the cached one.
pub(in crate::cel) fn compile(pattern: &str) -> Result<Arc<regex::Regex>, String> {
    if let Some(cached) = CACHE
        .read()
        .ok()
        .and_then(|cached| cached.get(pattern).cloned())
    {
        return Ok(cached);
    }
    let compiled = Arc::new(re2::compile(pattern)?);
    if let Ok(mut cached) = CACHE.write() {
        if cached.len() >= MAX_CACHED {
            cached.clear();
        }
        cached.insert(pattern.to_owned(), Arc::clone(&compiled));
    }
    Ok(compiled)
}

pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    cel::add_overload!(env, fn matches: (CelString, CelString) -> Result<CelBool>)?;
    cel::add_member_overload!(env, fn matches: (CelString, CelString) -> Result<CelBool>)?;
    cel::add_member_overload!(env, fn find: (CelString, CelString) -> Result<CelString>)?;
    cel::add_member_overload!(env, fn find_all: (CelString, CelString) -> Result<CelList>)?;
    cel::add_member_overload!(env, fn find_some: (CelString, CelString, CelInt) -> Result<CelList>, name = "findAll")
}

fn expression(pattern: &CelString<'_>) -> Result<Arc<regex::Regex>, ExecutionError> {
    compile(pattern.inner())
        .map_err(|problem| failed("matches", format!("error parsing regexp: {problem}")))
}

fn matches(text: &CelString<'_>, pattern: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    Ok(expression(pattern)?.is_match(text.inner()).into())
}

fn find(
    text: &CelString<'_>,
    pattern: &CelString<'_>,
) -> Result<CelString<'static>, ExecutionError> {
    let found = expression(pattern)?
        .find(text.inner())
        .map(|found| found.as_str().to_owned());
    Ok(found.unwrap_or_default().into())
}

fn find_all(
    text: &CelString<'_>,
    pattern: &CelString<'_>,
) -> Result<CelList<'static>, ExecutionError> {
    find_some(text, pattern, &CelInt::from(-1))
}

fn find_some(
    text: &CelString<'_>,
    pattern: &CelString<'_>,
    most: &CelInt,
) -> Result<CelList<'static>, ExecutionError> {
    let most = usize::try_from(*most.inner()).unwrap_or(usize::MAX);
    let expression = expression(pattern)?;
    let found = expression.find_iter(text.inner()).take(most);
    let items: Vec<Box<dyn Val>> = found
        .map(|found| Box::new(CelString::from(found.as_str().to_owned())) as Box<dyn Val>)
        .collect();
    Ok(items.into())
}
