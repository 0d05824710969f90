use clap::Parser;
use lockstep_manifests::{Manifest, render, render_chart_files};
use serde_json::{Value, json};

use super::*;
use crate::args::kinds::KindArgs;
use crate::args::scope::InstallScopeArgs;
use crate::commands::manifests::with_options;
use crate::environment::Environment;
use crate::operator::Operator;
use crate::operator::test_kinds::{cellars, lamps};
use crate::registry::Registry;

#[derive(Parser)]
struct Options {
    #[command(flatten)]
    kinds: KindArgs,
    #[command(flatten)]
    scope: InstallScopeArgs,
}

/// Returns a program with a namespaced kind, and with a cluster-scoped one for administrators.
fn lighting(of_lamps: Audience) -> Environment {
    let rule = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]});
    let lamps = Operator::of(of_lamps, lamps).rbac_rules([rule]);
    let cellars = Operator::of(Audience::Administrators, cellars);
    Environment {
        name: "lighting",
        version: "1.0.0",
        webhook_domain: None,
        registry: Registry {
            operators: vec![lamps.into(), cellars.into()],
            ..Registry::default()
        },
    }
}

fn manifests(environment: &Environment, arguments: &[&str]) -> Vec<Manifest> {
    let options = Options::parse_from([&["lighting"], arguments].concat());
    with_options(environment, &options.kinds, Some(&options.scope), render).expect("manifests")
}

/// Returns the resources in the rules of a value.
fn resources(rules: &Value) -> Vec<String> {
    let rules = rules.as_array().into_iter().flatten();
    let resources =
        rules.flat_map(|rule| rule["resources"].as_array().cloned().unwrap_or_default());
    resources
        .filter_map(|resource| resource.as_str().map(str::to_owned))
        .collect()
}

/// Returns the `ClusterRole` of a name, or null.
fn role(files: &[Manifest], file: &str, name: &str) -> Value {
    let file = files.iter().find(|one| one.name == file).expect("a file");
    let objects: Vec<Value> = serde_saphyr::from_multiple(&file.content).expect("YAML");
    let mut objects = objects.into_iter();
    let found = objects
        .find(|object| object["kind"] == "ClusterRole" && object["metadata"]["name"] == name);
    found.unwrap_or_default()
}

/// Returns true if a role extends a built-in role.
fn is_aggregated(role: &Value) -> bool {
    role["metadata"]["labels"]
        .to_string()
        .contains("aggregate-to-")
}

#[test]
fn only_kinds_for_tenants_extend_the_role_edit() {
    for (audience, edit, administrator) in [
        (Audience::Tenants, vec!["lamps"], vec!["cellars"]),
        (Audience::Administrators, vec![], vec!["cellars", "lamps"]),
    ] {
        let files = manifests(&lighting(audience), &[]);
        let role = |name: &str| role(&files, "rbac.yaml", name);
        let (editor, viewer) = (role("lighting-edit"), role("lighting-view"));
        // Without rules, it still replaces the role of an earlier installation.
        assert!(is_aggregated(&editor) && is_aggregated(&viewer));
        assert_eq!(resources(&editor["rules"]), edit);
        assert_eq!(resources(&viewer["rules"]), ["lamps"], "namespaced kinds");
        let administrators = role("lighting-administrator");
        assert!(!is_aggregated(&administrators));
        assert_eq!(resources(&administrators["rules"]), administrator);
    }
}

#[test]
fn the_administrator_of_a_namespace_gets_no_rights_on_kinds_for_administrators() {
    let arguments = ["--watch-namespaces=a", "--kinds=Lamp"];
    let granted = |audience| {
        let files = manifests(&lighting(audience), &arguments);
        let admin = role(&files, "cluster/roles.yaml", "lighting-aggregate-to-admin");
        resources(&admin["rules"])
    };
    let has = |granted: &[String], resource: &str| granted.iter().any(|one| one == resource);
    let for_tenants = granted(Audience::Tenants);
    for resource in ["lamps", "lamps/status", "configmaps", "leases"] {
        assert!(has(&for_tenants, resource), "{for_tenants:?}");
    }
    let for_administrators = granted(Audience::Administrators);
    for resource in ["lamps", "lamps/status", "lamps/finalizers", "configmaps"] {
        assert!(
            !has(&for_administrators, resource),
            "{for_administrators:?}"
        );
    }
}

#[test]
fn the_files_of_the_charts_follow_the_audience() {
    for (audience, edit, tenant_admin) in [
        (Audience::Tenants, vec!["lamps"], true),
        (Audience::Administrators, vec![], false),
    ] {
        let options = Options::parse_from(["lighting"]);
        let environment = lighting(audience);
        let files = with_options(&environment, &options.kinds, None, render_chart_files);
        let files = files.expect("files");
        let roles = files
            .iter()
            .find(|file| file.name.ends_with("/user-roles.yaml"));
        let roles: Value = serde_saphyr::from_str(&roles.expect("a file").content).expect("YAML");
        assert_eq!(resources(&roles["edit"]), edit);
        let granted = resources(&roles["tenantAdmin"]);
        assert_eq!(
            granted.contains(&"lamps".to_owned()),
            tenant_admin,
            "{granted:?}"
        );
        let administrators = resources(&roles["administrator"]);
        assert!(
            administrators.contains(&"cellars".to_owned()),
            "{administrators:?}"
        );
        assert!(!granted.contains(&"cellars".to_owned()), "{granted:?}");
    }
}

#[test]
fn a_cluster_scoped_kind_for_tenants_is_refused() {
    let mut registry = Registry::default();
    let cellars = Operator::of(Audience::Tenants, cellars);
    registry.operators.push(cellars.into());
    let Err(error) = registry.select(|_, _| true) else {
        panic!("a tenant has no rights on cluster-scoped objects");
    };
    let error = error.to_string();
    assert!(error.contains("Cellar is cluster-scoped"), "{error}");
    assert!(error.contains("`Audience::Administrators`"), "{error}");
}
