//! Values whose content only functions can read.

/// Makes a Rust type a CEL value that can be passed to functions and compared for equality.
macro_rules! opaque {
    ($name:ident, $cel_name:literal) => {
        impl ::cel::common::value::Val for $name {
            fn get_type(&self) -> &::cel::common::types::Type {
                <Self as ::cel::common::value::Val>::cel_type()
            }

            fn cel_type() -> &'static ::cel::common::types::Type {
                static TYPE: ::cel::common::types::Type =
                    ::cel::common::types::Type::new_unspecified_type($cel_name);
                &TYPE
            }

            fn equals(&self, other: &dyn ::cel::common::value::Val) -> bool {
                other
                    .downcast_ref::<$name>()
                    .is_some_and(|other| self == other)
            }

            fn clone_as_boxed<'v>(&self) -> Box<dyn ::cel::common::value::Val + 'v> {
                Box::new(self.clone())
            }

            fn as_any(&self) -> Option<&dyn std::any::Any> {
                Some(self)
            }
        }

        impl ::cel::common::value::StaticVal for $name {}
    };
}

pub(super) use opaque;
