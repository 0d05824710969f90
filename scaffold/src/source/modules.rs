//! Modules of a library.

use syn::spanned::Spanned;
use syn::{Attribute, Item, ItemMod};

use crate::edits::{Edits, after_comment};
use crate::source::Source;
use crate::source::imports::Imports;

/// Returns true if a file has a module of a name, or imports something of the name.
pub(crate) fn has_module(source: &Source<'_>, name: &str) -> bool {
    let items = &source.file.items;
    let mut modules = items.iter().filter_map(|item| match item {
        Item::Mod(item) => Some(item),
        _ => None,
    });
    modules.any(|item| item.ident == name) || Imports::of_items(items).has_name(name)
}

/// Adds a module after the last one that is a file; without one, after the documentation of the library.
pub(crate) fn add_module(source: &Source<'_>, name: &str, edits: &mut Edits<'_>) {
    let text = source.text;
    let is_file = |item: &&ItemMod| item.content.is_none() && !is_test(&item.attrs);
    let mut modules = source.file.items.iter().filter_map(|item| match item {
        Item::Mod(item) => Some(item),
        _ => None,
    });
    if let Some(last) = modules.rfind(is_file) {
        let end = after_comment(text, source.range(last.span()).end, "//");
        edits.insert(end, format!("\npub mod {name};"));
        return;
    }
    let attributes = source.file.attrs.iter();
    if let Some(end) = attributes.map(|it| source.range(it.span()).end).max() {
        let end = after_comment(text, end, "//");
        edits.insert(end, format!("\n\npub mod {name};"));
        return;
    }
    edits.insert(after_header(source), format!("pub mod {name};\n\n"));
}

/// Returns the start of the code after a comment that an empty line ends, such as a licence.
fn after_header(source: &Source<'_>) -> usize {
    let mut position = source.start;
    for line in source.text[source.start..].split_inclusive('\n') {
        if line.trim().is_empty() && position > source.start {
            return position + line.len();
        }
        let is_comment = line.starts_with("//") && !line.starts_with("///");
        if !is_comment && !line.trim().is_empty() {
            break;
        }
        position += line.len();
    }
    source.start
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Ident>()
                .is_ok_and(|condition| condition == "test")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_module(text: &str) -> String {
        let source = Source::parse(text).expect("Rust");
        let mut edits = Edits::of(text);
        add_module(&source, "second", &mut edits);
        edits.apply()
    }

    #[test]
    fn a_module_is_added_after_the_last_file() {
        for (before, after) in [
            ("//! A.\n\npub mod a;", "\n\nmod b {}\n"),
            ("mod a; // the first", "\nmod inner {\n    mod nested;\n}\n"),
            (
                "/* mod x; */\npub(crate) mod a;",
                "\n#[cfg(test)]\nmod tests;\n",
            ),
            (
                "\u{feff}#[cfg(feature = \"a\")]\n#[path = \"x.rs\"]\nmod\n    a\n;",
                "\n\nconst A: &str = \"\nmod b;\n\";",
            ),
            ("mod a;", " use a::B;\n"),
        ] {
            let expected = format!("{before}\npub mod second;{after}");
            assert_eq!(with_module(&format!("{before}{after}")), expected);
        }
        assert_eq!(
            with_module("mod a;\r\nmod b; // c\r\n\r\nfn f() {}\r\n"),
            "mod a;\r\nmod b; // c\r\npub mod second;\r\n\r\nfn f() {}\r\n"
        );
    }

    #[test]
    fn without_a_file_a_module_is_added_after_the_documentation() {
        for (before, after) in [
            ("//! A.\n//! B.\n#![warn(x)] // c", "\n\nuse a::b;\n"),
            ("// Licence.\n\n/*! A. */", "\nmod inner {}\n"),
        ] {
            let expected = format!("{before}\n\npub mod second;{after}");
            assert_eq!(with_module(&format!("{before}{after}")), expected);
        }
        assert_eq!(
            with_module("//! A.\r\n//! B.\r\n\r\nuse a::b;\r\n"),
            "//! A.\r\n//! B.\r\n\r\npub mod second;\r\n\r\nuse a::b;\r\n"
        );
        for (before, after) in [
            ("", "/// A.\nfn f() {}\n"),
            ("\u{feff}", "// About f.\nfn f() {}\n"),
            ("// Licence.\n// 2\n\n", "fn f() {}\n"),
        ] {
            let expected = format!("{before}pub mod second;\n\n{after}");
            assert_eq!(with_module(&format!("{before}{after}")), expected);
        }
    }

    #[test]
    fn a_name_in_use_is_found() {
        let has = |text| has_module(&Source::parse(text).expect("Rust"), "second");
        for text in [
            "mod second;",
            "pub mod second {}",
            "#[cfg(test)] mod second;",
            "use a::second;",
            "use a::b as second;",
        ] {
            assert!(has(text), "{text}");
        }
        for text in [
            "// mod second;",
            "mod a { mod second; }",
            "mod seconds;",
            "use second::a;",
        ] {
            assert!(!has(text), "{text}");
        }
    }
}
