//! Fields that the rules of a value read. Other fields need not be converted to CEL values.

use ::cel::common::ast::{Expr, IdedExpr};

use crate::cel::ast::children;

/// Fields of `self` and `oldSelf` that expressions read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FieldUsage {
    /// The fields with these names, as written in expressions.
    Fields(Vec<String>),
    Whole,
}

impl Default for FieldUsage {
    fn default() -> Self {
        Self::Fields(Vec::new())
    }
}

impl FieldUsage {
    /// Returns true if expressions read the field with this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        match self {
            Self::Fields(names) => names.iter().any(|own| own == name),
            Self::Whole => true,
        }
    }

    /// Adds the fields that an expression reads. A local variable with the same name is counted too, which only
    /// converts more than necessary.
    pub(crate) fn add(&mut self, expression: &IdedExpr) {
        match &expression.expr {
            Expr::Ident(name) if is_value(name) => *self = Self::Whole,
            Expr::Select(select) => match &select.operand.expr {
                Expr::Ident(name) if is_value(name) => self.add_field(&select.field),
                _ => self.add(&select.operand),
            },
            _ => {
                for child in children(expression) {
                    self.add(child);
                }
            }
        }
    }

    /// Adds the fields that other expressions read.
    pub(crate) fn merge(&mut self, other: Self) {
        match other {
            Self::Fields(names) => names.iter().for_each(|name| self.add_field(name)),
            Self::Whole => *self = Self::Whole,
        }
    }

    fn add_field(&mut self, name: &str) {
        match self {
            Self::Fields(names) if !names.iter().any(|own| own == name) => {
                names.push(name.to_owned());
            }
            _ => {}
        }
    }
}

fn is_value(name: &str) -> bool {
    matches!(name.trim_start_matches('.'), "self" | "oldSelf")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cel::library;

    fn reach(source: &str) -> FieldUsage {
        let parsed = library::environment().parser().parse(source);
        let mut reach = FieldUsage::default();
        reach.add(&parsed.expect("CEL"));
        reach
    }

    #[test]
    fn access_to_fields_is_distinguished_from_access_to_the_whole_value() {
        let fields =
            |names: &[&str]| FieldUsage::Fields(names.iter().map(|n| (*n).to_owned()).collect());
        for (source, expected) in [
            ("true", fields(&[])),
            ("self.a.b == 1 && has(self.c)", fields(&["a", "c"])),
            ("self.a.all(x, x.b in oldSelf.d)", fields(&["a", "d"])),
            (
                "[self.a].exists(x, {'b': self.e}.b == x)",
                fields(&["a", "e"]),
            ),
            ("self.__namespace__ == ''", fields(&["__namespace__"])),
            ("self == oldSelf", FieldUsage::Whole),
            ("self.a == 1 || size(self) > 1", FieldUsage::Whole),
            ("self.all(k, k != '')", FieldUsage::Whole),
            ("self['a'] == 1", FieldUsage::Whole),
            ("self.?a.hasValue()", FieldUsage::Whole),
            ("'a' in self", FieldUsage::Whole),
            ("[oldSelf].size() == 1", FieldUsage::Whole),
        ] {
            assert_eq!(reach(source), expected, "{source}");
        }
    }
}
