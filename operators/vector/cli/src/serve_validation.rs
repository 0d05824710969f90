//! `lockstep vector serve-validation`: validation by the Vector of an image, for the controller.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use lockstep_sdk::duration;
use lockstep_vector_validator::{PORT, Server};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Address to listen on.
    #[arg(long, value_name = "ADDRESS", default_value_t = SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT)))]
    bind_address: SocketAddr,
    /// Directory with the certificate (`tls.crt`), its private key (`tls.key`) and the bearer token of the clients
    /// (`token`). They are reloaded when they change.
    #[arg(long, value_name = "DIRECTORY")]
    credentials: PathBuf,
    /// Directory for the files of the configurations. They are deleted after the validation.
    #[arg(long, value_name = "DIRECTORY")]
    work_dir: PathBuf,
    /// Vector. Default: the program `vector` in `PATH`.
    #[arg(long = "vector", value_name = "PROGRAM")]
    program: Option<PathBuf>,
    /// Time after which a process of Vector is killed. The validation then has no result.
    #[arg(long, default_value = "10s", value_parser = duration)]
    timeout: Duration,
    /// Maximum number of processes of Vector. Each uses up to 140 MiB of memory.
    #[arg(long, default_value = "1")]
    concurrency: NonZeroUsize,
    /// Arguments of Vector. `--config-dir` with the directory of the configuration is added.
    #[arg(last = true, default_values = ["validate", "--skip-healthchecks"])]
    arguments: Vec<OsString>,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    let server = Server {
        address: args.bind_address,
        credentials: args.credentials.clone(),
        work: args.work_dir.clone(),
        program: args.program.clone(),
        arguments: args.arguments.clone(),
        timeout: args.timeout,
        concurrency: args.concurrency,
    };
    lockstep_sdk::run_server(|stopping| async { Ok(server.serve(stopping).await?) })
}
