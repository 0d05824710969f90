//! Error of one field. It prints exactly as `field.Error` of apimachinery.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use serde_json::Value;

use crate::field::path::FieldPath;
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
        }
    }

    fn label(self) -> &'static str {
        match self {
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
        }
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
    /// The value is printed.
    Value(Value),
}

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
        Self {
            error_type,
            path,
            bad_value,
            detail: detail.into(),
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
    pub fn invalid(path: FieldPath, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(
            ErrorType::Invalid,
            path,
            BadValue::Value(value.into()),
            detail,
        )
    }

    /// Creates an error for a malformed value that must not be printed: a secret, or a value too large to be
    /// useful.
    pub fn invalid_hidden(path: FieldPath, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Invalid, path, BadValue::Omitted, detail)
    }

    /// Creates an error for a value of the wrong JSON type.
    pub fn type_invalid(
        path: FieldPath,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self::new(
            ErrorType::TypeInvalid,
            path,
            BadValue::Value(value.into()),
            detail,
        )
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
    pub fn not_found(path: FieldPath, value: impl Into<Value>) -> Self {
        let value = BadValue::Value(value.into());
        Self::new(ErrorType::NotFound, path, value, "")
    }

    /// Creates an error for two values that must differ and are equal.
    pub fn duplicate(path: FieldPath, value: impl Into<Value>) -> Self {
        Self::new(
            ErrorType::Duplicate,
            path,
            BadValue::Value(value.into()),
            "",
        )
    }

    /// Creates an error for a value that is not in the enumeration.
    pub fn not_supported(path: FieldPath, value: impl Into<Value>, supported: &[String]) -> Self {
        let detail = if supported.is_empty() {
            String::new()
        } else {
            let quoted: Vec<_> = supported.iter().map(|value| go_fmt::quote(value)).collect();
            format!("supported values: {}", quoted.join(", "))
        };
        Self::new(
            ErrorType::NotSupported,
            path,
            BadValue::Value(value.into()),
            detail,
        )
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

    /// Returns the message without the path, as in `details.causes[].message`.
    #[must_use]
    pub fn body(&self) -> String {
        let label = self.error_type.label();
        let mut out = match &self.bad_value {
            BadValue::Value(value) if self.error_type.prints_value() => {
                let shown = match value {
                    Value::String(text) => go_fmt::quote(text),
                    Value::Number(number) => go_fmt::plain_number(number),
                    other => go_fmt::json(other),
                };
                format!("{label}: {shown}")
            }
            _ => label.to_owned(),
        };
        if !self.detail.is_empty() {
            out.push_str(": ");
            out.push_str(&self.detail);
        }
        out
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}

/// Joins errors to one message, as the aggregate of apimachinery prints them: a single error without brackets,
/// several errors in brackets, and repeated messages only once.
#[must_use]
pub fn aggregate(errors: impl IntoIterator<Item = impl fmt::Display>) -> String {
    let all: Vec<_> = errors.into_iter().map(|error| error.to_string()).collect();
    let mut seen = BTreeSet::new();
    let messages: Vec<_> = all
        .iter()
        .map(String::as_str)
        .filter(|message| seen.insert(*message))
        .collect();
    match messages.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        many => format!("[{}]", many.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
        assert_eq!(aggregate([&a]), "a: Required value");
        assert_eq!(aggregate([&a, &a]), "a: Required value");
        assert_eq!(
            aggregate([&a, &b]),
            "[a: Required value, b: Required value]"
        );
    }
}
