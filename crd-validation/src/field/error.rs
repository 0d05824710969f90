//! Error of one field. It prints exactly as `field.Error` of apimachinery.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use serde_json::Value;

use crate::bounded::{AND_MORE, Reported};
use crate::field::path::FieldPath;
use crate::field::text::{BoundedText, MAX_DETAIL_BYTES, MAX_VALUE_BYTES, shortened};
use crate::format::go_fmt;

/// Type of a field error, as in `causes[].reason` of an API server response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ErrorType {
    /// A requested value does not exist.
    NotFound,
    /// A required value is missing.
    Required,
    /// Two values that must differ are equal.
    Duplicate,
    /// A value is malformed or out of range.
    Invalid,
    /// A value is not in the enumeration.
    NotSupported,
    /// A well-formed value is not permitted here.
    Forbidden,
    /// A string is longer than allowed.
    TooLong,
    /// A string is shorter than allowed.
    TooShort,
    /// A list or map has more items than allowed.
    TooMany,
    /// A list or map has fewer items than allowed.
    TooFew,
    /// An internal error that the user did not cause.
    Internal,
    /// A value has the wrong JSON type.
    TypeInvalid,
    /// A valid value, of which its author may want to know something. Kubernetes has no such type: it sends warnings as text.
    Warning,
}

impl ErrorType {
    /// Returns the machine-readable name, as in `details.causes[].reason`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooShort => "FieldValueTooShort",
            Self::TooMany => "FieldValueTooMany",
            Self::TooFew => "FieldValueTooFew",
            Self::Internal => "InternalError",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Warning => "Warning",
        }
    }

    /// Returns the words with which a message begins.
    fn label(self) -> Option<&'static str> {
        Some(match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooShort => "Too short",
            Self::TooMany => "Too many",
            Self::TooFew => "Too few",
            Self::Internal => "Internal error",
            Self::Warning => return None,
        })
    }

    /// Returns true if messages of this type contain the offending value.
    fn prints_value(self) -> bool {
        !matches!(
            self,
            Self::Required | Self::Forbidden | Self::TooLong | Self::TooShort | Self::Internal
        )
    }
}

/// Value that caused an error.
#[derive(Clone, Debug, PartialEq)]
pub enum BadValue {
    /// The value is not printed: it is a whole object or list, or a secret.
    Omitted,
    /// The value is printed. A long text is shortened.
    Value(Value),
    /// Beginning of a long list or object, as it is printed.
    Shortened(String),
}

impl BadValue {
    /// Returns the value as it is printed in a message.
    fn printed(&self) -> Option<String> {
        match self {
            Self::Omitted => None,
            Self::Shortened(text) => Some(text.clone()),
            Self::Value(Value::String(text)) => Some(go_fmt::quote(text)),
            Self::Value(Value::Number(number)) => Some(go_fmt::plain_number(number)),
            Self::Value(other) => Some(go_fmt::json(other)),
        }
    }
}

impl From<&str> for BadValue {
    fn from(text: &str) -> Self {
        Self::Value(shortened(text, MAX_VALUE_BYTES).into())
    }
}

impl From<String> for BadValue {
    fn from(text: String) -> Self {
        if text.len() <= MAX_VALUE_BYTES {
            return Self::Value(text.into());
        }
        Self::from(text.as_str())
    }
}

impl From<&String> for BadValue {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<&Value> for BadValue {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => Self::Value(value.clone()),
            Value::String(text) => Self::from(text.as_str()),
            Value::Array(_) | Value::Object(_) => {
                let mut printed = BoundedText::new(MAX_VALUE_BYTES);
                match go_fmt::write_json(value, &mut printed) {
                    Ok(()) => Self::Value(value.clone()),
                    Err(fmt::Error) => Self::Shortened(printed.finish()),
                }
            }
        }
    }
}

impl From<Value> for BadValue {
    fn from(value: Value) -> Self {
        match value {
            Value::String(text) => Self::from(text),
            Value::Array(_) | Value::Object(_) => Self::from(&value),
            scalar => Self::Value(scalar),
        }
    }
}

impl<T: Into<Self>> From<Option<T>> for BadValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Value(Value::Null), Into::into)
    }
}

