//! Which calls are answered by functions of ours.

use ::cel::common::ast::CallExpr;

use crate::cel::ast::wrap;
use crate::cel::budget::EACH_WITH_EACH;
use crate::cel::library::conversions::{COUNTED, DURATION, IN_UTC, PRINTED, TIMESTAMP};
use crate::cel::library::formatting;
use crate::cel::library::strings::{BOUNDED_JOIN, BOUNDED_REPLACE, SPELLED};

/// Makes a call of a function that differs here one of ours.
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
            formatting::prepare(text, arguments);
            wrap(arguments, SPELLED);
        }
        _ => {}
    }
}
