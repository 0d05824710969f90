//! What a rule may cost, so that no rule and no object can keep the judge busy.
//!
//! The limit counts steps and bytes, never time: the same object gets the same verdict on every
//! machine. Rules are instrumented when they are compiled: each step of a comprehension asks first,
//! and what it collects is weighed.

use std::cell::Cell;

use ::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators,
};
use ::cel::common::types::{CelBool, CelString, DYN_TYPE, Kind};
use ::cel::common::value::{CowVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError};

use crate::cel::library::{
    self, BOUNDED_JOIN, BOUNDED_REPLACE, COUNTED, DURATION, IN_UTC, PRINTED, SPELLED, TIMESTAMP,
};

/// What one rule may take on one value. The API server allows a million units of cost, of which each
/// step takes several: <https://pkg.go.dev/k8s.io/apiserver/pkg/apis/cel#pkg-constants>.
const PER_RULE: usize = 1_000_000;
/// What all rules may take on one object.
const PER_OBJECT: usize = 10_000_000;
/// How much text weighs as much as a step.
pub(super) const BYTES_PER_UNIT: usize = 64;

/// How many values are compared with each other in about the time of a step.
pub(super) const COMPARISONS_PER_UNIT: usize = 8;

const STEP: &str = "@step";
const WEIGHED: &str = "@weighed";
const READ: &str = "@read";
const READ_TEXT: &str = "@read_text";
const EACH_WITH_EACH: &str = "@each_with_each";
/// How much text is read in about the time of a step.
const BYTES_READ_PER_UNIT: usize = 1024;
/// How many values are.
const VALUES_READ_PER_UNIT: usize = 64;

thread_local! {
    static LEFT: Cell<usize> = const { Cell::new(PER_RULE) };
    static EXHAUSTED: Cell<bool> = const { Cell::new(false) };
}

/// What is left for an object.
pub(crate) struct Budget {
    left: usize,
}

impl Budget {
    pub(crate) fn new() -> Self {
        Self { left: PER_OBJECT }
    }

    /// Evaluates one rule. `None` when it, or all before it, took too much.
    pub(super) fn spend<T>(&mut self, evaluate: impl FnOnce() -> T) -> Option<T> {
        let allowed = self.left.min(PER_RULE);
        LEFT.set(allowed);
        EXHAUSTED.set(allowed == 0);
        let result = evaluate();
        self.left -= allowed - LEFT.get();
        (!EXHAUSTED.get()).then_some(result)
    }
}