macro_rules! from_scalars {
    ($($scalar:ty),*) => {$(
        impl From<$scalar> for BadValue {
            fn from(scalar: $scalar) -> Self {
                Self::Value(scalar.into())
            }
        }
    )*};
}

from_scalars!(
    bool,
    i8,
    i16,
    i32,
    i64,
    isize,
    u8,
    u16,
    u32,
    u64,
    usize,
    f32,
    f64,
    serde_json::Number
);

/// Error of one field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// Type of the error.
    pub error_type: ErrorType,
    /// Path of the field.
    pub path: FieldPath,
    /// Value of the field.
    pub bad_value: BadValue,
    /// Detail: what is allowed and what to do.
    pub detail: String,
    /// Byte range of the value to which the error applies, if the value is a text with several parts, such as a
    /// program. The detail already contains the position in the program; this range is for tools that display
    /// the text.
    pub span: Option<Range<usize>>,
    /// Ways to correct the error, for tools that print the detail without the excerpt of the text that follows its
    /// first line. The excerpt already contains them.
    pub hints: Vec<String>,
}

impl FieldError {
    fn new(
        error_type: ErrorType,
        path: FieldPath,
        bad_value: BadValue,
        detail: impl Into<String>,
    ) -> Self {
        let mut detail = detail.into();
        if let Cow::Owned(shortened) = shortened(&detail, MAX_DETAIL_BYTES) {
            detail = shortened;
        }
        Self {
            error_type,
            path,
            bad_value,
            detail,
            span: None,
            hints: Vec::new(),
        }
    }

    /// Adds ways to correct the error.
    #[must_use]
    pub fn with_hints(self, hints: Vec<String>) -> Self {
        Self { hints, ..self }
    }

    /// Restricts the error to a byte range of the value.
    #[must_use]
    pub fn with_span(self, bytes: Option<Range<usize>>) -> Self {
        Self {
            span: bytes,
            ..self
        }
    }

    /// Creates an error for a malformed or out-of-range value.
    pub fn invalid(path: FieldPath, value: impl Into<BadValue>, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Invalid, path, value.into(), detail)
    }

    /// Creates an error for a malformed value that must not be printed: a secret, or a value too large to be
    /// useful.
    pub fn invalid_hidden(path: FieldPath, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Invalid, path, BadValue::Omitted, detail)
    }

    /// Creates an error for a value of the wrong JSON type.
    pub fn type_invalid(
        path: FieldPath,
        value: impl Into<BadValue>,
        detail: impl Into<String>,
    ) -> Self {
        Self::new(ErrorType::TypeInvalid, path, value.into(), detail)
    }

    /// Creates an error for a required value that is missing.
    pub fn required(path: FieldPath, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Required, path, BadValue::Omitted, detail)
    }

    /// Creates an error for a well-formed value that is not permitted here.
    pub fn forbidden(path: FieldPath, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Forbidden, path, BadValue::Omitted, detail)
    }

    /// Creates an error for a requested value that does not exist.
    pub fn not_found(path: FieldPath, value: impl Into<BadValue>) -> Self {
        Self::new(ErrorType::NotFound, path, value.into(), "")
    }

    /// Creates an error for two values that must differ and are equal.
    pub fn duplicate(path: FieldPath, value: impl Into<BadValue>) -> Self {
        Self::new(ErrorType::Duplicate, path, value.into(), "")
    }

    /// Creates an error for a value that is not in the enumeration.
    pub fn not_supported(
        path: FieldPath,
        value: impl Into<BadValue>,
        supported: &[String],
    ) -> Self {
        let detail = if supported.is_empty() {
            String::new()
        } else {
            let quoted: Vec<_> = supported.iter().map(|value| go_fmt::quote(value)).collect();
            format!("supported values: {}", quoted.join(", "))
        };
        Self::new(ErrorType::NotSupported, path, value.into(), detail)
    }

    /// Creates an error for a string of more than `max` bytes.
    pub fn too_long(path: FieldPath, max: u64) -> Self {
        let unit = if max == 1 { "byte" } else { "bytes" };
        Self::new(
            ErrorType::TooLong,
            path,
            BadValue::Omitted,
            format!("may not be more than {max} {unit}"),
        )
    }

    /// Creates an error for a string that is shorter than allowed.
    pub fn too_short(path: FieldPath, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::TooShort, path, BadValue::Omitted, detail)
    }

    /// Creates an error for a list or map of `actual` items, fewer than allowed.
    pub fn too_few(path: FieldPath, actual: usize, detail: impl Into<String>) -> Self {
        let actual = BadValue::Value(actual.into());
        Self::new(ErrorType::TooFew, path, actual, detail)
    }

    /// Creates an error for a list or map of `actual` items, if at most `max` are allowed.
    pub fn too_many(path: FieldPath, actual: usize, max: u64) -> Self {
        let unit = if max == 1 { "item" } else { "items" };
        Self::new(
            ErrorType::TooMany,
            path,
            BadValue::Value(actual.into()),
            format!("must have at most {max} {unit}"),
        )
    }

    /// Creates an error for a failure that the user did not cause.
    pub fn internal(path: FieldPath, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Internal, path, BadValue::Omitted, detail)
    }

    /// Turns the error of a rule that only warns into a warning: what it reports is valid, and its message does not begin
    /// with "Invalid value". An error without a detail, or of another type, says by its type what is wrong.
    #[must_use]
    pub fn into_warning(self) -> Self {
        let is_explained = !self.detail.is_empty();
        let error_type = match self.error_type {
            ErrorType::Invalid | ErrorType::Forbidden if is_explained => ErrorType::Warning,
            other => other,
        };
        Self { error_type, ..self }
    }

    /// Returns the message without the path, as in `details.causes[].message`.
    #[must_use]
    pub fn body(&self) -> String {
        let shown = if self.error_type.prints_value() {
            self.bad_value.printed()
        } else {
            None
        };
        let detail = (!self.detail.is_empty()).then_some(self.detail.as_str());
        let parts = [self.error_type.label(), shown.as_deref(), detail];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        parts.join(": ")
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}

