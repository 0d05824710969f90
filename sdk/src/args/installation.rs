//! Options that select an installation in a cluster.

use anyhow::Context;
use clap::{CommandFactory, Parser};
use k8s_openapi::api::apps::v1::Deployment;
use lockstep_manifests::names::Names;

use crate::args::kinds::KindArgs;
use crate::args::scope::InstallScopeArgs;
use crate::installation::installed_names::InstalledNameArgs;

/// Options that select an installation. Its Deployment supplies those that are not given.
#[derive(clap::Args)]
pub(crate) struct InstallationArgs {
    /// Namespace of the installation. Default: the first one of `--watch-namespaces`, or that of the manifests.
    #[arg(long, short)]
    namespace: Option<String>,
    /// Helm release of the installation, if the namespace has several.
    #[arg(long)]
    release: Option<String>,
    #[command(flatten)]
    controller: ControllerScopeArgs,
}

/// The options of `controller` for its kinds and its scope.
#[derive(Clone, clap::Args)]
pub(crate) struct ControllerScopeArgs {
    #[command(flatten)]
    pub(crate) kinds: KindArgs,
    #[command(flatten)]
    pub(crate) scope: InstallScopeArgs,
}

/// Parser of the arguments of a controller container.
#[derive(Parser)]
#[command(no_binary_name = true, args_override_self = true)]
pub(crate) struct ContainerArgs {
    #[command(flatten)]
    pub(crate) controller: ControllerScopeArgs,
    #[command(flatten)]
    pub(crate) names: InstalledNameArgs,
}

impl InstallationArgs {
    /// Returns the namespace, if it is given.
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Returns the namespace of the installation.
    pub(crate) fn home<'a>(&'a self, names: &'a Names) -> &'a str {
        let given = self.namespace.as_deref();
        let first = self.controller.scope.watched().first();
        given
            .or(first.map(String::as_str))
            .unwrap_or(&names.namespace)
    }

    /// Returns the Helm release, if it is given.
    pub(crate) fn release(&self) -> Option<&str> {
        self.release.as_deref()
    }

    /// Returns the kinds and the scope: those that are given, or else those of the running installation. Its names are
    /// always those of the running one.
    pub(crate) fn controller(&self, deployments: &[Deployment]) -> anyhow::Result<ContainerArgs> {
        let mut running = of_deployments(deployments).context(
            "cannot read the arguments of the Deployment; this program must have its version",
        )?;
        if self.controller.kinds.argument().is_some() {
            running.controller.kinds = self.controller.kinds.clone();
        }
        if !self.controller.scope.is_default() {
            running.controller.scope = self.controller.scope.clone();
        }
        Ok(running)
    }
}

/// Parses the arguments of the containers, without those that the parser does not know.
fn of_deployments(deployments: &[Deployment]) -> Result<ContainerArgs, clap::Error> {
    let command = ContainerArgs::command();
    let known: Vec<_> = command
        .get_arguments()
        .filter_map(clap::Arg::get_long)
        .collect();
    let is_known = |argument: &&String| {
        let name = argument
            .split('=')
            .next()
            .and_then(|name| name.strip_prefix("--"));
        name.is_some_and(|name| known.contains(&name))
    };
    let pods = deployments
        .iter()
        .filter_map(|deployment| deployment.spec.as_ref()?.template.spec.as_ref());
    let args = pods
        .flat_map(|pod| &pod.containers)
        .flat_map(|container| container.args.iter().flatten())
        .filter(is_known);
    ContainerArgs::try_parse_from(args)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::installation::installed_names::InstalledNames;

    use super::*;

    #[derive(Parser)]
    struct Options {
        #[command(flatten)]
        installation: InstallationArgs,
    }

    fn given(arguments: &[&str]) -> InstallationArgs {
        Options::parse_from([&["lockstep"], arguments].concat()).installation
    }

    fn deployment(args: &[&str]) -> Deployment {
        let container = json!({"name": "controller", "args": args});
        let template = json!({"spec": {"containers": [container]}});
        let deployment = json!({"spec": {"selector": {}, "template": template}});
        serde_json::from_value(deployment).expect("a Deployment")
    }

    #[test]
    fn what_is_not_given_is_read_from_the_deployment() {
        let running = deployment(&["controller", "--kinds=*,Echo", "--watch-namespaces=a,b"]);
        let found = given(&[]).controller(std::slice::from_ref(&running));
        let found = found.expect("valid arguments").controller;
        assert_eq!(found.kinds.argument().as_deref(), Some("--kinds=*,Echo"));
        assert_eq!(found.scope.watched(), ["a", "b"]);
        let found = given(&["--kinds=Echo", "--watch-namespaces=c"]).controller(&[running]);
        let found = found.expect("valid arguments").controller;
        assert_eq!(found.kinds.argument().as_deref(), Some("--kinds=Echo"));
        assert_eq!(found.scope.watched(), ["c"]);
    }

    #[test]
    fn the_names_are_those_of_the_running_release() {
        let names_of = |args: &[&str]| {
            let found = given(&[]).controller(&[deployment(args)]);
            let args = found.expect("valid arguments").names;
            InstalledNames::new(args, Names::new("lockstep", "lockstep.dev"))
        };
        let release = names_of(&[
            "controller",
            "--leader-election-id=prod-lockstep-controller",
            "--tls-secret=issued",
            "--webhook-service=prod-lockstep-webhook",
        ]);
        assert_eq!(release.full_name(), "prod-lockstep");
        assert_eq!(release.tls_secret(), "issued");
        assert_eq!(names_of(&["controller"]).full_name(), "lockstep");
        let found = given(&[]).controller(&[deployment(&["controller", "--no-webhook"])]);
        assert!(
            !found
                .expect("valid arguments")
                .controller
                .scope
                .has_webhook()
        );
    }

    #[test]
    fn the_namespace_of_an_installation_has_a_default() {
        let names = Names::new("lockstep", "lockstep.dev");
        assert_eq!(given(&[]).home(&names), "lockstep-system");
        assert_eq!(given(&["--watch-namespaces=a,b"]).home(&names), "a");
        assert_eq!(given(&["-n=c", "--watch-namespaces=a"]).home(&names), "c");
    }
}
