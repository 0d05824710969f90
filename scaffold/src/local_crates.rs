//! Crates of a checkout of Lockstep, instead of those of the registry.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::project::read;

/// Crates that no operator depends on. Cargo warns about a replacement that is not used.
const UNUSED: [&str; 2] = ["lockstep-image", "lockstep-scaffold"];

/// Returns the section of a `Cargo.toml` that takes all crates from a checkout. Any folder below it may contain them.
///
/// # Errors
///
/// The folder does not contain the crate `lockstep-sdk`.
pub(crate) fn patches(checkout: &Path) -> Result<String, Error> {
    let checkout = checkout.canonicalize().map_err(Error::file(checkout))?;
    let mut found = Vec::new();
    collect(&checkout, 2, &mut found)?;
    found.sort();
    if !found.iter().any(|(name, _)| name == "lockstep-sdk") {
        return Err(Error::NoProject {
            path: checkout,
            problem: "the folder does not contain the crate lockstep-sdk",
        });
    }
    let mut patches = "\n[patch.crates-io]\n".to_owned();
    for (name, path) in found {
        let path = path.display().to_string();
        patches += &format!("{name} = {{ path = {path:?} }}\n");
    }
    Ok(patches)
}

/// Collects the names and folders of the library crates below a folder.
fn collect(folder: &Path, depth: usize, found: &mut Vec<(String, PathBuf)>) -> Result<(), Error> {
    let manifest = folder.join("Cargo.toml");
    if folder.join("src/lib.rs").is_file() && manifest.is_file() {
        let text = read(&manifest)?;
        if let Some(name) = package_name(&text)
            && (name.starts_with("lockstep-") || name == "crd-validation")
            && !UNUSED.contains(&name)
            && !text.contains("publish = false")
        {
            found.push((name.to_owned(), folder.to_owned()));
        }
    }
    if depth == 0 {
        return Ok(());
    }
    for entry in fs::read_dir(folder).map_err(Error::file(folder))? {
        let path = entry.map_err(Error::file(folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && name != "target" && name != "src" && !name.starts_with('.') {
            collect(&path, depth - 1, found)?;
        }
    }
    Ok(())
}

/// Returns the name in a manifest: the first one, as in all manifests of a checkout.
fn package_name(manifest: &str) -> Option<&str> {
    let line = manifest.lines().find(|line| line.starts_with("name = "))?;
    line.split('"').nth(1)
}
