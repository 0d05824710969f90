//! `lockstep vector catalogue`: writes the catalogue of another version of Vector.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use lockstep_sdk::{exit_code_of_output, write_output};
use lockstep_vector_api::{Catalogue, VectorVersion};
use serde_json::Value;

use crate::catalogue_files::vector_version;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// File with the output of `vector generate-schema`.
    #[arg(long, value_name = "FILE")]
    from_schema: PathBuf,
    /// Version of the Vector that printed the schema, such as `0.48`.
    #[arg(long, value_name = "VERSION", value_parser = vector_version)]
    vector_version: VectorVersion,
    /// Output file. It is compressed if its name ends with `.gz`. Default: standard output.
    #[arg(long, value_name = "FILE")]
    output_file: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    exit_code_of_output(write(args))
}

fn write(args: &Args) -> anyhow::Result<()> {
    let file = args.from_schema.display();
    let schema = fs::read_to_string(&args.from_schema)
        .with_context(|| format!("cannot read the schema {file}"))?;
    let schema: Value = serde_json::from_str(&schema).with_context(|| {
        format!("the schema {file} is not JSON; write it with `vector generate-schema > {file}`")
    })?;
    let version = args.vector_version.to_string();
    let made = vector_catalogue::adapted(schema, &version)
        .with_context(|| format!("cannot use the schema {file}"))?;
    if let Err(error) = Catalogue::load(&made.text) {
        bail!("the catalogue of the schema {file} {error}");
    }
    if !made.unmeasured.is_empty() {
        eprintln!(
            "lockstep: no measured version of Vector has these types, of which only the options in the schema are validated: {}",
            made.unmeasured.join(", ")
        );
    }
    write_output(args.output_file.as_deref(), &made.text)
}
