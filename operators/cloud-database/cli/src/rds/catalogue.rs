//! `lockstep rds catalogue`: writes the catalogue of an account and region.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use k8s_openapi::jiff::Timestamp;
use k8s_openapi::jiff::civil::Date;
use k8s_openapi::jiff::tz::TimeZone;
use lockstep_sdk::{describe_read_error, exit_code_of_output, write_output};
use rds_catalogue::{CatalogueBuilder, Origin};
use serde::de::DeserializeOwned;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// File with the output of `aws rds describe-db-engine-versions --include-all --output json`. Can be repeated.
    #[arg(long, value_name = "FILE", required = true)]
    engine_versions: Vec<PathBuf>,
    /// File with the output of `aws rds describe-orderable-db-instance-options --engine ENGINE --output json`. Can be
    /// repeated, once for each engine.
    #[arg(long, value_name = "FILE", required = true)]
    orderable_options: Vec<PathBuf>,
    /// ID of the AWS account. Default: the catalogue applies to every account.
    #[arg(long, value_name = "ID")]
    account: Option<String>,
    /// AWS region. Default: the catalogue applies to every region.
    #[arg(long)]
    region: Option<String>,
    /// Day on which AWS has printed the files. What is not offered is denied for three days, and gives a warning later.
    /// Default: today.
    #[arg(long, value_name = "YYYY-MM-DD")]
    date: Option<Date>,
    /// Output file. It is compressed if its name ends with `.gz`. Default: standard output.
    #[arg(long, value_name = "FILE")]
    output_file: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    exit_code_of_output(write(args))
}

fn write(args: &Args) -> anyhow::Result<()> {
    let origin = Origin::of_answers(args.account.clone(), args.region.clone());
    let today = || Timestamp::now().to_zoned(TimeZone::UTC).date();
    let date = args.date.unwrap_or_else(today);
    let mut builder = CatalogueBuilder::new(origin, date.to_string());
    for file in &args.engine_versions {
        builder.add_versions(read(file, "describe-db-engine-versions")?);
    }
    for file in &args.orderable_options {
        builder.add_options(read(file, "describe-orderable-db-instance-options")?);
    }
    let text = builder.finish().text();
    write_output(args.output_file.as_deref(), &text)
}

fn read<T: DeserializeOwned>(file: &Path, command: &str) -> anyhow::Result<T> {
    let shown = file.display();
    let text = fs::read_to_string(file);
    let text =
        text.map_err(|error| anyhow::anyhow!("the file {shown} {}", describe_read_error(&error)))?;
    serde_json::from_str(&text).with_context(|| {
        format!("the file {shown} is not the output of `aws rds {command} --output json`")
    })
}
