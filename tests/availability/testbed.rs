//! Testbed: the API server calls the webhook's replicas through a Service, and each replica has a network of its own.

use std::path::PathBuf;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, PostParams};
use lockstep_envtest::{
    APISERVER_ARGS, Cluster, Fleet, Installation, Moto, Options, wait_until_fail_closed,
};
use serde_json::json;

pub struct Testbed {
    pub fleet: Fleet,
    pub cluster: Cluster,
    _moto: Moto,
}

impl Testbed {
    /// Starts a testbed with `count` Pods, of which the first two run, and waits for `failurePolicy: Fail`.
    pub async fn start(count: usize, webhook_args: &[&str], controller_args: &[&str]) -> Self {
        let cluster = Cluster::start_with(&APISERVER_ARGS)
            .await
            .expect("a cluster");
        let moto = Moto::start().await.expect("moto");
        let options = Options {
            program: env!("CARGO_BIN_EXE_lockstep").into(),
            controller_env: moto.environment(),
            controller_args: [
                "--rds-poll-interval=500ms",
                "--rds-not-found-grace-period=200ms",
            ]
            .iter()
            .chain(controller_args)
            .map(ToString::to_string)
            .collect(),
            controller_server: None,
        };
        let manifests = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../manifests/config");
        let fleet = Fleet::apply(&cluster, &manifests, options, webhook_args, count);
        let mut testbed = Self {
            fleet: fleet.await.expect("manifests"),
            cluster,
            _moto: moto,
        };
        for index in 0..2 {
            testbed.fleet.start(index).expect("the process starts");
        }
        for index in 0..2 {
            testbed.ready(index).await;
        }
        wait_until_fail_closed(&testbed.cluster)
            .await
            .expect("`failurePolicy` becomes `Fail`");
        testbed.make_secret().await;
        testbed
    }

    pub async fn ready(&mut self, index: usize) {
        let ready = self.fleet.wait_until_ready(index).await;
        ready.unwrap_or_else(|error| panic!("{error}"));
    }

    async fn make_secret(&self) {
        let secret = json!({
            "metadata": {"name": "credentials"},
            "stringData": {"username": "app", "password": "correct-horse"},
        });
        let secrets: Api<Secret> = Api::namespaced(self.cluster.client(), "default");
        let secret = serde_json::from_value(secret).expect("a Secret");
        let made = secrets.create(&PostParams::default(), &secret).await;
        made.expect("the Secret is created");
        let allowed = Installation::allow_secrets(&self.cluster, "default").await;
        allowed.expect("a RoleBinding");
    }
}