/// Errors in the order in which they are reported: those of one text in the order of the text, and those of the whole text
/// last.
impl Reported for FieldError {
    fn order(&self, other: &Self) -> Ordering {
        let start = |error: &Self| error.span.as_ref().map_or(usize::MAX, |bytes| bytes.start);
        let by_location = (&self.path, start(self)).cmp(&(&other.path, start(other)));
        by_location.then_with(|| self.body().cmp(&other.body()))
    }

    fn is_internal(&self) -> bool {
        self.error_type == ErrorType::Internal
    }
}

/// Maximum length of the message of all errors of an object, in bytes. It is that of the message of a condition.
pub const MAX_MESSAGE_BYTES: usize = 32 << 10;

/// Joins errors to one message, as the aggregate of apimachinery prints them: a single error without brackets,
/// several errors in brackets, and repeated messages only once. If the message would become too long, or if `has_more` is
/// true, it ends with [`AND_MORE`].
#[must_use]
pub fn aggregate(errors: impl IntoIterator<Item = impl fmt::Display>, has_more: bool) -> String {
    let room = MAX_MESSAGE_BYTES - "[, ]".len() - AND_MORE.len();
    let mut messages: Vec<String> = Vec::new();
    let mut seen = BTreeSet::new();
    let mut bytes = 0;
    let mut has_more = has_more;
    for error in errors {
        let message = error.to_string();
        if seen.contains(&message) {
            continue;
        }
        bytes += message.len() + ", ".len();
        if bytes > room {
            has_more = true;
            break;
        }
        seen.insert(message.clone());
        messages.push(message);
    }
    if has_more {
        messages.push(AND_MORE.to_owned());
    }
    match messages.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_warning_shows_the_value_and_does_not_call_it_invalid() {
        let warning = FieldError::invalid(FieldPath::new("spec.a"), 3, "takes effect at night");
        let warning = warning.into_warning();
        assert_eq!(warning.to_string(), "spec.a: 3: takes effect at night");
        let hidden = FieldError::forbidden(FieldPath::new("spec.a"), "is replaced at night");
        let hidden = hidden.into_warning();
        assert_eq!(hidden.to_string(), "spec.a: is replaced at night");
        let unexplained = FieldError::duplicate(FieldPath::new("spec.a"), "b").into_warning();
        assert_eq!(unexplained.to_string(), r#"spec.a: Duplicate value: "b""#);
    }

    #[test]
    fn errors_print_as_apimachinery_prints_them() {
        let at = || FieldPath::new("spec.a");
        for (error, printed) in [
            (
                FieldError::invalid(at(), "x\"y", "no"),
                r#"spec.a: Invalid value: "x\"y": no"#,
            ),
            (
                FieldError::invalid(at(), 7, "no"),
                "spec.a: Invalid value: 7: no",
            ),
            (
                FieldError::invalid(at(), Value::Null, "no"),
                "spec.a: Invalid value: null: no",
            ),
            (
                FieldError::invalid(at(), json!({"k": [true]}), "no"),
                r#"spec.a: Invalid value: {"k":[true]}: no"#,
            ),
            (
                FieldError::invalid_hidden(at(), "no"),
                "spec.a: Invalid value: no",
            ),
            (
                FieldError::type_invalid(at(), "x", "no"),
                r#"spec.a: Invalid value: "x": no"#,
            ),
            (FieldError::required(at(), ""), "spec.a: Required value"),
            (FieldError::forbidden(at(), "no"), "spec.a: Forbidden: no"),
            (
                FieldError::duplicate(at(), "x"),
                r#"spec.a: Duplicate value: "x""#,
            ),
            (
                FieldError::not_supported(at(), "x", &["a".into(), "b".into()]),
                r#"spec.a: Unsupported value: "x": supported values: "a", "b""#,
            ),
            (
                FieldError::too_long(at(), 1),
                "spec.a: Too long: may not be more than 1 byte",
            ),
            (
                FieldError::too_many(at(), 3, 2),
                "spec.a: Too many: 3: must have at most 2 items",
            ),
            (
                FieldError::internal(at(), "oops"),
                "spec.a: Internal error: oops",
            ),
        ] {
            assert_eq!(error.to_string(), printed);
        }
    }

    #[test]
    fn an_aggregate_lists_each_message_once_and_brackets_only_several() {
        let a = FieldError::required(FieldPath::new("a"), "");
        let b = FieldError::required(FieldPath::new("b"), "");
        assert_eq!(aggregate([&a], false), "a: Required value");
        assert_eq!(aggregate([&a, &a], false), "a: Required value");
        assert_eq!(
            aggregate([&a, &b], false),
            "[a: Required value, b: Required value]"
        );
        assert_eq!(
            aggregate([&a], true),
            "[a: Required value, and more, which are not shown]"
        );
    }

    #[test]
    fn an_aggregate_that_becomes_too_long_ends_with_a_whole_error() {
        let error =
            |index: usize| FieldError::required(FieldPath::root().index(index), "x".repeat(1000));
        let message = aggregate((0..1000).map(error), false);
        assert!(message.len() <= MAX_MESSAGE_BYTES, "{}", message.len());
        assert!(
            message.len() > MAX_MESSAGE_BYTES - 2000,
            "{}",
            message.len()
        );
        assert!(message.ends_with("xxx, and more, which are not shown]"));
    }

    #[test]
    fn one_error_stays_short_whatever_value_and_detail_it_has() {
        let at = || FieldPath::new("spec.a");
        let text = "\u{10ffff}".repeat(1 << 20);
        let list = Value::from(vec![text.as_str(); 3]);
        for error in [
            FieldError::invalid(at(), text.as_str(), text.as_str()),
            FieldError::invalid(at(), Value::from(text.as_str()), text.as_str()),
            FieldError::invalid(at(), list.clone(), text.as_str()),
            FieldError::not_supported(at(), &list, std::slice::from_ref(&text)),
        ] {
            let length = error.to_string().len();
            assert!(length < 10 << 10, "{length}");
        }
        let at_maximum = "x".repeat(MAX_VALUE_BYTES);
        let error = FieldError::invalid(at(), at_maximum.as_str(), "no");
        assert_eq!(
            error.to_string(),
            format!("spec.a: Invalid value: \"{at_maximum}\": no")
        );
    }
}
