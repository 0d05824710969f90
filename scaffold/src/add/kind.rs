//! `lockstep add kind`: another kind with its operator.

use std::path::PathBuf;

use crate::error::Error;
use crate::names::Names;
use crate::operator_form::{OperatorForm, OperatorFormArgs};
use crate::project::{Project, read, write};
use crate::registration;

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
    /// Form of the operator.
    #[command(flatten)]
    form: OperatorFormArgs,
}

pub(crate) fn add(args: &KindArgs, project: &Project) -> Result<Vec<PathBuf>, Error> {
    let (plural, form) = (args.plural.as_deref(), OperatorForm::from(args.form));
    let program = project.program()?;
    let names = Names::new(&program, &args.kind, &args.group, &args.api_version, plural)?;
    let library = project.path("src/lib.rs");
    let registered = registration::with_kind(&read(&library)?, &names, form);
    let registered = registered.ok_or_else(|| Error::NoPlace {
        path: library.clone(),
        missing: "a line with `pub mod`, and a line with the whole call `.operator(…)`",
        by_hand: format!("the module `{}` and its operator", names.module),
    })?;
    let mut changed = vec![(library, registered)];
    changed.extend(registration::of_form(project, &names, form)?);
    project.write(&form.kind(), &names)?;
    for (path, content) in &changed {
        write(path, content)?;
    }
    project.format();
    Ok(changed.into_iter().map(|(path, _)| path).collect())
}
