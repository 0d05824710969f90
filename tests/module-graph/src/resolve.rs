//! Names to definitions.

use std::collections::BTreeMap;

use crate::file::{Module, ModulePath};

type Modules = BTreeMap<ModulePath, Module>;

/// Re-exports are followed this often. A longer chain is a cycle of re-exports, which does not compile.
const MAX_DEPTH: usize = 16;

/// Returns the module that defines what `named` stands for in `module`, if that is one of this crate.
pub(crate) fn definition(
    modules: &Modules,
    module: &[String],
    named: &[String],
) -> Option<ModulePath> {
    find(modules, module, named, MAX_DEPTH)
}

fn find(
    modules: &Modules,
    module: &[String],
    named: &[String],
    depth: usize,
) -> Option<ModulePath> {
    let depth = depth.checked_sub(1)?;
    let (first, rest) = named.split_first()?;
    match first.as_str() {
        "crate" => descend(modules, Vec::new(), rest, depth),
        "self" => descend(modules, module.to_vec(), rest, depth),
        "super" => {
            let (_, parent) = module.split_last()?;
            let mut named = vec!["self".to_owned()];
            named.extend_from_slice(rest);
            find(modules, parent, &named, depth)
        }
        _ => {
            let own = modules.get(module)?;
            let is_own = own.items.contains(first) || modules.contains_key(&child(module, first));
            if is_own {
                return descend(modules, module.to_vec(), named, depth);
            }
            imported(modules, module, first, rest, depth)
        }
    }
}

/// Follows a path down from a module, first through modules, then through what the last of them re-exports.
fn descend(
    modules: &Modules,
    module: ModulePath,
    named: &[String],
    depth: usize,
) -> Option<ModulePath> {
    let Some((first, rest)) = named.split_first() else {
        return Some(module);
    };
    let below = child(&module, first);
    if modules.contains_key(&below) {
        return descend(modules, below, rest, depth);
    }
    match first.as_str() {
        "super" | "self" => find(modules, &module, named, depth),
        _ if modules.get(&module)?.items.contains(first) => Some(module),
        _ => imported(modules, &module, first, rest, depth).or(Some(module)),
    }
}

/// Follows a name that `use` brought into a module.
fn imported(
    modules: &Modules,
    module: &[String],
    name: &str,
    rest: &[String],
    depth: usize,
) -> Option<ModulePath> {
    let own = modules.get(module)?;
    if let Some(path) = own.imports.get(name) {
        if path.first().map(String::as_str) == Some(name) {
            // `use serde::Serialize` in a crate without a module `serde`.
            return modules
                .contains_key(&child(module, name))
                .then(|| descend(modules, module.to_vec(), path, depth))?;
        }
        let mut path = path.clone();
        path.extend_from_slice(rest);
        return find(modules, module, &path, depth);
    }
    own.globs.iter().find_map(|glob| {
        let target = find(modules, module, glob, depth)?;
        let is_there = modules.get(&target)?.items.contains(name);
        is_there.then_some(target)
    })
}

fn child(module: &[String], name: &str) -> ModulePath {
    let mut path = module.to_vec();
    path.push(name.to_owned());
    path
}
