//! `lockstep add kind`: another kind with its operator.

use crate::added::Added;
use crate::audience::Audience;
use crate::changes::Changes;
use crate::error::Error;
use crate::names::Names;
use crate::operator_form::{OperatorForm, OperatorFormArgs};
use crate::project::{Project, read};
use crate::registration::{with_dependencies, with_kind, with_simulator};
use crate::template::rendered;

#[derive(Debug, clap::Args)]
pub(crate) struct KindArgs {
    /// Kind of the custom resource, such as `Greeting`.
    kind: String,
    /// API group: a domain that belongs to you.
    #[arg(long)]
    group: String,
    /// API version.
    #[arg(long, value_name = "VERSION", default_value = "v1alpha1")]
    api_version: String,
    /// Plural of the kind in lower case. Default: the English plural.
    #[arg(long)]
    plural: Option<String>,
    /// Users who may create objects of the kind. The source can be changed later.
    #[arg(long, value_enum, default_value_t)]
    audience: Audience,
    /// Form of the operator.
    #[command(flatten)]
    form: OperatorFormArgs,
}

pub(crate) fn add(args: &KindArgs, project: &Project) -> Result<Added, Error> {
    let (plural, form) = (args.plural.as_deref(), OperatorForm::from(args.form));
    let (program, library) = project.program()?;
    let mut names = Names::new(&program, &args.kind, &args.group, &args.api_version, plural)?;
    names.library = library.unwrap_or(names.library);
    let (mut changes, mut notes) = (Changes::default(), Vec::new());
    let path = project.path("src/lib.rs");
    let library = read(&path)?;
    let with_kind = with_kind(&path, &library, &names, form, args.audience)?;
    changes.replace(path, library, with_kind);
    if form == OperatorForm::Reconciler {
        let path = project.path("Cargo.toml");
        let manifest = read(&path)?;
        let (with_dependencies, to_check) = with_dependencies(&path, &manifest)?;
        changes.replace(path, manifest, with_dependencies);
        let path = project.path("tests/cases.rs");
        let test = read(&path)?;
        let with_simulator = with_simulator(&path, &test, &names)?;
        changes.replace(path, test, with_simulator);
        notes = to_check;
    }
    for (path, content) in rendered(&form.kind(), &names, args.audience) {
        changes.create(project.path(&path), content);
    }
    let files = changes.write(&project.rustfmt())?;
    Ok(Added { files, notes })
}

#[cfg(test)]
mod tests;
