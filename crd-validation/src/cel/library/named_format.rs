//! Named string formats: `format.dns1123Label().validate(text)`.

use ::cel::common::types::{CelList, CelOptional, CelString};
use ::cel::common::value::{CowVal, Val};
use ::cel::{DeclarationError, Env};

use crate::cel::opaque::opaque;
use crate::format::{self, name};

/// Named string format.
#[derive(Clone, Copy, Debug)]
struct Named {
    name: &'static str,
    holds: fn(&str) -> bool,
}

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

opaque!(Named, "kubernetes.NamedFormat");

/// Declares one function for each format.
macro_rules! formats {
    ($($function:ident: $name:literal, $holds:expr;)*) => {
        $(fn $function() -> Named { Named { name: $name, holds: $holds } })*

        const ALL: &[fn() -> Named] = &[$($function),*];

        fn declare_each(env: &mut Env) -> Result<(), DeclarationError> {
            $(cel::add_overload!(env, fn $function: () -> Named, name = concat!("format.", $name))?;)*
            Ok(())
        }
    };
}

formats! {
    dns1123_label: "dns1123Label", name::is_dns1123_label;
    dns1123_label_prefix: "dns1123LabelPrefix", |text| name::is_dns1123_label(&name::unprefixed(text));
    dns1123_subdomain: "dns1123Subdomain", name::is_dns1123_subdomain;
    dns1123_subdomain_prefix: "dns1123SubdomainPrefix", |text| name::is_dns1123_subdomain(&name::unprefixed(text));
    dns1035_label: "dns1035Label", name::is_dns1035_label;
    dns1035_label_prefix: "dns1035LabelPrefix", |text| name::is_dns1035_label(&name::unprefixed(text));
    qualified_name: "qualifiedName", name::is_qualified_name;
    label_value: "labelValue", name::is_label_value;
    uri: "uri", |text| format::Format::Uri.holds(text);
    uuid: "uuid", |text| format::Format::Uuid.holds(text);
    byte: "byte", |text| format::Format::Byte.holds(text);
    date: "date", |text| format::Format::Date.holds(text);
    datetime: "datetime", |text| format::Format::DateTime.holds(text);
}

pub(crate) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    declare_each(env)?;
    cel::add_overload!(env, fn named: (CelString) -> CelOptional, name = "format.named")?;
    cel::add_member_overload!(env, fn validate: (Named, CelString) -> CelOptional)
}

fn named(name: &CelString<'_>) -> CelOptional<'static> {
    let found = ALL
        .iter()
        .map(|format| format())
        .find(|format| format.name == name.inner());
    match found {
        Some(format) => CelOptional::of(Box::new(format)),
        None => CelOptional::none(),
    }
}

fn validate(format: &Named, text: &CelString<'_>) -> CelOptional<'static> {
    if (format.holds)(text.inner()) {
        return CelOptional::none();
    }
    let problem = CelString::from(format!("does not match the format {}", format.name));
    let problems: Vec<Box<dyn Val>> = vec![Box::new(problem)];
    let list: CowVal<'_, '_> = CowVal::owned(CelList::from(problems));
    CelOptional::of(list.into_owned())
}
