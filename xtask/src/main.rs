//! Development tasks, run as `cargo xtask TASK`.

mod shipped_catalogue;
mod vector_version;

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser};
use lockstep_image::{Compression, Error, Image, Metadata};

/// Run a development task.
#[derive(Parser)]
#[command(name = "cargo xtask", version)]
enum Task {
    Image(ImageArgs),
    RdsCatalogue(RdsCatalogueArgs),
    VectorVersion(VectorVersionArgs),
}

/// Write the catalogue of a version of Vector, and print what a person has to look at.
///
/// With `--from`, a new version begins: its schema and a `traits.json` for its measured facts are written first. Without it, the
/// catalogue is written again after a change of `traits.json`.
#[derive(Args)]
struct VectorVersionArgs {
    /// Version, such as `0.59`.
    version: String,
    /// File with the output of `vector generate-schema` of this version.
    #[arg(long, value_name = "FILE", requires = "vrl")]
    from: Option<PathBuf>,
    /// Version of VRL in this version, such as `0.36.0`.
    #[arg(long, value_name = "VERSION")]
    vrl: Option<String>,
}

/// Write the shipped catalogue of what RDS offers from the Python package cfn-lint.
#[derive(Args)]
struct RdsCatalogueArgs {
    /// Directory of the unpacked package.
    package: PathBuf,
    /// Version of the package.
    #[arg(long, value_name = "VERSION")]
    package_version: String,
    /// Day on which the package was published.
    #[arg(long, value_name = "YYYY-MM-DD")]
    date: String,
    /// File to write.
    #[arg(
        long,
        value_name = "FILE",
        default_value = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../operators/cloud-database/catalogue/shipped.json"
        )
    )]
    output_file: PathBuf,
}

/// Write the container image of a program that has been built, without a container engine.
///
/// The image contains the program, the shared libraries that it is linked with, CA certificates, and a user and group
/// 65532. It contains no shell and no package manager.
#[derive(Args)]
struct ImageArgs {
    /// The program [default: `dist/lockstep` in cargo's target directory; build it with
    /// `cargo build --profile dist --package lockstep --no-default-features`].
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Repository of the image.
    #[arg(long, default_value = "lockstep")]
    repository: String,
    /// Tag of the image.
    #[arg(long, default_value = env!("CARGO_PKG_VERSION"))]
    tag: String,
    /// Git commit for the label `org.opencontainers.image.revision`.
    #[arg(long, value_name = "COMMIT")]
    revision: Option<String>,
    /// CA certificates, as a file of PEM blocks.
    #[arg(long, value_name = "FILE", default_value = lockstep_image::CA_CERTIFICATES)]
    ca_certificates: PathBuf,
    /// OCI archive to write [default: `lockstep-image.tar` beside the program].
    #[arg(long, value_name = "FILE", conflicts_with = "root_directory")]
    output_file: Option<PathBuf>,
    /// Write the files of the image to this directory, and no archive.
    #[arg(long, value_name = "DIRECTORY")]
    root_directory: Option<PathBuf>,
}

fn main() -> ExitCode {
    let done = match Task::parse() {
        Task::VectorVersion(args) => {
            let begun = args.from.as_deref().zip(args.vrl.as_deref());
            vector_version::write(&args.version, begun).map_err(|error| format!("{error:#}"))
        }
        Task::Image(args) => write_image(args).map_err(|error| error.to_string()),
        Task::RdsCatalogue(args) => {
            let RdsCatalogueArgs {
                package,
                package_version,
                date,
                output_file,
            } = args;
            let written = shipped_catalogue::write(&package, &package_version, &date, &output_file);
            written
                .map(|()| println!("Wrote {}", output_file.display()))
                .map_err(|error| error.to_string())
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write_image(args: ImageArgs) -> Result<(), Error> {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target"),
        PathBuf::from,
    );
    let program = args
        .program
        .unwrap_or_else(|| target.join("dist").join("lockstep"));
    let metadata = Metadata {
        repository: args.repository,
        tag: args.tag,
        revision: args.revision,
    };
    if !program.is_file() {
        return Err(Error::NotBuilt(program));
    }
    let image = Image::of_program(&program, &args.ca_certificates, metadata)?;
    if let Some(directory) = args.root_directory {
        image.write_to_directory(&directory)?;
        println!(
            "Wrote the files of {} to {}",
            image.name(),
            directory.display()
        );
        return Ok(());
    }
    let output = args
        .output_file
        .unwrap_or_else(|| program.with_file_name("lockstep-image.tar"));
    let written = image.write_archive(&output, Compression::best())?;
    println!(
        "{} {}\n{} bytes compressed: {}",
        image.name(),
        written.digest,
        written.layer_bytes,
        output.display()
    );
    Ok(())
}
