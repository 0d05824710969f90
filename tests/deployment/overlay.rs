//! Kustomizations on top of the shipped base, as users write them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::site::{Site, root};

/// Writes a kustomization with these fields on top of the bases, and returns its folder.
pub fn overlay(site: &Site, name: &str, mut fields: Value) -> PathBuf {
    let folder = site.node.directory().join(name);
    fs::create_dir_all(&folder).expect("a folder");
    let bases = ["crds", "."].map(|base| root().join("manifests/config").join(base));
    fields["resources"] = json!(bases.map(|base| relative(&base, &folder)));
    fields["sortOptions"] = json!({"order": "fifo"});
    fs::write(folder.join("kustomization.yaml"), fields.to_string()).expect("a file");
    folder
}

pub fn apply(site: &Site, folder: &Path) {
    site.kubectl(&["apply", "-k", &folder.to_string_lossy()]);
}

/// Returns a patch of an object as a kustomization contains it.
pub fn patch(kind: &str, name: &str, operations: &Value) -> Value {
    json!({"target": {"kind": kind, "name": name}, "patch": operations.to_string()})
}

/// Returns a relative path: kustomize accepts no absolute ones.
fn relative(to: &Path, from: &Path) -> PathBuf {
    let absolute = |path: &Path| path.canonicalize().expect("the folder exists");
    let (to, from) = (absolute(to), absolute(from));
    let up = from.components().skip(1).map(|_| "..");
    up.collect::<PathBuf>()
        .join(to.strip_prefix("/").expect("an absolute path"))
}
