//! Macros that the `cel` crate does not have: comprehensions with two variables.

use std::collections::HashMap;

use ::cel::common::ast::{
    CallExpr, ComprehensionExpr, Expr, IdedExpr, ListExpr, LiteralValue, operators,
};
use ::cel::common::types::{CelInt, CelList, CelMap, CelMapKey, DYN_TYPE, LIST_TYPE};
use ::cel::common::value::{CowVal, Val};
use ::cel::parser::{Macro, MacroExprHelper, ParseError};
use ::cel::{DeclarationError, Env, ExecutionError};

use crate::cel::library::arguments::{argument, failed, items};

/// Converts a map or list to the list of pairs over which a comprehension with two variables iterates.
const ENTRIES: &str = "@entries";
/// Converts a list of pairs to a map.
const TO_MAP: &str = "@to_map";
/// Merges a list of maps into one map.
const MERGE: &str = "@merge";
/// Variable that holds a pair. No rule can use this name.
const PAIR: &str = "@pair";

type Outcome<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;
type Expansion = Result<Option<IdedExpr>, ParseError>;

pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload(ENTRIES, "entries", vec![DYN_TYPE], entries)?;
    env.add_overload(TO_MAP, "to_map", vec![LIST_TYPE], to_map)?;
    env.add_overload(MERGE, "merge", vec![LIST_TYPE], merge)?;
    // Name of the macro, and of the corresponding macro with one variable.
    for (name, one) in [
        ("all", "all"),
        ("exists", "exists"),
        ("existsOne", "exists_one"),
        ("exists_one", "exists_one"),
    ] {
        env.add_macro(Macro::receiver(name, 3, move |helper, target, args| {
            fold(helper, target, args, one)
        }))?;
    }
    for (name, finish) in [
        ("transformList", None),
        ("transformMap", Some(TO_MAP)),
        ("transformMapEntry", Some(MERGE)),
    ] {
        for arity in [3, 4] {
            let expand = move |helper: &mut MacroExprHelper<'_>,
                               target: &mut Option<IdedExpr>,
                               args: &mut Vec<IdedExpr>| {
                transform(helper, target, args, finish)
            };
            env.add_macro(Macro::receiver(name, arity, expand))?;
        }
    }
    Ok(())
}

/// Expands `m.all(k, v, p)` to `@entries(m).all(@pair, p)`, with `k` and `v` bound to the parts of the pair.
fn fold(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
    one: &str,
) -> Expansion {
    let (Some(predicate), Some(second), Some(first)) = (args.pop(), args.pop(), args.pop()) else {
        return Ok(None);
    };
    let (first, second) = (name(helper, &first)?, name(helper, &second)?);
    let range = entries_of(helper, target);
    let predicate = with_pair(helper, &first, &second, predicate);
    Ok(Some(match one {
        "all" => quantifier(helper, range, predicate, true),
        "exists" => quantifier(helper, range, predicate, false),
        _ => exactly_one(helper, range, predicate),
    }))
}

/// Expands `m.transformList(k, v, [p,] e)`, `transformMap` and `transformMapEntry`.
fn transform(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
    finish: Option<&str>,
) -> Expansion {
    let mut given = args.drain(..);
    let (Some(first), Some(second), Some(third)) = (given.next(), given.next(), given.next())
    else {
        return Ok(None);
    };
    let (filter, element) = match given.next() {
        Some(element) => (Some(third), element),
        None => (None, third),
    };
    drop(given);
    let (first, second) = (name(helper, &first)?, name(helper, &second)?);
    let element = if finish == Some(TO_MAP) {
        let key = helper.next_expr(Expr::Ident(first.clone()));
        helper.next_expr(Expr::List(ListExpr::new(vec![key, element])))
    } else {
        element
    };
    let range = entries_of(helper, target);
    let element = with_pair(helper, &first, &second, element);
    let accumulated = result(helper);
    let one = helper.next_expr(Expr::List(ListExpr::new(vec![element])));
    let mut step = call(helper, operators::ADD, vec![accumulated, one]);
    if let Some(filter) = filter {
        let filter = with_pair(helper, &first, &second, filter);
        let unchanged = result(helper);
        step = call(
            helper,
            operators::CONDITIONAL,
            vec![filter, step, unchanged],
        );
    }
    let start = helper.next_expr(Expr::List(ListExpr::new(vec![])));
    let always = boolean(helper, true);
    let list = comprehension(helper, range, start, always, step);
    Ok(Some(match finish {
        Some(finish) => call(helper, finish, vec![list]),
        None => list,
    }))
}

fn quantifier(
    helper: &mut MacroExprHelper<'_>,
    range: IdedExpr,
    predicate: IdedExpr,
    all: bool,
) -> IdedExpr {
    let start = boolean(helper, all);
    let so_far = result(helper);
    let so_far = if all {
        so_far
    } else {
        call(helper, operators::LOGICAL_NOT, vec![so_far])
    };
    let undecided = call(helper, operators::NOT_STRICTLY_FALSE, vec![so_far]);
    let accumulated = result(helper);
    let operator = if all {
        operators::LOGICAL_AND
    } else {
        operators::LOGICAL_OR
    };
    let step = call(helper, operator, vec![accumulated, predicate]);
    comprehension(helper, range, start, undecided, step)
}

fn exactly_one(helper: &mut MacroExprHelper<'_>, range: IdedExpr, predicate: IdedExpr) -> IdedExpr {
    let number = |helper: &mut MacroExprHelper<'_>, value: i64| {
        helper.next_expr(Expr::Literal(LiteralValue::Int(value.into())))
    };
    let (start, one) = (number(helper, 0), number(helper, 1));
    let accumulated = result(helper);
    let more = call(helper, operators::ADD, vec![accumulated, one]);
    let same = result(helper);
    let step = call(helper, operators::CONDITIONAL, vec![predicate, more, same]);
    let always = boolean(helper, true);
    let count = comprehension(helper, range, start, always, step);
    let one = number(helper, 1);
    call(helper, operators::EQUALS, vec![count, one])
}

