//! Generated files of the Helm charts: everything that depends on the kinds and their operators. The templates of the
//! charts are written by hand; they read these files and add what the values of an installation say.

mod author_chart;

use serde_json::{Value, json};

use crate::manifest::{Manifest, crd_file, manifest};
use crate::marker::marker;
use crate::options::InstallOptions;
use crate::{crd_protection, deployment, rbac, values_table, webhook_configuration};

/// Templates of the chart `lockstep` that `lockstep-crds` has, too. Charts cannot read the files of one another.
const SHARED_TEMPLATES: [(&str, &str); 3] = [
    (
        "_crds.tpl",
        include_str!("../chart/lockstep/templates/_crds.tpl"),
    ),
    (
        "_metadata.tpl",
        include_str!("../chart/lockstep/templates/_metadata.tpl"),
    ),
    (
        "_user-roles.tpl",
        include_str!("../chart/lockstep/templates/_user-roles.tpl"),
    ),
];

/// Charts with the templates of their README files and their default values.
const README_TEMPLATES: [(&str, &str, &str); 2] = [
    (
        "lockstep",
        include_str!("../chart/lockstep/README.md.tmpl"),
        include_str!("../chart/lockstep/values.yaml"),
    ),
    (
        "lockstep-crds",
        include_str!("../chart/lockstep-crds/README.md.tmpl"),
        include_str!("../chart/lockstep-crds/values.yaml"),
    ),
];

/// Renders the files that depend on the kinds, of both charts or of the chart of an author's program. Their paths are
/// relative to the folder of the charts.
#[must_use]
pub fn render(install: &InstallOptions<'_>) -> Vec<Manifest> {
    let own = [rbac_file(install), webhooks(install), arguments(install)];
    let own = own.into_iter().chain(shared(install));
    let names = &install.names;
    let folder = format!("{}/files", names.program);
    let own = own.map(|file| file.with_header(names).within(&folder));
    if !is_of_this_repository(install) {
        return own.collect();
    }
    let crds = shared(install).map(|file| file.with_header(names).within("lockstep-crds/files"));
    let templates = SHARED_TEMPLATES.map(|(name, template)| Manifest {
        name: format!("lockstep-crds/templates/{name}"),
        content: format!(
            "{{{{/* {}, from the chart lockstep; do not edit. */}}}}\n{template}",
            marker(&names.program)
        ),
    });
    let readmes = README_TEMPLATES.map(|(chart, template, values)| Manifest {
        name: format!("{chart}/README.md"),
        content: format!(
            "<!-- {} from README.md.tmpl; do not edit. -->\n{}",
            marker(&names.program),
            template.replace("<!-- values -->\n", &values_table::markdown(values))
        ),
    });
    own.chain(crds).chain(templates).chain(readmes).collect()
}

/// Renders the other files of the chart of an author's program, who may change them. The charts of this repository have their
/// own.
#[must_use]
pub fn render_initial(install: &InstallOptions<'_>) -> Vec<Manifest> {
    if is_of_this_repository(install) {
        return Vec::new();
    }
    author_chart::render(install)
}

fn is_of_this_repository(install: &InstallOptions<'_>) -> bool {
    install.names.program == author_chart::TEMPLATE
}

/// Returns the cluster-scoped files, which do not depend on an installation.
fn shared(install: &InstallOptions<'_>) -> impl Iterator<Item = Manifest> {
    let crds = install.validators.iter().map(|ruleset| {
        // Labels and conversion depend on the values.
        crd_file(ruleset.as_ref(), ruleset.crd()).within("crds")
    });
    let policy = json!({"spec": crd_protection::policy_spec(install)});
    let roles = json!({
        "edit": rbac::edit_rules(install),
        "view": rbac::view_rules(install),
        "administrator": rbac::administrator_rules(install),
        "tenantAdmin": rbac::tenant_admin_rules(install),
    });
    crds.chain([
        manifest("crd-deletion-policy.yaml", &[policy]),
        manifest("user-roles.yaml", &[roles]),
    ])
}

/// Returns the rules of the controller's roles, by the mode of the webhook.
fn rbac_file(install: &InstallOptions<'_>) -> Manifest {
    let names = install.names.in_chart();
    let mode = |webhook_only: bool, no_webhook: bool| -> Value {
        let install = InstallOptions {
            webhook_only,
            no_webhook,
            ..install.clone()
        };
        json!({
            "cluster": rbac::cluster_rules(&install, &names),
            "ownNamespace": rbac::own_namespace_rules(&install, &names),
        })
    };
    let rules = json!({
        "webhookAndController": mode(false, false),
        "webhookOnly": mode(true, false),
        "controllerOnly": mode(false, true),
        "secretEditor": rbac::secret_rules(install),
        "secretViewer": rbac::secret_viewer_rules(install),
        "sharding": [rbac::sharding_rule()],
        "watchedNamespace": rbac::namespace_rules(install),
    });
    manifest("rbac.yaml", &[rules])
}

fn webhooks(install: &InstallOptions<'_>) -> Manifest {
    let names = install.names.in_chart();
    let webhooks = json!({
        "mutating": webhook_configuration::mutating_webhook(install.validators, &names),
        "validating": webhook_configuration::validating_webhook(install.validators, &names),
    });
    manifest("webhooks.yaml", &[webhooks])
}

/// Returns the arguments, volumes and mounts that depend on the kinds and their operators.
fn arguments(install: &InstallOptions<'_>) -> Manifest {
    let common = install.common_args();
    let controller: Vec<_> = common.iter().chain(&install.controller_args).collect();
    let volumes: Vec<_> = install.config_map_volumes().collect();
    let mounts: Vec<_> = install.config_map_mounts().collect();
    let both: Vec<_> = deployment::admission_checks(install).into_iter().collect();
    let mut arguments = json!({
        "both": both,
        "webhook": common, "controller": controller, "volumes": volumes, "volumeMounts": mounts,
    });
    // The templates of this repository have values for its environment variables.
    if !is_of_this_repository(install) {
        arguments["environment"] = deployment::environment(install).into();
    }
    manifest("arguments.yaml", &[arguments])
}
