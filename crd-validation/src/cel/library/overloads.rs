//! Redirection of calls to the functions of this crate.

use ::cel::common::ast::{CallExpr, Expr, IdedExpr, operators};

use crate::cel::ast::wrap;
use crate::cel::cost::EACH_WITH_EACH;
use crate::cel::library::conversions::{COUNTED, DURATION, IN_UTC, PRINTED, TIMESTAMP};
use crate::cel::library::string_format;
use crate::cel::library::strings::{BOUNDED_JOIN, BOUNDED_REPLACE, SPELLED};
use crate::cel::list_map::AS_LIST;

/// Redirects a call if the `cel` crate implements the function differently.
pub(in crate::cel) fn redirect(call: &mut CallExpr) {
    match (
        call.func_name.as_str(),
        call.target.as_deref_mut(),
        call.args.as_mut_slice(),
    ) {
        ("join", Some(_), _) => BOUNDED_JOIN.clone_into(&mut call.func_name),
        ("replace", Some(_), _) => BOUNDED_REPLACE.clone_into(&mut call.func_name),
        ("timestamp", None, _) => TIMESTAMP.clone_into(&mut call.func_name),
        ("duration", None, _) => DURATION.clone_into(&mut call.func_name),
        ("string", None, [value]) => wrap(value, PRINTED),
        ("int", None, [value]) => wrap(value, COUNTED),
        ("distinct", Some(list), []) => wrap(list, EACH_WITH_EACH),
        (getter, Some(moment), []) if getter.starts_with("get") => wrap(moment, IN_UTC),
        ("format", Some(text), [arguments]) => {
            string_format::prepare(text, arguments);
            wrap(arguments, SPELLED);
        }
        (operators::EQUALS | operators::NOT_EQUALS, None, [left, right])
            if may_be_made(left) && may_be_data(right) =>
        {
            wrap(right, AS_LIST);
        }
        _ => {}
    }
}

/// Returns true if the result may be a list that an expression built. Such a list is compared item by item with
/// any other list.
fn may_be_made(expression: &IdedExpr) -> bool {
    match &expression.expr {
        Expr::Ident(name) => name != "self" && name != "oldSelf",
        Expr::Literal(_) | Expr::Select(_) => false,
        Expr::Call(call) => call.func_name != operators::INDEX,
        _ => true,
    }
}

/// Returns true if the result may be a list from the data.
fn may_be_data(expression: &IdedExpr) -> bool {
    match &expression.expr {
        Expr::Ident(_) | Expr::Select(_) => true,
        Expr::Call(call) => {
            matches!(
                call.func_name.as_str(),
                operators::INDEX | operators::CONDITIONAL
            )
        }
        _ => false,
    }
}
