//! Positions in the Rust files of an author. A file is never printed from its syntax tree: text is inserted.

use proc_macro2::{Span, TokenTree};
use syn::spanned::Spanned;
use syn::{Attribute, Expr, Field, Item, ItemFn, MacroDelimiter, Stmt, Visibility};

/// Pattern of the schema that admits every word.
pub(crate) const WORDS: &str = "^[^<>]*$";

/// Field with a text in the spec of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextField {
    /// Name in Rust.
    pub(crate) name: String,
    /// Name in JSON; none if an attribute sets one of its own.
    pub(crate) json_name: Option<String>,
    pub(crate) is_optional: bool,
    /// First keyword of the schema that the field does not have.
    pub(crate) free_keyword: Option<Keyword>,
    /// If true, another word in the text violates nothing that the schema says of the content.
    pub(crate) admits_words: bool,
    /// Position after the attributes.
    pub(crate) position: usize,
}

/// Keyword of the schema of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keyword {
    /// Bounds of the length.
    Length,
    /// Regular expression.
    Pattern,
}

/// Returns the items of a file; none if it cannot be parsed, or if positions in it would be those of another text: syn drops a byte
/// order mark.
fn parsed(source: &str) -> Option<Vec<Item>> {
    let is_plain = !source.starts_with('\u{feff}');
    let file = is_plain.then(|| syn::parse_file(source).ok()).flatten()?;
    Some(file.items)
}

/// Returns the fields of a struct that contain a text; none if the file has no such struct.
pub(crate) fn text_fields(source: &str, name: &str) -> Option<Vec<TextField>> {
    let items = parsed(source)?;
    let mut structs = items.iter().filter_map(|item| match item {
        Item::Struct(item) => Some(item),
        _ => None,
    });
    let item = structs.find(|item| item.ident == name)?;
    let serde = attributes(source, &item.attrs, "serde");
    let is_camel_case = serde.contains("rename_all=\"camelCase\"");
    let fields = item.fields.iter();
    Some(
        fields
            .filter_map(|field| text_field(source, field, is_camel_case))
            .collect(),
    )
}

fn text_field(source: &str, field: &Field, is_camel_case: bool) -> Option<TextField> {
    let type_name = slice(source, field.ty.span());
    if !["String", "Option<String>"].contains(&type_name.as_str()) {
        return None;
    }
    let ident = field.ident.as_ref()?;
    let name = ident.to_string();
    let serde = attributes(source, &field.attrs, "serde");
    let schema = attributes(source, &field.attrs, "schemars");
    let json_name = if is_camel_case {
        camel_case(&name)
    } else {
        name.clone()
    };
    let first = match &field.vis {
        Visibility::Inherited => ident.span(),
        visibility => visibility.span(),
    };
    Some(TextField {
        json_name: (!serde.contains("rename=")).then_some(json_name),
        is_optional: type_name != "String",
        free_keyword: [(Keyword::Length, "length("), (Keyword::Pattern, "regex(")]
            .into_iter()
            .find_map(|(keyword, attribute)| (!schema.contains(attribute)).then_some(keyword)),
        admits_words: !schema.contains("extend(")
            && schema.matches("regex(").count() == schema.matches(WORDS).count(),
        position: first.byte_range().start,
        name,
    })
}

/// Returns the attributes of a name, without white space.
fn attributes(source: &str, attributes: &[Attribute], name: &str) -> String {
    let of_name = attributes.iter().filter(|it| it.path().is_ident(name));
    of_name.map(|it| slice(source, it.span())).collect()
}

/// Returns a part of the source without white space.
fn slice(source: &str, span: Span) -> String {
    let part = source.get(span.byte_range()).unwrap_or_default();
    part.split_whitespace().collect()
}

fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let mut all = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        all.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        all.push_str(letters.as_str());
    }
    all
}

/// Positions in a file with rules.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RulesFile {
    /// End of the list of rules, before its closing bracket.
    pub(crate) end_of_rules: usize,
    /// If true, a comma must come before another rule.
    pub(crate) needs_comma: bool,
    /// Position of another function: before the tests, or at the end.
    pub(crate) end_of_functions: usize,
}

