//! Imports of a scope.

use syn::{Item, ItemUse, Path, Stmt, UseTree};

use crate::source::is_conditional;

/// Names that the imports of a scope give to items.
#[derive(Clone, Default)]
pub(crate) struct Imports {
    /// Path of each item, and its name in the scope.
    names: Vec<(String, String)>,
    /// Modules of which all names are imported.
    globs: Vec<String>,
}

impl Imports {
    /// Returns the imports of a file or module.
    pub(crate) fn of_items(items: &[Item]) -> Self {
        let mut imports = Self::default();
        for item in items {
            if let Item::Use(item) = item {
                imports.add(item);
            }
        }
        imports
    }

    /// Returns these imports with those of a block.
    pub(crate) fn with_statements(&self, statements: &[Stmt]) -> Self {
        let mut imports = self.clone();
        for statement in statements {
            if let Stmt::Item(Item::Use(item)) = statement {
                imports.add(item);
            }
        }
        imports
    }

    fn add(&mut self, item: &ItemUse) {
        if !is_conditional(&item.attrs) {
            self.add_tree("", &item.tree);
        }
    }

    fn add_tree(&mut self, module: &str, tree: &UseTree) {
        let within = |name: &str| match (module, name) {
            (module, "self") if !module.is_empty() => module.to_owned(),
            ("", name) => name.to_owned(),
            (module, name) => format!("{module}::{name}"),
        };
        match tree {
            UseTree::Path(tree) => self.add_tree(&within(&tree.ident.to_string()), &tree.tree),
            UseTree::Name(tree) => {
                let path = within(&tree.ident.to_string());
                let name = last(&path).to_owned();
                self.names.push((path, name));
            }
            UseTree::Rename(tree) => {
                let path = within(&tree.ident.to_string());
                self.names.push((path, tree.rename.to_string()));
            }
            UseTree::Glob(_) => self.globs.push(module.to_owned()),
            UseTree::Group(tree) => {
                for tree in &tree.items {
                    self.add_tree(module, tree);
                }
            }
        }
    }

    /// Returns true if an import has a name.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.names.iter().any(|(_, other)| other == name)
    }

    /// Returns an item as code of the scope writes it: by its imported name, after that of an imported module, or by its path.
    pub(crate) fn written(&self, path: &str) -> String {
        let mut outer = path;
        loop {
            let rest = &path[outer.len()..];
            let imported = self.names.iter().find(|(path, _)| path == outer);
            if let Some((_, name)) = imported.filter(|(_, name)| name != "_") {
                return format!("{name}{rest}");
            }
            let Some((module, name)) = outer.rsplit_once("::") else {
                return path.to_owned();
            };
            if self.globs.iter().any(|glob| glob == module) && !self.has_name(name) {
                return format!("{name}{rest}");
            }
            outer = module;
        }
    }

    /// Returns true if a path in code of the scope names an item.
    pub(crate) fn name(&self, path: &Path, item: &str) -> bool {
        let segments = path.segments.iter().map(|it| it.ident.to_string());
        let text = segments.collect::<Vec<_>>().join("::");
        text == item || text == self.written(item)
    }
}

fn last(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let file = syn::parse_file(text).expect("Rust");
        Imports::of_items(&file.items).written("sdk::controller::Watch")
    }

    #[test]
    fn an_item_is_written_by_its_shortest_name() {
        for (imports, expected) in [
            ("use sdk::controller::Watch;", "Watch"),
            ("use ::sdk::{a, controller::{b::C, Watch as W}};", "W"),
            ("use sdk::{self, controller};", "controller::Watch"),
            ("use sdk as kit;", "kit::controller::Watch"),
            ("use sdk::controller::{self as c};", "c::Watch"),
            ("use sdk::controller::*;", "Watch"),
            ("use sdk::*;", "controller::Watch"),
            // The name belongs to another item, or to no code of this build.
            (
                "use sdk::controller::*; use other::Watch;",
                "sdk::controller::Watch",
            ),
            (
                "#[cfg(test)] use sdk::controller::Watch;",
                "sdk::controller::Watch",
            ),
            ("use sdk::controller::Watch as _;", "sdk::controller::Watch"),
            ("use sdk::controller::Watches;", "sdk::controller::Watch"),
            ("// use sdk::controller::Watch;", "sdk::controller::Watch"),
        ] {
            assert_eq!(written(imports), expected, "{imports}");
        }
    }
}
