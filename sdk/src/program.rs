//! Program: the subcommands and the registered operators.

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use clap::builder::Resettable;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser};
use lockstep_manifests::names::Names;

use crate::cli::{Cli, Command};
use crate::commands;
use crate::definition::DefinitionError;
use crate::environment::Environment;
use crate::operator::Operator;
use crate::operator::extension::VALIDATING;
use crate::operator::subcommand::Subcommand;
use crate::registry::Registry;

/// Name of the subcommand that has the arguments of the operators.
const CONTROLLER: &str = "controller";

/// Name of the subcommand that has the arguments of the snapshots.
const AUDIT: &str = "audit";

/// Exit code if an input cannot be read, or the program is defined incorrectly.
const UNREADABLE: u8 = 2;

/// A program with its operators. It has all subcommands, for all kinds of the operators.
///
/// ```no_run
/// use std::process::ExitCode;
///
/// use lockstep_sdk::Program;
/// # mod greeting {
/// #     use lockstep_sdk::controller::{ReconcileError, Reconciler};
/// #     use lockstep_sdk::controller::{SyncReconciler, SyncRequest, SyncResponse};
/// #     use lockstep_sdk::shared_validation::ValidatedResource;
/// #
/// #     #[derive(serde::Deserialize)]
/// #     pub struct Greeting {}
/// #
/// #     impl ValidatedResource for Greeting {
/// #         const GROUP: &'static str = "demo.example.com";
/// #         const VERSION: &'static str = "v1";
/// #         const KIND: &'static str = "Greeting";
/// #         fn crd() -> serde_json::Value {
/// #             serde_json::json!({})
/// #         }
/// #         fn example() -> serde_json::Value {
/// #             serde_json::json!({})
/// #         }
/// #     }
/// #
/// #     pub fn operator() -> impl Reconciler<Kind = Greeting> {
/// #         SyncReconciler::new(sync)
/// #     }
/// #
/// #     fn sync(_: &SyncRequest<'_, Greeting>) -> Result<SyncResponse, ReconcileError> {
/// #         Ok(SyncResponse::new())
/// #     }
/// # }
/// use lockstep_sdk::{Audience, Operator};
///
/// fn main() -> ExitCode {
///     Program::new("greeter")
///         .version(env!("CARGO_PKG_VERSION"))
///         .operator(Operator::of(Audience::Tenants, greeting::operator))
///         .run()
/// }
/// ```
pub struct Program {
    environment: Environment,
    about: Option<&'static str>,
    examples: Option<&'static str>,
}

