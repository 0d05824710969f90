//! SDK for operators of validated custom resources: a program with webhook, controller, certificates, offline
//! check and manifests for the kinds of its operators.
//!
//! The concepts, in reading order:
//!
//! # Program
//!
//! A [`Program`] is the `main` of an operator: it has a name, registers operators and runs the subcommand that the
//! command line names. Every program has these subcommands:
//!
//! | subcommand | purpose |
//! |---|---|
//! | `check` | validates files without a cluster |
//! | `webhook` | serves the admission webhook |
//! | `controller` | runs the controllers and manages the certificates of the webhook |
//! | `manifests` | writes the YAML files of an installation |
//! | `rules` | lists and explains the rules |
//! | `audit` | validates the objects that a cluster stores |
//! | `status` | reports what an installation does |
//! | `uninstall` | removes the objects and the installation in a safe order |
//! | `completions`, `man` | print shell completions, write manual pages |
//! | `dev` | starts a control plane with an installation on this machine (feature `dev`) |
//!
//! # Operator
//!
//! An [`Operator`] registers one or several kinds. A kind is a type that implements
//! [`ValidatedResource`](lockstep_shared_validation::ValidatedResource), with its CRD, defaults and rules. The ruleset
//! that is compiled from it validates the objects in all subcommands. A kind also has a
//! [`Reconciler`](lockstep_controller::Reconciler), which the command `controller` runs, and an [`Audience`]: the users who may
//! create its objects, from which the RBAC roles for users are generated.
//!
//! [`Operator::of`] registers a reconciler that needs only the cluster. [`Operator::with_args`] is for an operator that
//! uses other systems: its arguments, a type that implements [`clap::Args`], become arguments of the command
//! `controller`, and a function creates the state of the operator from them and from the [`OperatorContext`].
//!
//! # Hooks
//!
//! An operator can add subcommands to the program ([`Operator::subcommand`]), give its rules a value such as a cache
//! ([`Operator::ruleset_extension`]), which may be [read again](RulesetExtension) when [files](JsonFolders) change, and supply related objects to `audit` ([`AuditSnapshot`], [`AuditFinding`], [`SensitiveNamespace`]). An [`AdmissionCheck`] is
//! asked by the webhook and needs the cluster.
//!
//! # Command line
//!
//! [`duration`] parses durations as all options of the program do. [`run_server`] runs the server of a subcommand, and [`cluster_client`] is its access to the cluster. [`InputFormat`] is the option of subcommands that
//! read many requests, and [`on_one_line`] escapes text for one line of output.
//!
//! # Other crates
//!
//! The crates that an operator author needs are re-exported: [`controller`] with the reconcilers,
//! [`shared_validation`] with the rules, and [`anyhow`], [`clap`], [`kube`] and [`serde_json`], whose types occur in
//! this interface.

mod admission_checks;
mod args;
mod check;
mod cli;
mod commands;
mod definition;
mod election;
mod environment;
mod installation;
mod json_folders;
mod logging;
mod operator;
mod output_file;
mod printer;
mod program;
mod read_error;
mod registry;
mod server;
mod status;
mod tracing_export;
mod uninstall;

pub use anyhow;
pub use async_trait::async_trait;
pub use clap;
pub use kube;
pub use lockstep_controller as controller;
pub use lockstep_shared_validation as shared_validation;
pub use lockstep_webhook::{AdmissionCheckRequest, AdmissionCheckResult, Finding, off_the_runtime};
pub use prometheus_client;
pub use serde_json;

pub use crate::admission_checks::AdmissionCheck;
pub use crate::args::cluster::cluster_client;
pub use crate::args::input_format::InputFormat;
pub use crate::check::diagnostic::on_one_line;
pub use crate::json_folders::{JsonFolders, json_files, parse_json_file};
pub use crate::operator::Operator;
pub use crate::operator::audience::Audience;
pub use crate::operator::audit_snapshot::{AuditFinding, AuditSnapshot, SensitiveNamespace};
pub use crate::operator::context::OperatorContext;
#[cfg(feature = "dev")]
pub use crate::operator::dev_service::{DevService, RunningService};
pub use crate::operator::extension_files::{ExtensionReload, RulesetExtension};
pub use crate::output_file::{exit_code_of_output, write_output};
pub use crate::program::Program;
pub use crate::read_error::describe_read_error;
pub use crate::server::runtime::{MAX_WAITING_THREADS, duration, run_server};
