//! `lockstep vector`: validation of Vector configurations, without a cluster and without Vector.

mod catalogue;
pub mod catalogue_files;
mod collect_events;
mod common_args;
mod compilers;
mod components;
mod configuration;
#[cfg(unix)]
mod copy_program;
pub mod environment;
mod flow;
mod graph;
#[cfg(not(unix))]
mod in_process;
mod lines;
mod loaded;
mod migrate_data;
#[cfg(unix)]
mod pool;
mod problems;
mod report;
#[cfg(unix)]
mod serve_validation;
mod test;
#[cfg(unix)]
mod test_process;
mod trace;
mod unit_tests;
mod validate;
#[cfg(unix)]
mod worker;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::common_args::CommonArgs;
#[cfg(not(unix))]
pub use crate::in_process::run_tests;
#[cfg(unix)]
pub use crate::test_process::run_tests;

/// Validate Vector configurations.
#[derive(Parser)]
#[command(name = "vector")]
pub struct Args {
    #[command(flatten)]
    common: CommonArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Validate configurations as `vector validate --no-environment` does. Exit codes: 0: Vector would start with
    /// them; 78: it would not.
    Validate(validate::Args),
    /// Run the tests of configurations (`tests:`), as `vector test` does. The transforms `remap`, `filter`, `route` and
    /// `exclusive_route` run here; a test that needs others is not run. Exit codes: 0: all tests passed; 1: one failed; 2: one
    /// was not run; 78: Vector would not load the configuration.
    Test(test::Args),
    /// Show the event after each component, the route that it takes, and where it is dropped. Exit codes: 0: the trace is
    /// complete; 2: only Vector runs a component that the event reaches; 78: Vector would not load the configuration.
    Trace(trace::Args),
    /// Draw the components of configurations and of pipelines, and which output is an input of which.
    Graph(graph::Args),
    /// List the component types of Vector, or all options of one type.
    Components(components::Args),
    /// Write the catalogue of another version of Vector from the output of its `vector generate-schema`. With it,
    /// configurations and pipelines are validated for this version.
    Catalogue(catalogue::Args),
    /// Move read positions and disk buffers of Vector to directories with other names of components. It is run by an init
    /// container, before Vector starts. Exit codes: 0: Vector can start; 1: a directory could not be read or written.
    MigrateData(migrate_data::Args),
    /// Send the Events of Kubernetes to pipelines with a source of the type `kubernetes_events`. The event collector of an
    /// aggregator runs it.
    CollectEvents(collect_events::Args),
    /// Serve the validation by the Vector of an image, over HTTPS: the container of a validator runs it beside this Vector.
    #[cfg(unix)]
    ServeValidation(serve_validation::Args),
    /// Copy this program with its libraries into a directory, from which a container of another image can run it.
    #[cfg(unix)]
    CopyProgram(copy_program::Args),
    /// Run a VRL worker, which compiles VRL programs for another process.
    #[cfg(unix)]
    #[command(hide = true)]
    VrlWorker(worker::WorkerLimits),
    /// Run the tests of one configuration for another process.
    #[cfg(unix)]
    #[command(hide = true)]
    RunTests(worker::WorkerLimits),
}

/// Runs a command.
#[must_use]
pub fn run(args: &Args) -> ExitCode {
    match &args.command {
        Command::Validate(validate) => validate::run(validate, &args.common),
        Command::Test(test) => test::run(test, &args.common),
        Command::Trace(trace) => trace::run(trace, &args.common),
        Command::Graph(graph) => graph::run(graph, &args.common),
        Command::Components(components) => components::run(components),
        Command::Catalogue(catalogue) => catalogue::run(catalogue),
        Command::CollectEvents(collect_events) => collect_events::run(collect_events),
        Command::MigrateData(migrate_data) => migrate_data::run(migrate_data),
        #[cfg(unix)]
        Command::ServeValidation(serve) => serve_validation::run(serve),
        #[cfg(unix)]
        Command::CopyProgram(copy) => copy_program::run(copy),
        #[cfg(unix)]
        Command::VrlWorker(limits) => worker::run(*limits),
        #[cfg(unix)]
        Command::RunTests(limits) => test_process::run(*limits),
    }
}
