//! Writes the shipped catalogue from the package cfn-lint.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::Parser;
use rds_catalogue::{Origin, PublicData, of_public_data};

/// Write the shipped catalogue.
#[derive(Parser)]
struct Args {
    /// Directory of the unpacked package cfn-lint.
    folder: PathBuf,
    /// Version of the package.
    #[arg(long, value_name = "VERSION")]
    package_version: String,
    /// Day on which the package was published.
    #[arg(long, value_name = "YYYY-MM-DD")]
    date: String,
    /// Engines, separated by commas.
    #[arg(
        long,
        value_name = "ENGINES",
        value_delimiter = ',',
        default_value = "postgres,mysql,mariadb"
    )]
    engines: Vec<String>,
    /// Output file.
    #[arg(long, value_name = "FILE")]
    output_file: PathBuf,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let folder = args
        .folder
        .join("cfnlint/data/schemas/extensions/aws_rds_dbinstance");
    let read = |name: &str| {
        let path = folder.join(name);
        fs::read_to_string(&path).with_context(|| path.display().to_string())
    };
    let origin = Origin {
        source: format!("cfn-lint {}", args.package_version),
        ..Origin::default()
    };
    let engines: Vec<_> = args.engines.iter().map(String::as_str).collect();
    let data = PublicData {
        versions: &read("engine_version.json")?,
        deprecated_versions: &read("engine_version_deprecated.json")?,
        classes_by_region: &read("dbinstanceclass_enum.json")?,
        classes_by_version: &read("db_instance_class.json")?,
    };
    let catalogue = of_public_data(origin, &args.date, &engines, &data)?;
    fs::write(&args.output_file, catalogue.text())
        .with_context(|| args.output_file.display().to_string())
}