impl Program {
    /// Creates a program without operators. The name is that of the executable file, and the names of the objects of an
    /// installation begin with it.
    ///
    /// It is also the field manager of what the controllers write. After a change of the name, the fields that were written
    /// under the old one stay until their objects are deleted, also if they are no longer desired.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self {
            environment: Environment {
                name,
                version: env!("CARGO_PKG_VERSION"),
                webhook_domain: None,
                registry: Registry::default(),
            },
            about: None,
            examples: None,
        }
    }

    /// Sets the version that `--version` prints. Default: the version of this crate.
    #[must_use]
    pub fn version(mut self, version: &'static str) -> Self {
        self.environment.version = version;
        self
    }

    /// Sets the domain at the end of the names of the webhooks, which the API server prints in its messages. Default: the
    /// group of the first kind.
    #[must_use]
    pub fn webhook_domain(mut self, domain: &'static str) -> Self {
        self.environment.webhook_domain = Some(domain);
        self
    }

    /// Sets the description that `--help` prints. Default: a description of the subcommands.
    #[must_use]
    pub fn about(mut self, about: &'static str) -> Self {
        self.about = Some(about);
        self
    }

    /// Registers an operator. `--kinds` lists the kinds in the order of their registration.
    #[must_use]
    pub fn operator<S: Send + Sync + 'static>(mut self, operator: Operator<S>) -> Self {
        self.environment.registry.operators.push(operator.into());
        self
    }

    /// Adds a subcommand that belongs to no operator. The parser sets its name, help and arguments.
    #[must_use]
    pub fn subcommand<A: Parser + 'static>(mut self, run: fn(&A) -> ExitCode) -> Self {
        let subcommands = &mut self.environment.registry.subcommands;
        subcommands.push(Subcommand::new(run));
        self
    }

    /// Sets the default folder of the examples that the command `dev` applies. Without the feature `dev` there is no such
    /// command.
    #[must_use]
    pub fn examples(mut self, folder: &'static str) -> Self {
        self.examples = Some(folder);
        self
    }

    /// Returns the definition of the command line. A test can check its consistency with
    /// [`debug_assert`](clap::Command::debug_assert).
    #[must_use]
    pub fn command(&self) -> clap::Command {
        let mut command = Cli::command()
            .name(self.environment.name)
            .version(self.environment.version());
        if let Some(about) = self.about {
            command = command.about(about);
        }
        #[cfg(feature = "dev")]
        if let Some(folder) = self.examples {
            let with_default = |arg: clap::Arg| arg.required(false).default_value(folder);
            command = changed(command, "dev", |dev| dev.mut_arg("examples", with_default));
        }
        let mut command = with_default_names(command, &self.environment.names());
        for operator in &self.environment.registry.operators {
            let definition = &operator.definition;
            let subcommands = definition.subcommands.iter();
            let with_arguments =
                |controller| keeping_description(controller, definition.add_arguments);
            command = changed(command, CONTROLLER, with_arguments);
            if let Some(extension) = &definition.extension {
                let with_arguments = |one| keeping_description(one, extension.add_arguments);
                command = VALIDATING.into_iter().fold(command, |command, name| {
                    changed(command, name, with_arguments)
                });
            }
            if let Some(snapshot) = &definition.audit_snapshot {
                let with_arguments = |audit| keeping_description(audit, snapshot.add_arguments);
                command = changed(command, AUDIT, with_arguments);
            }
            command = command.subcommands(subcommands.map(|subcommand| subcommand.command.clone()));
        }
        let own = self.environment.registry.subcommands.iter();
        command.subcommands(own.map(|subcommand| subcommand.command.clone()))
    }

    /// Reads the command line and runs the subcommand. Returns the exit code of the process.
    ///
    /// If the command line is invalid, prints the error and exits the process. A program whose name is invalid, or in which two
    /// kinds or subcommands have the same name, prints that instead and runs nothing.
    #[must_use = "the value is the exit code of the process"]
    pub fn run(self) -> ExitCode {
        self.run_from(env::args_os())
    }

    /// Runs the subcommand of a command line, whose first argument is the name of the program, as [`run`](Self::run) does.
    #[must_use = "the value is the exit code of the process"]
    pub fn run_from(mut self, arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
        if let Err(error) = self.check_definition() {
            eprintln!("{}: {error}", self.environment.name);
            return ExitCode::from(UNREADABLE);
        }
        let matches = self.command().get_matches_from(arguments);
        if let Some((name, arguments)) = matches.subcommand() {
            let registry = &mut self.environment.registry;
            if let Err(error) = registry.create_extensions(name, arguments) {
                eprintln!("{}: {error:#}", self.environment.name);
                return ExitCode::from(UNREADABLE);
            }
            if let Some(subcommand) = self.environment.registry.subcommand(name) {
                return subcommand
                    .run(arguments)
                    .unwrap_or_else(|error| error.exit());
            }
        }
        match Cli::from_arg_matches(&matches) {
            Ok(cli) => self.dispatch(cli.command, &matches),
            Err(error) => error.format(&mut self.command()).exit(),
        }
    }

    pub(crate) fn check_definition(&self) -> Result<(), DefinitionError> {
        self.environment.check_definition()
    }

    fn dispatch(self, command: Command, matches: &ArgMatches) -> ExitCode {
        let name = self.environment.name;
        let environment = &self.environment;
        let result = match command {
            Command::Check(args) => return commands::check::run(&args, environment),
            Command::Audit(args) => {
                let arguments = matches.subcommand_matches(AUDIT);
                let arguments = arguments.cloned().unwrap_or_default();
                return commands::audit::run(&args, &arguments, environment);
            }
            Command::Status(args) => return commands::status::run(&args, environment),
            Command::Uninstall(args) => return commands::uninstall::run(&args, environment),
            Command::Manifests(args) => return commands::manifests::run(&args, environment),
            Command::Completions(args) => {
                commands::shell::completions(&args, self.command(), environment)
            }
            Command::Man(args) => commands::shell::man(&args, self.command()),
            Command::Rules(args) => commands::rules::run(&args, environment),
            Command::Webhook(args) => commands::webhook::run(*args, environment),
            Command::Controller(args) => {
                let arguments = matches.subcommand_matches(CONTROLLER);
                let arguments = arguments.cloned().unwrap_or_default();
                commands::controller::run(*args, arguments, self.environment)
            }
            #[cfg(feature = "dev")]
            Command::Dev(args) => commands::dev::run(&args, environment),
        };
        match result {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{name}: {error:#}");
                ExitCode::FAILURE
            }
        }
    }
}