/// Takes from the budget of the rule that is being evaluated; false when it is not enough.
pub(super) fn take(units: usize) -> bool {
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

pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
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

/// The value itself, once it has been paid for.
fn paid<'b, 'v>(
    mut arguments: Vec<CowVal<'b, 'v>>,
    pays: impl Fn(&dyn Val) -> bool,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let failed = |problem: &str| ExecutionError::function_error(WEIGHED, problem);
    let value = arguments.pop().ok_or_else(|| failed("no value"))?;
    if pays(value.as_ref()) {
        Ok(value)
    } else {
        Err(failed("the budget is used up"))
    }
}

fn pays_for_text(value: &dyn Val, bytes_per_unit: usize) -> bool {
    let text = (value.get_type().kind() == Kind::String)
        .then(|| value.downcast_ref::<CelString>())
        .flatten();
    text.is_none_or(|text| take(text.inner().len() / bytes_per_unit))
}

/// How many values are within a list or map, at any depth.
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

fn weigh(value: &dyn Val) -> bool {
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

/// Makes every comprehension of an expression ask before each step, every function within one pay for
/// what it reads, and what can grow pay for what it makes. Calls of functions that differ here reach
/// ours.
pub(super) fn instrument(expression: &mut IdedExpr) {
    walk(expression, false);
}

fn walk(expression: &mut IdedExpr, repeated: bool) {
    let below = |part: &mut IdedExpr| walk(part, repeated);
    match &mut expression.expr {
        Expr::Call(call) => {
            call.target.iter_mut().for_each(|target| below(target));
            call.args.iter_mut().for_each(below);
            match (
                call.func_name.as_str(),
                call.target.is_some(),
                call.args.as_mut_slice(),
            ) {
                ("join", true, _) => BOUNDED_JOIN.clone_into(&mut call.func_name),
                ("replace", true, _) => BOUNDED_REPLACE.clone_into(&mut call.func_name),
                ("timestamp", false, _) => TIMESTAMP.clone_into(&mut call.func_name),
                ("duration", false, _) => DURATION.clone_into(&mut call.func_name),
                ("string", false, [value]) => wrap(value, PRINTED),
                ("int", false, [value]) => wrap(value, COUNTED),
                ("distinct", true, []) => {
                    if let Some(target) = &mut call.target {
                        wrap(target, EACH_WITH_EACH);
                    }
                }
                (getter, true, []) if getter.starts_with("get") => {
                    if let Some(target) = &mut call.target {
                        wrap(target, IN_UTC);
                    }
                }
                ("format", true, [arguments]) => {
                    if let Some(target) = &mut call.target {
                        library::prepare_format(target, arguments);
                    }
                    wrap(arguments, SPELLED);
                }
                _ => {}
            }
            // Once, a function reads no more than the object holds.
            if repeated {
                pay_for_reading(call);
            }
            if grows(call) {
                wrap(expression, WEIGHED);
            }
        }
        Expr::Comprehension(comprehension) => {
            let ComprehensionExpr {
                iter_range,
                accu_init,
                loop_cond,
                loop_step,
                result,
                ..
            } = &mut **comprehension;
            for part in [iter_range, accu_init, result] {
                below(part);
            }
            walk(loop_cond, true);
            walk(loop_step, true);
            guard(loop_step);
        }
        Expr::List(list) => list.elements.iter_mut().for_each(below),
        Expr::Map(map) => map
            .entries
            .iter_mut()
            .for_each(|entry| match &mut entry.expr {
                EntryExpr::MapEntry(entry) => {
                    below(&mut entry.key);
                    below(&mut entry.value);
                }
                EntryExpr::StructField(field) => below(&mut field.value),
            }),
        Expr::Select(select) => below(&mut select.operand),
        Expr::Struct(fields) => fields
            .entries
            .iter_mut()
            .for_each(|entry| match &mut entry.expr {
                EntryExpr::MapEntry(entry) => below(&mut entry.value),
                EntryExpr::StructField(field) => below(&mut field.value),
            }),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
}

/// Whether a call makes more of what it is given, so that a chain of them, as long as an expression may
/// be, makes any amount.
fn grows(call: &mut CallExpr) -> bool {
    match call.func_name.as_str() {
        // What a step collects is weighed by itself.
        operators::ADD => collected(&mut call.args).is_none(),
        name => matches!(name, "quote" | "strings.quote"),
    }
}

/// Makes a function pay for its operands, if it looks at all of them.
fn pay_for_reading(call: &mut CallExpr) {
    let reads = match call.func_name.as_str() {
        operators::EQUALS
        | operators::NOT_EQUALS
        | operators::LESS
        | operators::LESS_EQUALS
        | operators::GREATER
        | operators::GREATER_EQUALS
        | operators::IN => READ,
        // Of a list, it is known.
        "size" => READ_TEXT,
        name if name.starts_with(|c: char| c.is_ascii_alphabetic()) => READ,
        _ => return,
    };
    let operands = call.target.iter_mut().map(|target| &mut **target);
    for operand in operands.chain(&mut call.args) {
        let is_constant = match &operand.expr {
            Expr::Literal(_) => true,
            // The `sets` of `sets.contains`.
            Expr::Ident(name) => library::has_name(name),
            _ => false,
        };
        if !is_constant {
            wrap(operand, reads);
        }
    }
}

/// What stands below the payment, if there is one.
pub(super) fn unpaid(expression: &IdedExpr) -> &IdedExpr {
    match &expression.expr {
        Expr::Call(call)
            if matches!(
                call.func_name.as_str(),
                READ | READ_TEXT | WEIGHED | EACH_WITH_EACH
            ) =>
        {
            call.args.first().map_or(expression, unpaid)
        }
        _ => expression,
    }
}

/// Guards one step. The shapes are those that macros make; what a step comes to when the budget is
/// used up ends the comprehension, or does nothing until it ends.
fn guard(step: &mut IdedExpr) {
    let Expr::Call(call) = &mut step.expr else {
        return;
    };
    match (call.func_name.as_str(), call.args.as_mut_slice()) {
        (operators::LOGICAL_AND, [_, predicate]) => ask(predicate, false),
        (operators::LOGICAL_OR, [_, predicate]) => ask(predicate, true),
        (operators::CONDITIONAL, [condition, taken, _]) => {
            ask(condition, false);
            if let Expr::Call(call) = &mut taken.expr {
                collected(&mut call.args).into_iter().for_each(weigh_first);
            }
        }
        (operators::ADD, args) => {
            if let Some(element) = collected(args) {
                weigh_first(element);
                ask(element, false);
            }
        }
        _ => {}
    }
}

/// What `@result + [e]` adds to the result.
fn collected(args: &mut [IdedExpr]) -> Option<&mut IdedExpr> {
    match args {
        [
            _,
            IdedExpr {
                expr: Expr::List(list),
                ..
            },
        ] => list.elements.first_mut(),
        _ => None,
    }
}

/// `e` as `@step() ? e : otherwise`.
fn ask(expression: &mut IdedExpr, otherwise: bool) {
    let asked = node(expression.id, call(STEP, vec![]));
    let otherwise = node(
        expression.id,
        Expr::Literal(LiteralValue::Boolean(otherwise.into())),
    );
    let id = expression.id;
    let inner = std::mem::take(expression);
    *expression = node(
        id,
        call(operators::CONDITIONAL, vec![asked, inner, otherwise]),
    );
}

fn weigh_first(expression: &mut IdedExpr) {
    wrap(expression, WEIGHED);
}

/// `e` as `function(e)`.
fn wrap(expression: &mut IdedExpr, function: &str) {
    let id = expression.id;
    let inner = std::mem::take(expression);
    *expression = node(id, call(function, vec![inner]));
}

fn node(id: u64, expr: Expr) -> IdedExpr {
    IdedExpr { id, expr }
}

fn call(function: &str, args: Vec<IdedExpr>) -> Expr {
    Expr::Call(CallExpr {
        func_name: function.to_owned(),
        target: None,
        args,
    })
}
