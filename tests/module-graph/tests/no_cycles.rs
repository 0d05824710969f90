//! No crate of the workspace has files that use each other in a circle.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use module_graph::ModuleGraph;

/// Root files of all crates of the workspace.
fn roots() -> Vec<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut roots = Vec::new();
    let mut folders = vec![workspace];
    while let Some(folder) = folders.pop() {
        for root in ["src/lib.rs", "src/main.rs"] {
            if folder.join("Cargo.toml").exists() && folder.join(root).exists() {
                roots.push(folder.join(root));
            }
        }
        let entries = fs::read_dir(&folder).expect("the folder is readable");
        let below = entries.map(|entry| entry.expect("the entry is readable").path());
        folders.extend(below.filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            path.is_dir() && !name.starts_with('.') && !["target", "src"].contains(&&*name)
        }));
    }
    roots
}

#[test]
fn no_files_of_a_crate_use_each_other_in_a_circle() {
    let roots = roots();
    assert!(roots.len() > 10, "{roots:?}");
    let mut found = Vec::new();
    for root in roots {
        let graph = ModuleGraph::read(&root).expect("the crate can be parsed");
        for cycle in graph.cycles() {
            let edges = cycle.iter().flat_map(|from| {
                let targets = graph.uses[*from].iter();
                let within = targets.filter(|to| cycle.contains(to.as_path()));
                within.map(move |to| format!("  {} -> {}", from.display(), to.display()))
            });
            let edges: Vec<_> = edges.collect();
            found.push(format!("{}\n{}", root.display(), edges.join("\n")));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_circle_is_found_through_re_exports_macros_and_imported_modules() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("it is created");
        fs::write(path, text).expect("it is written");
    };
    write("lib.rs", "mod a; mod b; mod c; mod d;");
    write(
        "a.rs",
        "mod deep; pub use deep::Deep; use crate::b; fn f() { b::f(); }",
    );
    write("a/deep.rs", "pub struct Deep;");
    write("b.rs", "pub fn f() { assert!(crate::c::f()); }");
    write("c.rs", "use crate::a::Other; pub fn f() -> bool { true }");
    write(
        "d.rs",
        "use crate::a::Deep; #[cfg(test)] mod tests { use crate::c::f; }",
    );
    let graph = ModuleGraph::read(&folder.path().join("lib.rs")).expect("it can be parsed");
    let uses = |file: &str| {
        graph.uses[Path::new(file)]
            .iter()
            .map(|it| it.display().to_string())
    };
    assert_eq!(uses("d.rs").collect::<Vec<_>>(), ["a/deep.rs"]);
    assert_eq!(uses("a.rs").collect::<Vec<_>>(), ["b.rs"]);
    let cycle = ["a.rs", "b.rs", "c.rs"].map(Path::new);
    assert_eq!(graph.cycles(), [BTreeSet::from(cycle)]);
}
