//! A copy of the workspace with the repository of an operator as one more member.
//!
//! Built alone, the repository would need all of its dependencies once more, with other features. As a member of the
//! workspace, it uses those that are built already; only the packaged crates are compiled.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use crate::packages::{self, Package};

/// Folders that are not copied: build output and history.
const LEFT: [&str; 2] = ["target", ".git"];

/// Copy of the workspace, in which the library crates are as they are published.
pub struct Workspace {
    repository: PathBuf,
    copy: PathBuf,
    packages: Vec<Package>,
    /// Manifest without the member.
    manifest: String,
}

impl Workspace {
    /// Waits until no other test uses the copy. It has one member at a time, so that the tests of others are not built.
    pub fn lock() -> MutexGuard<'static, Self> {
        static COPY: LazyLock<Mutex<Workspace>> = LazyLock::new(|| Mutex::new(Workspace::new()));
        COPY.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a fresh copy, with the control plane that was built for the original.
    fn new() -> Self {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let repository = repository.canonicalize().expect("the repository");
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let copy = folder.join("tutorial");
        if copy.exists() {
            fs::remove_dir_all(&copy).expect("the previous copy is deleted");
        }
        copy_folder(&repository, &copy);
        fs::create_dir(copy.join("target")).expect("a folder");
        let built = repository.join("target/control-plane");
        fs::create_dir_all(&built).expect("a folder");
        symlink(built, copy.join("target/control-plane")).expect("a link");
        let packages = packages::replace(&repository, &copy, &folder);
        let manifest = fs::read_to_string(copy.join("Cargo.toml")).expect("a manifest");
        Self {
            repository,
            copy,
            packages,
            manifest,
        }
    }

    /// Returns the path of a file in the repository of the tutorial.
    pub fn file(&self, path: &str) -> PathBuf {
        self.repository.join(path)
    }

    /// Returns the path of a file of the member.
    pub fn path(&self, member: &str, path: &str) -> PathBuf {
        self.copy.join(member).join(path)
    }

    /// Creates a repository with the packaged crates and returns what is printed. It becomes the member.
    pub fn create(&self, member: &str, arguments: &[&str]) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_lockstep"))
            .args(["new", member])
            .args(arguments)
            .arg("--directory")
            .arg(self.path(member, ""))
            .arg("--local-crates")
            .arg(&self.copy)
            .output()
            .expect("the program runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{error}");
        let manifest = fs::read_to_string(self.path(member, "Cargo.toml"));
        let crates = "[patch.crates-io]\ncrd-validation = ";
        let has_crates = manifest.expect("a manifest").contains(crates);
        assert!(has_crates, "the crates of the checkout");
        self.set_member(member);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Copies a repository from a folder, in which the manifest has a name that cargo ignores. It becomes the member.
    pub fn copy_from(&self, folder: &str, member: &str) {
        let path = self.path(member, "");
        copy_folder(&self.file(folder), &path);
        let manifest = path.join("Cargo.toml");
        fs::rename(path.join("_Cargo.toml"), manifest).expect("a manifest");
        self.set_member(member);
    }

    /// Makes a repository the member of the workspace. Only the manifest of a workspace has profiles and replacements.
    fn set_member(&self, member: &str) {
        let manifest = self.path(member, "Cargo.toml");
        let text = fs::read_to_string(&manifest).expect("a manifest");
        let (own, _) = text.split_once("\n[profile.dev]").expect("profiles");
        fs::write(&manifest, own).expect("a manifest");
        let members = "members = [\n";
        let with_member = format!("{members}  \"{member}\",\n");
        let mut text = self.manifest.replacen(members, &with_member, 1);
        text += "\n[patch.crates-io]\n";
        for Package { name, folder, .. } in &self.packages {
            let folder = folder.display();
            writeln!(text, "{name} = {{ path = \"{folder}\" }}").expect("a text");
        }
        fs::write(self.copy.join("Cargo.toml"), text).expect("a manifest");
    }

    /// Runs a command of the shell in the repository of the member. It reuses earlier build output.
    pub fn shell(&self, member: &str, command: &str) -> Output {
        Command::new("sh")
            .args(["-c", &format!("{{ {command}\n}} 2>&1")])
            .current_dir(self.path(member, ""))
            .env_clear()
            .envs(std::env::vars().filter(|(name, _)| !is_of_this_test(name)))
            .env("CARGO_TARGET_DIR", self.copy.join("target"))
            .env("CARGO_BUILD_BUILD_DIR", self.repository.join("target"))
            .env("CARGO_NET_OFFLINE", "true")
            // The copy lies inside a repository but does not belong to it.
            .env("GIT_CEILING_DIRECTORIES", &self.copy)
            .output()
            .expect("a shell")
    }
}

/// Returns true if cargo has set the variable for this test. It would cause everything to be built again that was
/// built without it.
fn is_of_this_test(name: &str) -> bool {
    const PREFIXES: [&str; 5] = ["BIN_", "CRATE_", "MANIFEST_", "PKG_", "TARGET_"];
    let of_cargo = name.strip_prefix("CARGO_");
    of_cargo.is_some_and(|name| PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let (name, path) = (entry.file_name(), entry.path());
        if LEFT.iter().any(|left| name == *left) {
            continue;
        }
        if path.is_dir() {
            copy_folder(&path, &to.join(name));
        } else {
            let file = to.join(name);
            fs::copy(&path, &file).expect("a file");
            // A newer file would be compiled again.
            let metadata = path.metadata().expect("a file");
            let modified = metadata.modified().expect("a time");
            let file = fs::File::options().write(true).open(&file).expect("a file");
            file.set_modified(modified).expect("the time is set");
        }
    }
}
