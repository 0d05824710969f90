//! Semantic versions.

use ::cel::common::types::{CelBool, CelInt, CelString};
use ::cel::{DeclarationError, Env, ExecutionError};
use semver::Version;

use crate::cel::library::arguments::failed;
use crate::cel::opaque::opaque;

/// Semantic version. Build metadata does not affect equality.
#[derive(Clone, Debug)]
struct Semver(Version);

impl PartialEq for Semver {
    fn eq(&self, other: &Self) -> bool {
        self.0.cmp_precedence(&other.0).is_eq()
    }
}

opaque!(Semver, "kubernetes.Semver");

pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    cel::add_overload!(env, fn is_semver: (CelString) -> CelBool)?;
    cel::add_overload!(env, fn is_semver_normalized: (CelString, CelBool) -> CelBool, name = "isSemver")?;
    cel::add_overload!(env, fn semver: (CelString) -> Result<Semver>)?;
    cel::add_overload!(env, fn semver_normalized: (CelString, CelBool) -> Result<Semver>, name = "semver")?;
    cel::add_member_overload!(env, fn is_greater_than: (Semver, Semver) -> CelBool)?;
    cel::add_member_overload!(env, fn is_less_than: (Semver, Semver) -> CelBool)?;
    cel::add_member_overload!(env, fn compare_to: (Semver, Semver) -> CelInt)?;
    cel::add_member_overload!(env, fn major: (Semver) -> Result<CelInt>)?;
    cel::add_member_overload!(env, fn minor: (Semver) -> Result<CelInt>)?;
    cel::add_member_overload!(env, fn patch: (Semver) -> Result<CelInt>)
}

fn parse(text: &str, normalize: bool) -> Result<Version, semver::Error> {
    if normalize {
        Version::parse(&normalized(text))
    } else {
        Version::parse(text)
    }
}

/// Removes a leading `v` and leading zeros, and completes the version to three numbers.
fn normalized(text: &str) -> String {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
    if parts.len() < 3 {
        // A pre-release or build suffix is only allowed after the third number.
        let last = parts.pop().unwrap_or_default();
        let end = last.find(['+', '-']).unwrap_or(last.len());
        let (number, behind) = last.split_at(end);
        if !behind.is_empty() {
            return text.to_owned();
        }
        parts.push(number.to_owned());
        parts.resize(3, "0".to_owned());
    }
    parts.join(".")
}

fn without_zeros(part: &str) -> String {
    let digits = part.trim_start_matches('0');
    if part.len() > 1
        && !digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.len() < part.len()
    {
        format!("0{digits}")
    } else if part.len() > 1 {
        digits.to_owned()
    } else {
        part.to_owned()
    }
}

fn is_semver(text: &CelString<'_>) -> CelBool {
    parse(text.inner(), false).is_ok().into()
}

fn is_semver_normalized(text: &CelString<'_>, normalize: &CelBool) -> CelBool {
    parse(text.inner(), *normalize.inner()).is_ok().into()
}

fn semver(text: &CelString<'_>) -> Result<Semver, ExecutionError> {
    semver_normalized(text, &CelBool::from(false))
}

fn semver_normalized(text: &CelString<'_>, normalize: &CelBool) -> Result<Semver, ExecutionError> {
    let parsed = parse(text.inner(), *normalize.inner());
    parsed
        .map(Semver)
        .map_err(|problem| failed("semver", problem))
}

fn is_greater_than(a: &Semver, b: &Semver) -> CelBool {
    a.0.cmp_precedence(&b.0).is_gt().into()
}

fn is_less_than(a: &Semver, b: &Semver) -> CelBool {
    a.0.cmp_precedence(&b.0).is_lt().into()
}

fn compare_to(a: &Semver, b: &Semver) -> CelInt {
    (a.0.cmp_precedence(&b.0) as i64).into()
}

fn number(value: u64) -> Result<CelInt, ExecutionError> {
    i64::try_from(value)
        .map(CelInt::from)
        .map_err(|problem| failed("semver", problem))
}

fn major(version: &Semver) -> Result<CelInt, ExecutionError> {
    number(version.0.major)
}

fn minor(version: &Semver) -> Result<CelInt, ExecutionError> {
    number(version.0.minor)
}

fn patch(version: &Semver) -> Result<CelInt, ExecutionError> {
    number(version.0.patch)
}
