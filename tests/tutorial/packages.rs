//! The library crates as they are published.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::read::GzDecoder;
use serde_json::Value;
use tar::Archive;

/// Folder of the published crates in the copy of the workspace.
///
/// Build output is named after the folder of a crate, relative to that of the workspace. In the folders of the
/// originals, it would replace theirs, which later tests are linked with.
const FOLDER: &str = "packages";

/// Replaces the library crates of a copy of the workspace by what is published of them, and returns them.
pub fn replace(repository: &Path, copy: &Path, folder: &Path) -> Vec<Package> {
    let mut crates = published(repository);
    assert!(
        crates.len() > 10,
        "{} crates can be published",
        crates.len()
    );
    let target = folder.join("packaging");
    let mut command = cargo(repository);
    command.args([
        "package",
        "--no-verify",
        "--allow-dirty",
        "--quiet",
        "--offline",
    ]);
    command.arg("--target-dir").arg(&target);
    command.args(
        crates
            .iter()
            .map(|package| format!("--package={}", package.name)),
    );
    run(&mut command);
    let manifest = copy.join("Cargo.toml");
    let mut text = fs::read_to_string(&manifest).expect("a manifest");
    for package in &mut crates {
        let name = format!("{}-{}", package.name, package.version);
        let file = target.join("package").join(format!("{name}.crate"));
        let file = fs::File::open(&file).expect("a package");
        let unpacking = Archive::new(GzDecoder::new(file)).unpack(&target);
        unpacking.expect("a package is a compressed archive");
        let original = package.folder.clone();
        set_times(&target.join(&name), &repository.join(&original));
        fs::remove_dir_all(copy.join(&original)).expect("the folder of the crate");
        package.folder = Path::new(FOLDER).join(&original);
        let folder = copy.join(&package.folder);
        fs::create_dir_all(folder.parent().expect("a folder")).expect("a folder");
        fs::rename(target.join(&name), folder).expect("the content of the package");
        for (before, after) in [("  \"", "\",\n"), ("{ path = \"", "\"")] {
            let reference = |path: &Path| format!("{before}{}{after}", path.display());
            text = text.replace(&reference(&original), &reference(&package.folder));
        }
    }
    fs::write(&manifest, text).expect("a manifest");
    crates
}

/// Sets the modification times of the files to those of the originals. In a package, all files have the same time, so that
/// changed ones would not be compiled again.
fn set_times(folder: &Path, original: &Path) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let original = original.join(path.file_name().expect("a name"));
        if path.is_dir() {
            set_times(&path, &original);
        } else if let Ok(metadata) = original.metadata() {
            let modified = metadata.modified().expect("a time");
            let file = fs::File::options().write(true).open(&path);
            let set = file.expect("a file").set_modified(modified);
            set.expect("the time is set");
        }
    }
}

/// Package that can be published.
pub struct Package {
    pub name: String,
    version: String,
    /// Folder, relative to that of the workspace.
    pub folder: PathBuf,
}

/// Returns the packages whose manifests do not exclude publication.
fn published(repository: &Path) -> Vec<Package> {
    let mut command = cargo(repository);
    command.args(["metadata", "--no-deps", "--format-version=1", "--offline"]);
    let metadata: Value = serde_json::from_slice(&run(&mut command)).expect("metadata");
    let packages = metadata["packages"].as_array().expect("packages").iter();
    let packages = packages.filter(|package| package["publish"].is_null());
    packages
        .map(|package| {
            let text = |name: &str| package[name].as_str().expect("a text").to_owned();
            let manifest = PathBuf::from(text("manifest_path"));
            let folder = manifest.parent().expect("a folder");
            let folder = folder.strip_prefix(repository).expect("a member");
            Package {
                name: text("name"),
                version: text("version"),
                folder: folder.to_owned(),
            }
        })
        .collect()
}

fn cargo(repository: &Path) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(repository);
    command
}

fn run(command: &mut Command) -> Vec<u8> {
    let output = command.output().expect("cargo runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
    output.stdout
}
