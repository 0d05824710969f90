//! Parts that several benchmarks need: builds of the measured programs from this repository, and the reviews that are sent to them.

mod admission_review;
pub mod audit;
pub mod markdown;
mod pipeline_bodies;
mod reviews;
pub mod usage;

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, ensure};

pub use crate::pipeline_bodies::NONCE;
pub use crate::reviews::Review;

/// Builds `lockstep` with the profile of the shipped program and returns its path.
pub fn lockstep() -> anyhow::Result<PathBuf> {
    build("lockstep", "dist")
}

/// Builds the program of a package with the profile `release` and returns its path.
pub fn release(package: &str) -> anyhow::Result<PathBuf> {
    build(package, "release")
}

/// Returns a call of cargo, as from a shell. `cargo run` and `cargo bench` set variables about the benchmark, whose change makes
/// some build scripts run again, and everything that depends on them.
pub fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()));
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(&*name);
        }
    }
    cargo
}

/// Builds the program of a package and returns its path. Its dependencies have only the features that this package needs.
fn build(package: &str, profile: &str) -> anyhow::Result<PathBuf> {
    let mut build = cargo();
    build
        .current_dir(root())
        .args(["build", "--locked", "--profile", profile])
        .args(["--package", package]);
    run(&mut build)?;
    Ok(target().join(profile).join(package))
}

/// Builds a package of a Go module, which is given by its folder in this repository, and returns the path of the
/// program.
pub fn go(module: &str, package: &str, name: &str) -> anyhow::Result<PathBuf> {
    let program = target().join("benchmark").join(name);
    run(Command::new("go")
        .current_dir(root().join(module))
        .args(["build", "-mod=readonly", "-ldflags", "-s -w", "-o"])
        .arg(&program)
        .arg(package))?;
    Ok(program)
}

/// Returns the root of the repository.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command
        .status()
        .with_context(|| command.get_program().display().to_string())?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}
