//! `lockstep new`: a repository with an operator.

use std::path::{Path, PathBuf};

use clap::Parser;

use crate::audience::Audience;
use crate::changes::Changes;
use crate::error::Error;
use crate::local_crates;
use crate::names::Names;
use crate::operator_form::{OperatorForm, OperatorFormArgs};
use crate::project::Project;
use crate::registration::{with_dependencies, with_simulator};
use crate::rustfmt::Rustfmt;
use crate::template::rendered;

/// Edition of a new package.
const EDITION: &str = "2024";

/// Create a repository with an operator that builds, passes its tests and runs at once: a custom resource with rules in all
/// three layers, an operator, examples, tests, a container image and CI.
#[derive(Debug, Parser)]
#[command(name = "new")]
pub struct NewArgs {
    /// Name of the program and of the repository, such as `greeting-operator`.
    pub name: String,
    /// Kind of the custom resource, such as `Greeting`.
    #[arg(long)]
    pub kind: String,
    /// API group: a domain that belongs to you, such as `demo.example.com`.
    #[arg(long)]
    pub group: String,
    /// API version.
    #[arg(long, value_name = "VERSION", default_value = "v1alpha1")]
    pub api_version: String,
    /// Plural of the kind in lower case. Default: the English plural.
    #[arg(long)]
    pub plural: Option<String>,
    /// Users who may create objects of the kind. The source can be changed later.
    #[arg(long, value_enum, default_value_t)]
    pub audience: Audience,
    /// Form of the operator.
    #[command(flatten)]
    pub form: OperatorFormArgs,
    /// Folder to create. Default: the name, in the current folder.
    #[arg(long, value_name = "DIRECTORY")]
    pub directory: Option<PathBuf>,
    /// Use the crates of this checkout of Lockstep instead of those of the registry.
    #[arg(long, value_name = "DIRECTORY")]
    pub local_crates: Option<PathBuf>,
}

/// Creates the repository and returns its folder.
///
/// # Errors
///
/// A name is not allowed, or the folder is not empty. Nothing is written then.
pub fn create(args: &NewArgs) -> Result<PathBuf, Error> {
    let names = Names::new(
        &args.name,
        &args.kind,
        &args.group,
        &args.api_version,
        args.plural.as_deref(),
    )?;
    let patches = args.local_crates.as_deref().map(local_crates::patches);
    let patches = patches.transpose()?;
    let folder = args.directory.as_deref();
    let folder = folder.unwrap_or_else(|| Path::new(&args.name));
    if folder.read_dir().is_ok_and(|mut all| all.next().is_some()) {
        return Err(Error::NotEmpty(folder.to_owned()));
    }
    let project = Project::in_folder(folder);
    let form = OperatorForm::from(args.form);
    let mut changes = Changes::default();
    let templates = [form.repository(), form.kind()].concat();
    for (path, mut content) in rendered(&templates, &names, args.audience) {
        let in_project = project.path(&path);
        if form == OperatorForm::Reconciler {
            content = match path.as_str() {
                "Cargo.toml" => with_dependencies(&in_project, &content)?.0,
                "tests/cases.rs" => with_simulator(&in_project, &content, &names)?,
                _ => content,
            };
        }
        if path == "Cargo.toml" {
            content += patches.as_deref().unwrap_or_default();
        }
        changes.create(in_project, content);
    }
    changes.write(&Rustfmt::new(Some(EDITION.to_owned())))?;
    Ok(folder.to_owned())
}
