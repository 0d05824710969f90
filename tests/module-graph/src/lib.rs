//! Module graph of a crate: which source file uses items of which other one.
//!
//! An edge leads from the file that names an item to the file that defines it. A re-export is followed to the
//! definition and is no use by itself, so that a parent module can re-export its children. Code under `#[cfg(test)]`
//! does not count: a test may look at everything.

mod file;
mod resolve;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;

use file::Module;

/// Files of one crate and the uses between them.
#[derive(Debug)]
pub struct ModuleGraph {
    /// For each file, relative to the source folder, the files whose items it names.
    pub uses: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
}

impl ModuleGraph {
    /// Reads a crate from its root file, `lib.rs` or `main.rs`.
    ///
    /// # Errors
    ///
    /// A file cannot be read or parsed.
    pub fn read(root: &Path) -> io::Result<Self> {
        let modules = file::read_all(root)?;
        let folder = root.parent().unwrap_or(Path::new("."));
        let relative = |module: &Module| {
            let file = module.file.strip_prefix(folder);
            file.unwrap_or(&module.file).to_owned()
        };
        let mut uses: BTreeMap<PathBuf, BTreeSet<PathBuf>> = BTreeMap::new();
        for (path, module) in &modules {
            let targets = uses.entry(relative(module)).or_default();
            let named = module.paths.iter();
            let definitions = named.filter_map(|named| resolve::definition(&modules, path, named));
            targets.extend(definitions.map(|definition| relative(&modules[&definition])));
            targets.remove(&relative(module));
        }
        Ok(Self { uses })
    }

    /// Groups of files that use each other, directly or through others of the group.
    pub fn cycles(&self) -> Vec<BTreeSet<&Path>> {
        let mut graph = DiGraphMap::<&Path, ()>::new();
        for (from, targets) in &self.uses {
            for to in targets {
                graph.add_edge(from, to, ());
            }
        }
        let components = tarjan_scc(&graph).into_iter();
        let cycles = components.filter(|files| files.len() > 1);
        cycles.map(|files| files.into_iter().collect()).collect()
    }
}
