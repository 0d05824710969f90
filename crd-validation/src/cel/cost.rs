//! Cost budget, so that no rule and no object can keep the validator busy.
//!
//! The budget counts steps and bytes, never time: the same object gets the same result on every machine.

use std::cell::Cell;

use ::cel::common::types::{CelBool, CelString, DYN_TYPE, Kind};
use ::cel::common::value::{CowVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError};

/// Budget of one rule for one value. The API server allows a million units of cost, and each step costs several
/// of them: <https://pkg.go.dev/k8s.io/apiserver/pkg/apis/cel#pkg-constants>.
const PER_RULE: usize = 1_000_000;
/// Budget of all rules for one object.
const PER_OBJECT: usize = 10_000_000;
/// Bytes of new text that cost as much as one step.
pub(crate) const BYTES_PER_UNIT: usize = 64;

/// Number of comparisons that take about as long as one step.
pub(crate) const COMPARISONS_PER_UNIT: usize = 8;

pub(crate) const STEP: &str = "@step";
pub(crate) const WEIGHED: &str = "@weighed";
pub(crate) const READ: &str = "@read";
pub(crate) const READ_TEXT: &str = "@read_text";
pub(crate) const EACH_WITH_EACH: &str = "@each_with_each";
/// Bytes of text that are read in about the time of one step.
const BYTES_READ_PER_UNIT: usize = 1024;
/// Values that are read in about the time of one step.
const VALUES_READ_PER_UNIT: usize = 64;

thread_local! {
    static LEFT: Cell<usize> = const { Cell::new(PER_RULE) };
    static EXHAUSTED: Cell<bool> = const { Cell::new(false) };
}

/// Remaining budget of an object.
pub(crate) struct Budget {
    left: usize,
}

impl Budget {
    pub(crate) fn new() -> Self {
        Self { left: PER_OBJECT }
    }

    /// Evaluates one rule. Returns `None` if the budget of the rule or of the object is exhausted.
    pub(crate) fn spend<T>(&mut self, evaluate: impl FnOnce() -> T) -> Option<T> {
        let allowed = self.left.min(PER_RULE);
        LEFT.set(allowed);
        EXHAUSTED.set(allowed == 0);
        let result = evaluate();
        self.left -= allowed - LEFT.get();
        (!EXHAUSTED.get()).then_some(result)
    }
}

/// Charges the rule that is being evaluated. Returns false if its budget is exhausted.
pub(crate) fn take(units: usize) -> bool {
    match LEFT.get().checked_sub(units) {
        Some(left) if !EXHAUSTED.get() => {
            LEFT.set(left);
            true
        }
        _ => {
            EXHAUSTED.set(true);
            false
        }
    }
}

pub(crate) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    cel::add_overload!(env, fn step: () -> CelBool, name = STEP)?;
    env.add_overload(READ, "read", vec![DYN_TYPE], read)?;
    env.add_overload(READ_TEXT, "read_text", vec![DYN_TYPE], read_text)?;
    env.add_overload(
        EACH_WITH_EACH,
        "each_with_each",
        vec![DYN_TYPE],
        each_with_each,
    )?;
    env.add_overload(WEIGHED, "weighed", vec![DYN_TYPE], weighed)
}

fn step() -> CelBool {
    take(1).into()
}

fn weighed<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    paid(arguments, weigh)
}

fn read<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    paid(arguments, |value| {
        let values = take(values(value) / VALUES_READ_PER_UNIT);
        values && pays_for_text(value, BYTES_READ_PER_UNIT)
    })
}

fn read_text<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    paid(arguments, |value| pays_for_text(value, BYTES_READ_PER_UNIT))
}

fn each_with_each<'b, 'v>(
    arguments: Vec<CowVal<'b, 'v>>,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    paid(arguments, |value| {
        let size = value.as_sizer().map_or(0, |sizer| {
            usize::try_from(*sizer.size().inner()).unwrap_or(0)
        });
        take(size.saturating_mul(size) / COMPARISONS_PER_UNIT)
    })
}

/// Returns the value itself after it has been charged.
fn paid<'b, 'v>(
    mut arguments: Vec<CowVal<'b, 'v>>,
    pays: impl Fn(&dyn Val) -> bool,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let failed = |problem: &str| ExecutionError::function_error(WEIGHED, problem);
    let value = arguments.pop().ok_or_else(|| failed("no value"))?;
    if pays(value.as_ref()) {
        Ok(value)
    } else {
        Err(failed("the cost budget is exhausted"))
    }
}

fn pays_for_text(value: &dyn Val, bytes_per_unit: usize) -> bool {
    let text = (value.get_type().kind() == Kind::String)
        .then(|| value.downcast_ref::<CelString>())
        .flatten();
    text.is_none_or(|text| take(text.inner().len() / bytes_per_unit))
}

/// Returns the number of values within a list or map, at any depth.
fn values(value: &dyn Val) -> usize {
    if !matches!(value.get_type().kind(), Kind::List | Kind::Map) {
        return 0;
    }
    let Some(iterable) = value.as_iterable() else {
        return 0;
    };
    let indexer = (value.get_type().kind() == Kind::Map)
        .then(|| value.as_indexer())
        .flatten();
    let mut items = iterable.iter();
    let mut count = 0;
    while let Some(item) = items.next() {
        let below = match indexer {
            Some(indexer) => indexer.get(item).map_or(0, |value| values(value.as_ref())),
            None => values(item),
        };
        count += 1 + below;
    }
    count
}

/// Charges for a whole value, as if it were newly created.
pub(crate) fn weigh(value: &dyn Val) -> bool {
    match value.get_type().kind() {
        Kind::String => pays_for_text(value, BYTES_PER_UNIT),
        Kind::List | Kind::Map => {
            let Some(iterable) = value.as_iterable() else {
                return true;
            };
            let indexer = (value.get_type().kind() == Kind::Map)
                .then(|| value.as_indexer())
                .flatten();
            let mut items = iterable.iter();
            while let Some(item) = items.next() {
                let value = indexer.and_then(|indexer| indexer.get(item).ok());
                if !take(1) || !weigh(item) || !value.is_none_or(|value| weigh(value.as_ref())) {
                    return false;
                }
            }
            true
        }
        _ => true,
    }
}
