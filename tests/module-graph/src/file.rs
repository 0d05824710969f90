//! Source files: the modules that they define, the items of these, and the paths that they name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, Meta, UseTree, Visibility};

/// Path of a module from the root of its crate.
pub(crate) type ModulePath = Vec<String>;

/// One module: a file, or a block within one.
pub(crate) struct Module {
    pub(crate) file: PathBuf,
    /// Names that the module defines itself.
    pub(crate) items: BTreeSet<String>,
    /// Names that `use` brings in, with the path of each.
    pub(crate) imports: BTreeMap<String, Vec<String>>,
    /// Paths of `use some::path::*`.
    pub(crate) globs: Vec<Vec<String>>,
    /// All paths that its code names. Those of re-exports are not among them.
    pub(crate) paths: BTreeSet<Vec<String>>,
}

/// Reads all modules of a crate from its root file.
pub(crate) fn read_all(root: &Path) -> io::Result<BTreeMap<ModulePath, Module>> {
    let mut modules = BTreeMap::new();
    let folder = root.parent().unwrap_or(Path::new(".")).to_owned();
    read_file(root, &folder, Vec::new(), &mut modules)?;
    Ok(modules)
}

fn read_file(
    file: &Path,
    children: &Path,
    path: ModulePath,
    modules: &mut BTreeMap<ModulePath, Module>,
) -> io::Result<()> {
    let parsed = syn::parse_file(&fs::read_to_string(file)?)
        .map_err(|error| io::Error::other(format!("{}: {error}", file.display())))?;
    read_items(file, children, path, &parsed.items, modules)
}

fn read_items(
    file: &Path,
    children: &Path,
    path: ModulePath,
    items: &[Item],
    modules: &mut BTreeMap<ModulePath, Module>,
) -> io::Result<()> {
    let mut collector = Collector::default();
    for item in items {
        collector.visit_item(item);
    }
    for module in std::mem::take(&mut collector.modules) {
        let name = module.ident.to_string();
        let mut child = path.clone();
        child.push(name.clone());
        match &module.content {
            Some((_, items)) => read_items(file, &children.join(&name), child, items, modules)?,
            None => {
                let own = children.join(format!("{name}.rs"));
                read_file(&own, &children.join(&name), child, modules)?;
            }
        }
    }
    let Collector {
        items,
        imports,
        globs,
        paths,
        ..
    } = collector;
    let module = Module {
        file: file.to_owned(),
        items,
        imports,
        globs,
        paths,
    };
    modules.insert(path, module);
    Ok(())
}

#[derive(Default)]
struct Collector {
    items: BTreeSet<String>,
    imports: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    paths: BTreeSet<Vec<String>>,
    modules: Vec<ItemMod>,
    depth: usize,
}

impl Collector {
    fn import(&mut self, tree: &UseTree, prefix: &[String], is_reexport: bool) {
        let with = |name: &syn::Ident| {
            let mut path = prefix.to_vec();
            path.push(name.to_string());
            path
        };
        match tree {
            UseTree::Path(path) => self.import(&path.tree, &with(&path.ident), is_reexport),
            UseTree::Name(name) if name.ident == "self" => {
                let own = prefix.last().cloned().unwrap_or_default();
                self.name(own, prefix.to_vec(), is_reexport);
            }
            UseTree::Name(name) => {
                self.name(name.ident.to_string(), with(&name.ident), is_reexport);
            }
            UseTree::Rename(rename) => {
                self.name(rename.rename.to_string(), with(&rename.ident), is_reexport);
            }
            UseTree::Glob(_) => self.globs.push(prefix.to_vec()),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, prefix, is_reexport);
                }
            }
        }
    }

    fn name(&mut self, name: String, path: Vec<String>, is_reexport: bool) {
        if !is_reexport {
            self.paths.insert(path.clone());
        }
        self.imports.insert(name, path);
    }

    /// Paths within a macro's arguments, which are tokens and nothing else.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut separators = 2;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if separators < 2 {
                        self.end(&mut path);
                    }
                    path.push(name.to_string());
                    separators = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' && separators < 2 => {
                    separators += 1;
                }
                other => {
                    self.end(&mut path);
                    separators = 2;
                    if let TokenTree::Group(group) = other {
                        self.tokens(group.stream());
                    }
                }
            }
        }
        self.end(&mut path);
    }

    fn end(&mut self, path: &mut Vec<String>) {
        let path = std::mem::take(path);
        // `pub(super)` names no item.
        let is_keyword =
            matches!(path.as_slice(), [one] if ["crate", "self", "super"].contains(&one.as_str()));
        if !path.is_empty() && !is_keyword {
            self.paths.insert(path);
        }
    }
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_test(attributes(item)) {
            return;
        }
        if self.depth == 0 {
            self.items.extend(name(item));
        }
        match item {
            Item::Mod(module) => self.modules.push(module.clone()),
            _ => {
                self.depth += 1;
                visit::visit_item(self, item);
                self.depth -= 1;
            }
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if item.leading_colon.is_some() {
            return;
        }
        let is_reexport = !matches!(item.vis, Visibility::Inherited);
        self.import(&item.tree, &[], is_reexport);
    }

    /// `pub(crate)` names no item.
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names = path.segments.iter().map(|it| it.ident.to_string());
        self.paths.insert(names.collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invocation: &'ast syn::Macro) {
        self.tokens(invocation.tokens.clone());
        visit::visit_macro(self, invocation);
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let Meta::List(list) = &attribute.meta else {
            return attribute.path().is_ident("test");
        };
        list.path.is_ident("cfg") && list.tokens.to_string() == "test"
    })
}
