//! Installation in a cluster, as administrators see it with their own rights: what it consists of, and the objects
//! of its kinds. The subcommands `status` and `uninstall` read it.

pub(crate) mod age;
pub(crate) mod installed_names;
pub(crate) mod lease;
pub(crate) mod manifest_object;
pub(crate) mod objects;
pub(crate) mod stored_object;

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use lockstep_manifests::names::{self, Names};

use crate::args::installation::InstallationArgs;
use crate::environment::Environment;
use crate::installation::installed_names::InstalledNames;
use crate::registry::SelectedKinds;

/// Selects the Deployments and Pods of all installations in a namespace, or of one Helm release: webhook with controller,
/// and separate controllers.
pub(crate) fn selector(program: &str, release: Option<&str>) -> ListParams {
    let all = format!("{}={}", names::PART_OF, program);
    let selector = match release {
        Some(release) => format!("{all},{INSTANCE}={release}"),
        None => all,
    };
    ListParams::default().labels(&selector)
}

/// Label that contains the name of a Helm release.
const INSTANCE: &str = "app.kubernetes.io/instance";

/// Annotation in which Helm stores the name of a release.
const HELM_RELEASE: &str = "meta.helm.sh/release-name";

/// Installation with its kinds and its scope.
pub(crate) struct Installation<'a> {
    pub(crate) client: Client,
    /// Namespace of the Pods.
    pub(crate) home: String,
    pub(crate) names: InstalledNames,
    /// Name of the Helm release, if Helm has installed it.
    pub(crate) helm_release: Option<String>,
    /// Selects the Pods.
    pub(crate) pods: ListParams,
    pub(crate) kinds: SelectedKinds<'a>,
    /// The watched namespaces; empty for all.
    pub(crate) namespaces: Vec<String>,
    /// If true, another installation owns the CRDs and the objects.
    pub(crate) is_webhook_only: bool,
    /// If false, there are no webhook configurations and no certificates.
    pub(crate) has_webhook: bool,
}

impl<'a> Installation<'a> {
    /// Selects an installation by the options and by its Deployments.
    pub(crate) fn new(
        client: Client,
        args: &InstallationArgs,
        deployments: &[Deployment],
        environment: &'a Environment,
    ) -> anyhow::Result<Self> {
        let names = environment.names();
        let releases: BTreeSet<_> = deployments.iter().map(instance).collect();
        if releases.len() > 1 {
            let releases: Vec<_> = releases.into_iter().map(describe).collect();
            anyhow::bail!(
                "the namespace {} has several installations: {}; select a release with `--release`",
                args.home(&names),
                releases.join(", ")
            );
        }
        let running = args.controller(deployments)?;
        let controller = running.controller;
        let kinds = controller.kinds.choose(environment.registry())?;
        let namespaces = controller.scope.namespaces(kinds.cluster_scoped_kind())?;
        let namespaces = namespaces.to_vec();
        let found = deployments.first();
        let release = found.and_then(|found| found.annotations().get(HELM_RELEASE));
        Ok(Self {
            client,
            // Without a chart, a namespaced installation runs in the first of its namespaces.
            home: match (found, namespaces.first()) {
                (None, Some(first)) => first.clone(),
                _ => args.home(&names).to_owned(),
            },
            pods: selector(&names.program, found.and_then(instance)),
            names: InstalledNames::new(running.names, names),
            helm_release: release.cloned(),
            kinds,
            namespaces,
            is_webhook_only: controller.scope.is_webhook_only(),
            has_webhook: controller.scope.has_webhook(),
        })
    }

    /// Returns the namespace of the installation for that of the manifests, and any other one unchanged.
    pub(crate) fn namespace_of(&self, in_manifests: &str) -> String {
        let is_home = in_manifests == self.names.manifests().namespace;
        let namespace = if is_home { &self.home } else { in_manifests };
        namespace.to_owned()
    }

    /// Returns true if the installation is limited to some namespaces.
    pub(crate) fn is_namespaced(&self) -> bool {
        !self.namespaces.is_empty()
    }
}

/// Reads the Deployments of the installation in a namespace.
pub(crate) async fn deployments(
    client: &Client,
    args: &InstallationArgs,
    names: &Names,
) -> Result<Vec<Deployment>, kube::Error> {
    let api: Api<Deployment> = Api::namespaced(client.clone(), args.home(names));
    let selector = selector(&names.program, args.release());
    Ok(api.list(&selector).await?.items)
}

/// Returns the Helm release that a Deployment belongs to, by its label.
fn instance(deployment: &Deployment) -> Option<&str> {
    deployment.labels().get(INSTANCE).map(String::as_str)
}

fn describe(release: Option<&str>) -> String {
    release.map_or_else(
        || "one without Helm".to_owned(),
        |name| format!("the release {name}"),
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use kube::Config;
    use serde_json::json;

    use super::*;

    #[derive(Parser)]
    struct Options {
        #[command(flatten)]
        installation: InstallationArgs,
    }

    fn deployment(release: Option<&str>) -> Deployment {
        let labels = release.map_or_else(|| json!({}), |release| json!({INSTANCE: release}));
        let container = json!({"name": "controller", "args": ["controller"]});
        let template = json!({"spec": {"containers": [container]}});
        let deployment = json!({
            "metadata": {"name": "any", "labels": labels},
            "spec": {"selector": {}, "template": template},
        });
        serde_json::from_value(deployment).expect("a Deployment")
    }

    impl<'a> Installation<'a> {
        /// Returns an installation by the options of a subcommand and those of its controller. It needs a runtime.
        pub(crate) fn sample(
            arguments: &[&str],
            controller: &[&str],
            environment: &'a Environment,
        ) -> Self {
            let config = Config::new("http://127.0.0.1:1".parse().expect("a URL"));
            let client = Client::try_from(config).expect("a client");
            let args = Options::parse_from([&["lockstep"], arguments].concat()).installation;
            let mut found = deployment(None);
            let pod = found
                .spec
                .as_mut()
                .and_then(|spec| spec.template.spec.as_mut());
            let containers = pod.map(|pod| &mut pod.containers).expect("a Pod");
            let controller = controller.iter().map(|argument| (*argument).to_owned());
            containers[0].args = Some(controller.collect());
            Self::new(client, &args, &[found], environment).expect("an installation")
        }
    }

    #[tokio::test]
    async fn one_of_several_installations_must_be_selected() {
        let config = Config::new("http://127.0.0.1:1".parse().expect("a URL"));
        let client = Client::try_from(config).expect("a client");
        let args = Options::parse_from(["lockstep"]).installation;
        let selected = |releases: &[Option<&str>]| {
            let found: Vec<_> = releases
                .iter()
                .map(|release| deployment(*release))
                .collect();
            let environment = Environment::sample();
            let selected = Installation::new(client.clone(), &args, &found, &environment);
            let selected = selected.map(|it| it.pods.label_selector.unwrap_or_default());
            selected.map_err(|error| error.to_string())
        };
        let part_of = "app.kubernetes.io/part-of=lockstep";
        assert_eq!(selected(&[]), Ok(part_of.to_owned()));
        assert_eq!(selected(&[None, None]), Ok(part_of.to_owned()));
        let release = format!("{part_of},app.kubernetes.io/instance=a");
        assert_eq!(selected(&[Some("a"), Some("a")]), Ok(release));
        let several = "the namespace lockstep-system has several installations: one without Helm, the release a, the release b; select a release with `--release`";
        assert_eq!(
            selected(&[Some("a"), None, Some("b")]),
            Err(several.to_owned())
        );
    }
}