/// Returns the positions; none if the file has no function `rules` that ends with `vec![…]`.
pub(crate) fn rules_file(source: &str) -> Option<RulesFile> {
    let items = parsed(source)?;
    let mut functions = items.iter().filter_map(|item| match item {
        Item::Fn(item) => Some(item),
        _ => None,
    });
    let function: &ItemFn = functions.find(|item| item.sig.ident == "rules")?;
    let rules = match function.block.stmts.last()? {
        Stmt::Expr(Expr::Macro(list), None) => &list.mac,
        Stmt::Macro(list) if list.semi_token.is_none() => &list.mac,
        _ => return None,
    };
    let MacroDelimiter::Bracket(brackets) = &rules.delimiter else {
        return None;
    };
    if !rules.path.is_ident("vec") {
        return None;
    }
    let last = rules.tokens.clone().into_iter().last();
    let end_of_function = function.span().byte_range().end;
    let tests = items.iter().find_map(|item| match item {
        Item::Mod(item) => {
            let is_conditional = item.attrs.iter().any(|it| it.path().is_ident("cfg"));
            let start = item.attrs.first()?.span().byte_range().start;
            (is_conditional && start > end_of_function).then_some(start)
        }
        _ => None,
    });
    // The rules end where the last of them ends: white space before the bracket stays after the new one.
    let end = last.as_ref().map(|last| last.span().byte_range().end);
    Some(RulesFile {
        end_of_rules: end.unwrap_or(brackets.span.open().byte_range().end),
        needs_comma: last
            .is_some_and(|last| !matches!(&last, TokenTree::Punct(it) if it.as_char() == ',')),
        end_of_functions: tests.unwrap_or(source.len()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_fields_of_a_struct_are_found_with_their_schema() {
        let source = "/// Ä.\n#[serde(rename_all = \"camelCase\")]\npub struct ASpec {\n    \
                      #[schemars(length(min = 1))]\n    pub first_name: String,\n    pub count: u32,\n    \
                      #[serde(rename = \"x\")]\n    #[schemars(regex(pattern = \"a\"))]\n    \
                      second: Option<String>,\n}\n";
        let fields = text_fields(source, "ASpec").expect("a struct");
        let names: Vec<_> = fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["first_name", "second"]);
        assert_eq!(fields[0].json_name.as_deref(), Some("firstName"));
        assert_eq!(fields[1].json_name, None);
        assert_eq!(fields[0].free_keyword, Some(Keyword::Pattern));
        assert_eq!(fields[1].free_keyword, Some(Keyword::Length));
        assert!(!fields[0].is_optional && fields[1].is_optional);
        assert!(fields[0].admits_words && !fields[1].admits_words);
        assert!(source[fields[0].position..].starts_with("pub first_name"));
        assert!(source[fields[1].position..].starts_with("second"));
        assert_eq!(text_fields(source, "Other"), None);
        let kept = "pub struct ASpec { #[serde(default)] pub text: String }";
        let fields = text_fields(kept, "ASpec").expect("a struct");
        assert!(kept[fields[0].position..].starts_with("pub text"));
    }

    #[test]
    fn the_ends_of_the_rules_and_of_the_functions_are_found() {
        let source = "fn rules() -> Vec<Rule<A>> {\n    vec![Rule { id: \"]\" }]\n}\n\n#[cfg(test)]\nmod tests {}\n";
        let file = rules_file(source).expect("rules");
        assert!(source[file.end_of_rules..].starts_with("]\n}"));
        assert!(file.needs_comma);
        assert!(source[file.end_of_functions..].starts_with("#[cfg(test)]"));

        let tests_first = format!("#[cfg(test)]\nmod tests;\n\n{source}");
        let file = rules_file(&tests_first).expect("rules");
        let end = &tests_first[file.end_of_functions..];
        assert_eq!(end, "#[cfg(test)]\nmod tests {}\n");
        assert_eq!(rules_file(&format!("\u{feff}{source}")), None);

        let with_comma = "fn rules() -> Vec<Rule<A>> {\n    vec![\n        Rule {},\n    ]\n}\n";
        let file = rules_file(with_comma).expect("rules");
        assert!(with_comma[file.end_of_rules..].starts_with("\n    ]"));
        assert_eq!(
            (file.needs_comma, file.end_of_functions),
            (false, with_comma.len())
        );

        assert!(rules_file("fn rules() -> Vec<Rule<A>> {\n    vec![]\n}\n").is_some());
        for other in [
            "fn rules() -> Vec<Rule<A>> {\n    let all = vec![];\n    all\n}\n",
            "fn other() {}\n",
            "fn rules( {",
        ] {
            assert_eq!(rules_file(other), None, "{other}");
        }
    }
}
