//! With `settings.vector.exact`, the webhook asks the validators of the workloads that select a pipeline.

use lockstep_envtest::eventually;
use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::running_vector::{logs, object};
use crate::vector_config_check_warm::Validator;

/// Answer to a dry run: whether the object is accepted, and the output of kubectl.
type Answer = (bool, String);

impl TestEnv {
    /// Applies a pipeline in a dry run, which admission webhooks validate, too.
    fn dry_run(&self, pipeline: &Value) -> Answer {
        let file = self.cluster.directory().join("dry-run.json");
        std::fs::write(&file, pipeline.to_string()).expect("a file");
        let mut kubectl = self.cluster.kubectl();
        kubectl.args(["apply", "--dry-run=server", "-f"]).arg(&file);
        let output = kubectl.output().expect("kubectl runs");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), text)
    }

    /// Waits until the answer to a dry run contains a text.
    async fn answers(&self, pipeline: &Value, is_accepted: bool, expected: &str) {
        let mut last = (false, String::new());
        let found = eventually("the answer", async || {
            last = self.dry_run(pipeline);
            (last.0 == is_accepted && last.1.contains(expected)).then_some(())
        });
        found
            .await
            .unwrap_or_else(|error| self.fail(&format!("{error}: {expected}\n{last:?}")));
    }
}

/// Returns a pipeline whose second sink Vector rejects. `change` makes it another one.
fn rejected(change: &str) -> Value {
    let mut spec = logs("second");
    spec["sources"][change] = json!({"type": "kubernetes_logs"});
    spec["sinks"]["second"]["inputs"] = json!(["in", change]);
    object("VectorPipeline", "exact", &spec)
}

/// The validator of the agents is ready and rejects sinks with the name `second`.
pub async fn vector_decides(env: &mut TestEnv, validator: &mut Validator) {
    let accepted = object("VectorPipeline", "exact", &logs("first"));
    env.apply(&rejected("before"));
    let policy = "settings: {vector: {exact: true}}\n";
    env.installation.set_policy(policy).expect("a policy");
    let reason = "the Vector of Vector default/logs rejects it: x Sink \"second\": no such file [rejected-by-vector]";
    let mut new = rejected("before");
    new["metadata"]["name"] = json!("new");
    env.answers(&new, false, reason).await;
    assert_eq!(env.dry_run(&accepted), (true, String::new()));

    // The reason is the same as before the policy. The spec of others is not even checked.
    let as_before = "rejects it, as before: x Sink \"second\": no such file";
    let (is_accepted, output) = env.dry_run(&rejected("after"));
    assert!(is_accepted && output.contains(as_before), "{output}");
    assert_eq!(env.dry_run(&rejected("before")), (true, String::new()));

    let mut keyed = logs("out");
    keyed["secret"] = json!({"api": {"type": "kubernetes_secret", "name": "missing"}});
    keyed["sinks"]["out"] = json!({
        "type": "datadog_logs", "inputs": ["in"], "default_api_key": "SECRET[api.key]",
    });
    let waiting = "was validated by rules only, because the Vector of Vector default/logs could not be asked: the Secret `missing` does not exist";
    let (is_accepted, output) = env.dry_run(&object("VectorPipeline", "keyed", &keyed));
    assert!(is_accepted && output.contains(waiting), "{output}");
    keyed["secret"]["api"]["name"] = json!("api-keys");
    let (is_accepted, output) = env.dry_run(&object("VectorPipeline", "keyed", &keyed));
    assert!(
        !is_accepted && output.contains("x the key *** is too short"),
        "{output}"
    );

    validator.process = None;
    let (is_accepted, output) = env.dry_run(&new);
    let reason = "could not be asked: cannot connect to it";
    assert!(is_accepted && output.contains(reason), "{output}");
    env.installation.controller().kill();
    let (is_accepted, output) = env.dry_run(&new);
    let reason =
        "was validated by rules only: the controller in the Pod of the webhook cannot be asked";
    assert!(is_accepted && output.contains(reason), "{output}");
    env.installation.remove_policy().expect("no policy");
    env.installation.start_controller().expect("it starts");
    env.kubectl(&["delete", "vectorpipeline/exact"])
        .expect("deleted");
}
