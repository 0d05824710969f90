//! A publication refreshes the mounted Secrets of running Pods.

use lockstep_envtest::eventually;
use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::running_vector::{AGENT, logs, object, start};

/// Annotation with which Pods are refreshed.
const REFRESHED: &str = "observability.kaasops.io/secret-versions";

impl TestEnv {
    /// Waits until the Pod of the agents has been refreshed with the published Secret.
    async fn pod_is_refreshed(&self) {
        let refreshed = eventually("the annotation of the Pod", async || {
            let secret = self.get("secret/logs-agent");
            let pod = &self.get("pods")["items"][0];
            let versions = &pod["metadata"]["annotations"][REFRESHED];
            let status = &self.get("vector/logs")["status"]["refreshedSecretVersions"];
            let is_so = *versions == secret["metadata"]["resourceVersion"] && versions == status;
            is_so.then_some(())
        });
        refreshed
            .await
            .unwrap_or_else(|error| self.fail(&format!("{error}\n{}", self.statuses())));
    }

    /// Returns the number of requests for Pods with a verb, without those for their statuses.
    fn requests_for_pods(&self, verb: &str) -> u64 {
        let metrics = self.kubectl(&["get", "--raw", "/metrics"]);
        let metrics = metrics.unwrap_or_else(|error| self.fail(&error));
        let verb = format!("verb=\"{verb}\"");
        let labels = ["resource=\"pods\"", "subresource=\"\"", &verb];
        let lines = metrics.lines().filter(|line| {
            line.starts_with("apiserver_request_total{")
                && labels.iter().all(|label| line.contains(label))
        });
        let counts = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        counts.sum()
    }

    /// Changes the role of the controller, and waits until it may patch Pods, or may no longer.
    async fn set_rules(&self, rules: &Value, may_patch: bool) {
        let patch = json!({"rules": rules}).to_string();
        let role = ["patch", "clusterrole/lockstep", "--type=merge", "--patch"];
        self.kubectl(&[&role[..], &[&patch]].concat())
            .unwrap_or_else(|error| self.fail(&error));
        let account = "--as=system:serviceaccount:lockstep-system:lockstep";
        let changed = eventually("the changed permission", async || {
            let answer = self.kubectl(&["auth", "can-i", "patch", "pods", account]);
            (answer.is_ok() == may_patch).then_some(())
        });
        changed
            .await
            .unwrap_or_else(|error| self.fail(&error.to_string()));
    }

    /// Deletes an object that the workload owns and waits until the controller has created it again.
    async fn is_repaired(&self, object: &str) {
        let before = self.get(object)["metadata"]["uid"].clone();
        self.kubectl(&["delete", object]).expect("deleted");
        let repaired = eventually("the deleted object", async || {
            let uid = &self.get(object)["metadata"]["uid"];
            (uid.is_string() && *uid != before).then_some(())
        });
        repaired
            .await
            .unwrap_or_else(|error| self.fail(&error.to_string()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publication_refreshes_each_pod_once_and_restarts_none() {
    let mut env = start().await;
    // The observation of reloads lists Pods, too.
    let spec = json!({"agent": {"api": {"enabled": true}, "reload": {"observe": false}}});
    env.apply(&object("Vector", "logs", &spec));
    let pod = eventually("a Pod", async || {
        let pod = env.get("pods")["items"][0].clone();
        pod.is_object().then_some(pod)
    });
    let pod = pod
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    let before = env.requests_for_pods("PATCH");
    env.apply(&object("VectorPipeline", "app", &logs("out")));
    env.configuration_that("the pipeline", AGENT, |config| {
        config["sinks"]["default__app__out"].is_object()
    })
    .await;
    env.pod_is_refreshed().await;
    let refreshed = env.requests_for_pods("PATCH");
    // The first configuration may have been published shortly before the Pod was created, or after.
    assert!(
        (1..=2).contains(&(refreshed - before)),
        "{before} {refreshed}"
    );

    // Reconciliations without a publication write and read no Pod, in this process and in the next one.
    let lists = env.requests_for_pods("LIST");
    env.is_repaired("service/logs-agent").await;
    env.installation
        .restart_controller_with(&[])
        .expect("restarted");
    env.is_repaired("service/logs-agent").await;
    assert_eq!(env.requests_for_pods("PATCH"), refreshed);
    assert_eq!(env.requests_for_pods("LIST"), lists);

    // Without the permission, the publication goes on, and the next one with it refreshes the Pods again.
    let rules = env.get("clusterrole/lockstep")["rules"].clone();
    let mut without = rules.clone();
    let of_role = without.as_array_mut().expect("rules");
    of_role.retain(|rule| {
        let verbs = rule["verbs"].as_array().expect("verbs");
        rule["resources"] != json!(["pods"]) || !verbs.contains(&json!("patch"))
    });
    env.set_rules(&without, false).await;
    env.apply(&object("VectorPipeline", "other", &logs("second")));
    env.runs("other", Some(1), &[("Vector default/logs", Some(1))])
        .await;
    let logged = eventually("the missing permission in the log", async || {
        let output = env.installation.output();
        output
            .contains("grant `list` and `patch` on pods")
            .then_some(())
    });
    logged
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    assert_eq!(env.requests_for_pods("PATCH"), refreshed);
    env.set_rules(&rules, true).await;
    env.kubectl(&["delete", "vectorpipeline/other"])
        .expect("deleted");
    env.pod_is_refreshed().await;
    let now = &env.get("pods")["items"][0];
    assert_eq!(now["metadata"]["uid"], pod["metadata"]["uid"]);
}