fn comprehension(
    helper: &mut MacroExprHelper<'_>,
    range: IdedExpr,
    start: IdedExpr,
    condition: IdedExpr,
    step: IdedExpr,
) -> IdedExpr {
    let result = result(helper);
    helper.next_expr(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: range,
        iter_var: PAIR.to_owned(),
        iter_var2: None,
        accu_var: RESULT.to_owned(),
        accu_init: start,
        loop_cond: condition,
        loop_step: step,
        result,
    })))
}

/// Accumulator of every comprehension.
const RESULT: &str = "@result";

fn result(helper: &mut MacroExprHelper<'_>) -> IdedExpr {
    helper.next_expr(Expr::Ident(RESULT.to_owned()))
}

fn boolean(helper: &mut MacroExprHelper<'_>, value: bool) -> IdedExpr {
    helper.next_expr(Expr::Literal(LiteralValue::Boolean(value.into())))
}

fn call(helper: &mut MacroExprHelper<'_>, function: &str, args: Vec<IdedExpr>) -> IdedExpr {
    helper.next_expr(Expr::Call(CallExpr {
        func_name: function.to_owned(),
        target: None,
        args,
    }))
}

fn entries_of(helper: &mut MacroExprHelper<'_>, target: &mut Option<IdedExpr>) -> IdedExpr {
    let target = target.take().expect("the macro is called on a value");
    call(helper, ENTRIES, vec![target])
}

fn name(helper: &MacroExprHelper<'_>, variable: &IdedExpr) -> Result<String, ParseError> {
    match &variable.expr {
        Expr::Ident(name) => Ok(name.clone()),
        _ => Err(helper.new_error(variable.id, "argument must be a simple name")),
    }
}

/// Binds two variables in `body` to the parts of the pair.
fn with_pair(
    helper: &mut MacroExprHelper<'_>,
    first: &str,
    second: &str,
    body: IdedExpr,
) -> IdedExpr {
    let mut bound = body;
    for (variable, index) in [(second, 1), (first, 0)] {
        let pair = helper.next_expr(Expr::Ident(PAIR.to_owned()));
        let index = helper.next_expr(Expr::Literal(LiteralValue::Int(CelInt::from(index))));
        let part = call(helper, operators::INDEX, vec![pair, index]);
        bound = bind(helper, variable, part, bound);
    }
    bound
}

/// Binds a variable in `body` to a value, by a comprehension over an empty list.
fn bind(
    helper: &mut MacroExprHelper<'_>,
    variable: &str,
    value: IdedExpr,
    body: IdedExpr,
) -> IdedExpr {
    let nothing = helper.next_expr(Expr::List(ListExpr::new(vec![])));
    let never = boolean(helper, false);
    let step = helper.next_expr(Expr::Ident(variable.to_owned()));
    helper.next_expr(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: nothing,
        iter_var: "#unused".to_owned(),
        iter_var2: None,
        accu_var: variable.to_owned(),
        accu_init: value,
        loop_cond: never,
        loop_step: step,
        result: body,
    })))
}

fn entries<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Outcome<'b, 'v> {
    let value = argument(&arguments, 0, ENTRIES)?;
    let keys = items(value.as_ref(), ENTRIES)?;
    let is_map = value.get_type().kind() == ::cel::common::types::Kind::Map;
    let mut pairs: Vec<Box<dyn Val + 'v>> = Vec::with_capacity(keys.len());
    for (index, key) in keys.into_iter().enumerate() {
        let pair: Vec<Box<dyn Val + 'v>> = if is_map {
            let indexer = value
                .as_indexer()
                .ok_or_else(|| failed(ENTRIES, "no such overload"))?;
            vec![key.clone_as_boxed(), indexer.get(key)?.into_owned()]
        } else {
            let index = i64::try_from(index).unwrap_or(i64::MAX);
            vec![Box::new(CelInt::from(index)), key.clone_as_boxed()]
        };
        pairs.push(Box::new(CelList::from(pair)));
    }
    Ok(CowVal::owned(CelList::from(pairs)))
}

fn to_map<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Outcome<'b, 'v> {
    let list = argument(&arguments, 0, TO_MAP)?;
    let mut map = HashMap::new();
    for pair in items(list.as_ref(), TO_MAP)? {
        if let [key, value] = items(pair, TO_MAP)?.as_slice() {
            map.insert(
                CelMapKey::try_from(key.clone_as_boxed())
                    .map_err(|_| failed(TO_MAP, "unsupported key type"))?,
                value.clone_as_boxed(),
            );
        }
    }
    Ok(CowVal::owned(CelMap::from(map)))
}

fn merge<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Outcome<'b, 'v> {
    let list = argument(&arguments, 0, MERGE)?;
    let mut map = HashMap::new();
    for entry in items(list.as_ref(), MERGE)? {
        for key in items(entry, MERGE)? {
            let indexer = entry
                .as_indexer()
                .ok_or_else(|| failed(MERGE, "no such overload"))?;
            let value = indexer.get(key)?.into_owned();
            let key = CelMapKey::try_from(key.clone_as_boxed())
                .map_err(|_| failed(MERGE, "unsupported key type"))?;
            if map.insert(key, value).is_some() {
                return Err(failed(MERGE, "insert failed: key already exists"));
            }
        }
    }
    Ok(CowVal::owned(CelMap::from(map)))
}
