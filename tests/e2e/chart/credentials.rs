//! Values for the AWS credentials of the controller, as the documentation has them.

use serde_json::{Value, json};

use super::{documents, objects};

/// Returns the values in the documentation, by the source of the credentials.
fn documented(source: &str) -> Value {
    let text = include_str!("../../../docs/cloud-database.md");
    let blocks = text.split("```yaml\n").skip(1);
    let blocks = blocks.filter_map(|block| block.split("```").next());
    let values = blocks
        .filter(|block| block.starts_with("aws:"))
        .map(|block| documents(block).remove(0));
    let mut found = values.filter(|it| it["aws"]["credentials"]["source"] == source);
    found
        .next()
        .unwrap_or_else(|| panic!("no values for {source}"))
}

fn find<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    let mut found = objects.iter().filter(|it| it["kind"] == kind);
    let found = found.find(|it| it["metadata"]["name"] == "lockstep");
    found.unwrap_or_else(|| panic!("no {kind}"))
}

#[test]
fn the_documented_values_give_the_controller_its_credentials_and_the_webhook_none() {
    for source in ["irsa", "podIdentity", "secret"] {
        let values = documented(source);
        assert_eq!(values["aws"]["region"], "eu-central-1");
        let objects = objects("lockstep", &values);
        let account = &find(&objects, "ServiceAccount")["metadata"]["annotations"];
        let role = &account["eks.amazonaws.com/role-arn"];
        let template = &find(&objects, "Deployment")["spec"]["template"];
        let skipped = &template["metadata"]["annotations"]["eks.amazonaws.com/skip-containers"];
        let expected = &values["aws"]["credentials"]["roleArn"];
        assert_eq!((role, role.is_string()), (expected, source == "irsa"));
        let is_injected = source != "secret";
        assert_eq!(*skipped == "webhook", is_injected, "{source}: {skipped}");
        let containers = template["spec"]["containers"].as_array();
        for container in containers.into_iter().flatten() {
            let keys = json!({"secretRef": {"name": "aws-keys"}});
            let sources = container["envFrom"].as_array();
            let has_keys = sources.is_some_and(|sources| sources.contains(&keys));
            let is_expected = source == "secret" && container["name"] == "controller";
            assert_eq!(has_keys, is_expected, "{source}: {container}");
        }
    }
}