/// Sets the default values of arguments that are names of objects of the installation.
fn with_default_names(command: clap::Command, names: &Names) -> clap::Command {
    let defaults = [
        ("namespace", &names.namespace),
        ("leader_election_id", &names.lease),
        ("leader_election_identity", &names.program),
        ("tls_secret", &names.tls_secret),
        ("webhook_service", &names.service),
        ("webhook_configuration", &names.webhook_configuration),
        ("webhook_deployment", &names.deployment),
    ];
    changed(command, CONTROLLER, |controller| {
        defaults
            .into_iter()
            .fold(controller, |controller, (id, name)| {
                controller.mut_arg(id, |arg| arg.required(false).default_value(name.clone()))
            })
    })
}

/// Changes a subcommand, which keeps its position. [`clap::Command::mut_subcommand`] would move it to the end.
fn changed(
    mut command: clap::Command,
    name: &str,
    change: impl FnOnce(clap::Command) -> clap::Command,
) -> clap::Command {
    let mut subcommands = command.get_subcommands_mut();
    if let Some(subcommand) = subcommands.find(|subcommand| subcommand.get_name() == name) {
        *subcommand = change(std::mem::take(subcommand));
    }
    drop(subcommands);
    command
}

/// Adds arguments to a subcommand. The doc comment of the arguments would replace the description of the subcommand.
fn keeping_description(
    command: clap::Command,
    add_arguments: fn(clap::Command) -> clap::Command,
) -> clap::Command {
    let about = command.get_about().cloned();
    let long_about = command.get_long_about().cloned();
    add_arguments(command)
        .about(Resettable::from(about))
        .long_about(Resettable::from(long_about))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use clap::Args;

    use super::*;
    use crate::operator::audience::Audience;
    use crate::operator::extension_files::RulesetExtension;
    use crate::operator::test_kinds::lamps;

    /// Options of lamps.
    #[derive(Args)]
    struct LampArgs {
        /// Power of each lamp, in watts.
        #[arg(long, default_value = "5")]
        lamp_power: u8,
    }

    /// Tests a lamp.
    #[derive(Parser)]
    #[command(name = "lamp")]
    struct LampCommand {
        code: u8,
    }

    fn program() -> Program {
        let lamps = Operator::with_args(async |args: LampArgs, _| Ok(args.lamp_power))
            .kind(Audience::Tenants, |_: &u8, _| lamps())
            .subcommand(|args: &LampCommand| ExitCode::from(args.code));
        Program::new("lighting").operator(lamps)
    }

    fn names(command: &clap::Command) -> Vec<&str> {
        command
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect()
    }

    #[test]
    fn arguments_of_an_operator_belong_to_the_command_controller() {
        program().command().debug_assert();
        let power = |arguments: &[&str]| {
            let arguments = [&["lighting"], arguments].concat();
            let matches = program().command().try_get_matches_from(arguments).ok()?;
            let matches = matches.subcommand_matches(CONTROLLER)?;
            LampArgs::from_arg_matches(matches)
                .ok()
                .map(|args| args.lamp_power)
        };
        assert_eq!(power(&["controller"]), Some(5));
        assert_eq!(power(&["controller", "--lamp-power=7"]), Some(7));
        // As every option of the controller, it can be repeated.
        let repeated = ["controller", "--lamp-power=7", "--lamp-power=9"];
        assert_eq!(power(&repeated), Some(9));
        assert_eq!(power(&["webhook", "--lamp-power=7"]), None);
    }

    /// Arguments of the extension of lamps.
    #[derive(Args)]
    struct ColorArgs {
        /// Color of each lamp.
        #[arg(long, default_value = "white")]
        lamp_color: String,
    }

    #[test]
    fn arguments_of_an_extension_belong_to_every_command_that_validates() {
        let created = |arguments: &[&str]| {
            let lamps = Operator::new().kind(Audience::Tenants, |(), _| lamps());
            let lamps = lamps.ruleset_extension(|args: &ColorArgs, command| {
                anyhow::ensure!(args.lamp_color != "black", "black is no color");
                let text = format!("{command}: {}", args.lamp_color);
                Ok(RulesetExtension::new(Arc::new(text)))
            });
            let mut program = Program::new("lighting").operator(lamps);
            let arguments = [&["lighting"], arguments].concat();
            let matches = program.command().try_get_matches_from(arguments);
            let matches = matches.map_err(|error| error.kind().to_string())?;
            let (command, arguments) = matches.subcommand().expect("a subcommand");
            let registry = &mut program.environment.registry;
            let created = registry.create_extensions(command, arguments);
            created.map_err(|error| error.to_string())?;
            let extension = registry.operators[0]
                .extension
                .clone()
                .expect("an extension");
            let text = extension.downcast::<String>().expect("a text");
            Ok::<_, String>(text.as_ref().clone())
        };
        for arguments in [
            &["webhook"][..],
            &["controller"],
            &["audit"],
            &["check", "-"],
        ] {
            let command = arguments[0];
            let given = created(&[arguments, &["--lamp-color=red"]].concat());
            assert_eq!(given, Ok(format!("{command}: red")));
            assert_eq!(created(arguments), Ok(format!("{command}: white")));
        }
        assert_eq!(created(&["rules"]), Ok("rules: white".to_owned()));
        let wrong = created(&["check", "-", "--lamp-color=black"]);
        assert_eq!(wrong, Err("black is no color".to_owned()));
        assert!(created(&["rules", "--lamp-color=red"]).is_err());
    }

    #[test]
    fn arguments_of_an_operator_do_not_change_the_description_of_the_command() {
        let description = |program: &Program| {
            let mut command = program.command();
            let controller = command.find_subcommand_mut(CONTROLLER);
            let about = controller.and_then(|controller| controller.get_about());
            about.map(ToString::to_string)
        };
        let own = description(&Program::new("lighting"));
        assert!(own.is_some());
        assert_eq!(description(&program()), own);
    }

    #[test]
    fn the_subcommands_of_operators_follow_those_of_every_program() {
        let (own, program) = (Program::new("lighting").command(), program().command());
        assert_eq!(names(&program), [names(&own), vec!["lamp"]].concat());
    }

    #[test]
    fn a_subcommand_of_an_operator_runs_with_its_arguments() {
        let program = program();
        let matches = program
            .command()
            .try_get_matches_from(["lighting", "lamp", "3"])
            .expect("valid arguments");
        let arguments = matches.subcommand_matches("lamp").expect("the subcommand");
        let subcommand = program
            .environment
            .registry
            .subcommand("lamp")
            .expect("the subcommand");
        let code = subcommand.run(arguments).expect("valid arguments");
        assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::from(3)));
        assert!(program.environment.registry.subcommand("check").is_none());
    }
}
